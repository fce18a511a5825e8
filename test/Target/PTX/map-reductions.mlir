// Values: test/python/gpu/test_map_reductions.py.
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-map-reductions))' | FileCheck %s

// A norm: two passes over a row, whose temporary a lane keeps for itself.
// CHECK-LABEL: func.func private @norm
func.func private @norm(%x: memref<100x64xf32>, %y: memref<100x64xf32> {llvm.noalias}, %m: memref<100xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: scf.parallel (%[[ROW:.+]], %[[LANE:.+]]) =
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    // CHECK: memref.alloca() : memref<2xf32>
    %t = memref.alloca() : memref<64xf32>
    // CHECK: %[[PART:.+]] = scf.for %[[J:.+]] = %[[LANE]] to %c64 step %{{.+}} iter_args(%{{.+}} = %{{.+}}) -> (f32)
    // CHECK: %[[PLACE:.+]] = arith.divui %[[J]]
    // CHECK: memref.store %{{.+}}, %{{.+}}[%[[PLACE]]] : memref<2xf32>
    %sum = scf.for %j = %c0 to %c64 step %c1 iter_args(%s = %zero) -> (f32) {
      %0 = memref.load %x[%i, %j] : memref<100x64xf32>
      memref.store %0, %t[%j] : memref<64xf32>
      %1 = arith.addf %s, %0 : f32
      scf.yield %1 : f32
    }
    // CHECK-COUNT-5: nvvm.shfl.sync bfly
    // CHECK: scf.if
    // CHECK-NEXT: memref.store %{{.+}}, %{{.+}}[%[[ROW]]] : memref<100xf32>
    memref.store %sum, %m[%i] : memref<100xf32>
    // CHECK: scf.for %{{.+}} = %[[LANE]] to %c64
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %t[%j] : memref<64xf32>
      %1 = arith.divf %0, %sum : f32
      memref.store %1, %y[%i, %j] : memref<100x64xf32>
    }
    scf.reduce
  }
  return
}

// Sums along the first dimension: neighbouring threads read neighbouring elements already.
// CHECK-LABEL: func.func private @columns
// CHECK: scf.parallel (%{{[^,]+}}) =
func.func private @columns(%x: memref<64x100xf32>, %y: memref<100xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%j, %i] : memref<64x100xf32>
      %1 = memref.load %y[%i] : memref<100xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%i] : memref<100xf32>
    }
    scf.reduce
  }
  return
}

// Columns are few and long: lanes share them, though each reads a row.
// CHECK-LABEL: func.func private @long_columns
// CHECK: scf.parallel (%{{.+}}, %{{.+}}) = (%{{.+}}, %{{.+}}) to (%c100{{.*}}, %c256
// CHECK: nvvm.shfl.sync
func.func private @long_columns(%x: memref<?x100xf32>, %y: memref<100xf32> {fp8.own_memory}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x100xf32>
  %c100 = arith.constant 100 : index
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    scf.for %j = %c0 to %rows step %c1 {
      %0 = memref.load %x[%j, %i] : memref<?x100xf32>
      %1 = memref.load %y[%i] : memref<100xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%i] : memref<100xf32>
    }
    scf.reduce
  }
  return
}

// A running sum: every iteration reads what the one before has computed.
// CHECK-LABEL: func.func private @scan
// CHECK: scf.parallel (%{{[^,]+}}) =
func.func private @scan(%x: memref<100x64xf32>, %y: memref<100x64xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    %sum = scf.for %j = %c0 to %c64 step %c1 iter_args(%s = %zero) -> (f32) {
      %0 = memref.load %x[%i, %j] : memref<100x64xf32>
      %1 = arith.addf %s, %0 : f32
      memref.store %1, %y[%i, %j] : memref<100x64xf32>
      scf.yield %1 : f32
    }
    scf.reduce
  }
  return
}

// Neighbours in a row: a lane would read what another one has written.
// CHECK-LABEL: func.func private @neighbours
// CHECK: scf.parallel (%{{[^,]+}}) =
func.func private @neighbours(%x: memref<100x64xf32>, %y: memref<100x64xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c100 = arith.constant 100 : index
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    %t = memref.alloca() : memref<64xf32>
    scf.for %j = %c0 to %c63 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<100x64xf32>
      memref.store %0, %t[%j] : memref<64xf32>
    }
    scf.for %j = %c0 to %c63 step %c1 {
      %next = arith.addi %j, %c1 : index
      %0 = memref.load %t[%next] : memref<64xf32>
      memref.store %0, %y[%i, %j] : memref<100x64xf32>
    }
    scf.reduce
  }
  return
}

// A sum of all elements: 128 lanes, which make a block; the nest is one loop. The warps meet in shared memory.
// CHECK-LABEL: func.func private @all
// CHECK-SAME: fp8.threads = 128 : i32
// CHECK: scf.parallel (%{{[^,]+}}, %[[LANE:.+]]) = (%{{.+}}, %{{.+}}) to (%c1{{.*}}, %c128
// CHECK: scf.for %[[I:.+]] = %[[LANE]] to %c1024{{.*}} step %c128
// CHECK: %[[COLUMN:.+]] = arith.remui %[[I]], %c64
// CHECK: %[[ROW:.+]] = arith.divui %[[I]], %c64
// CHECK: memref.load %{{.+}}[%[[ROW]], %[[COLUMN]]]
// CHECK-COUNT-5: nvvm.shfl.sync
// CHECK: %[[SUMS:.+]] = memref.alloca() : memref<4xf32, 3>
// CHECK: memref.store %{{.+}}, %[[SUMS]]
// CHECK: nvvm.barrier0
// CHECK: memref.load %[[SUMS]]
// CHECK-COUNT-2: nvvm.shfl.sync
// CHECK-NOT: nvvm.shfl.sync
// CHECK: return
func.func private @all(%x: memref<16x64xf32>, %s: memref<f32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<16x64xf32>
      %1 = memref.load %s[] : memref<f32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %s[] : memref<f32>
    }
  }
  return
}

// The second loop reads what the first one stores at another place: one thread.
// CHECK-LABEL: func.func private @alone
// CHECK-NOT: scf.parallel
// CHECK: return
func.func private @alone(%x: memref<64x64xf32>, %y: memref<64x64xf32> {llvm.noalias}, %s: memref<f32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<64x64xf32>
      memref.store %0, %y[%i, %j] : memref<64x64xf32>
    }
  }
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %y[%j, %i] : memref<64x64xf32>
      %1 = memref.load %s[] : memref<f32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %s[] : memref<f32>
    }
  }
  return
}

// Few rows: 256 lanes for each.
// CHECK-LABEL: func.func private @few
// CHECK-SAME: fp8.threads = 256 : i32
// CHECK: scf.parallel (%{{.+}}, %{{.+}}) = (%{{.+}}, %{{.+}}) to (%c8{{.*}}, %c256
func.func private @few(%x: memref<8x2048xf32>, %y: memref<8xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c2048 = arith.constant 2048 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    scf.for %j = %c0 to %c2048 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<8x2048xf32>
      %1 = memref.load %y[%i] : memref<8xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%i] : memref<8xf32>
    }
    scf.reduce
  }
  return
}

// Shuffles are of 32 bits: two for an i64; bf16 as an integer. A sum of bf16 is taken in f32 and rounded once. Sums of integers may
// wrap in another order.
// CHECK-LABEL: func.func private @types
// CHECK: %[[PARTS:.+]]:3 = scf.for {{.*}} -> (i64, bf16, f32)
// CHECK: arith.addi %{{[^ ]+}}, %{{[^ ]+}} : i64
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: %[[LOW:.+]] = arith.trunci %[[PARTS]]#0 : i64 to i32
// CHECK-COUNT-2: nvvm.shfl.sync bfly {{.*}} : i32 -> i32
// CHECK: arith.addi %{{[^ ]+}}, %{{[^ ]+}} : i64
// CHECK: arith.bitcast %[[PARTS]]#1 : bf16 to i16
// CHECK: nvvm.shfl.sync bfly {{.*}} : i32 -> i32
// CHECK: arith.maximumf {{.*}} : bf16
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %[[PARTS]]#2, {{.*}} : f32 -> f32
// CHECK: arith.truncf {{.*}} : f32 to bf16
func.func private @types(%x: memref<100x64xi64>, %z: memref<100x64xbf16>, %a: memref<100xi64> {llvm.noalias}, %b: memref<100xbf16> {llvm.noalias},
                         %c: memref<100xbf16> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<100x64xi64>
      %1 = memref.load %z[%i, %j] : memref<100x64xbf16>
      %2 = memref.load %a[%i] : memref<100xi64>
      %3 = arith.addi %2, %0 overflow<nsw> : i64
      memref.store %3, %a[%i] : memref<100xi64>
      %4 = memref.load %b[%i] : memref<100xbf16>
      %5 = arith.maximumf %4, %1 : bf16
      memref.store %5, %b[%i] : memref<100xbf16>
      %6 = memref.load %c[%i] : memref<100xbf16>
      %7 = arith.addf %6, %1 : bf16
      memref.store %7, %c[%i] : memref<100xbf16>
    }
    scf.reduce
  }
  return
}

// The greatest element and its place: lanes start with the initial values, and carry the iteration of what they keep.
// CHECK-LABEL: func.func private @place
// CHECK: %[[MOST:.+]] = memref.load %{{.+}}[%{{.+}}] : memref<100xf32>
// CHECK: %[[AT:.+]] = memref.load %{{.+}}[%{{.+}}] : memref<100xi32>
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.for {{.*}} iter_args(%[[A:.+]] = %[[MOST]], %[[B:.+]] = %[[AT]], %[[C:.+]] = %{{.+}}) -> (f32, i32, i32)
// CHECK-COUNT-15: nvvm.shfl.sync
// CHECK: scf.if
// CHECK-NEXT: memref.store
// CHECK: scf.if
// CHECK-NEXT: memref.store
func.func private @place(%x: memref<100x64xf32>, %y: memref<100xf32> {llvm.noalias}, %p: memref<100xi32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<100x64xf32>
      %1 = memref.load %y[%i] : memref<100xf32>
      %2 = memref.load %p[%i] : memref<100xi32>
      %3 = arith.index_cast %j : index to i32
      %more = arith.cmpf ogt, %0, %1 : f32
      %4 = arith.select %more, %0, %1 : f32
      %5 = arith.select %more, %3, %2 : i32
      memref.store %4, %y[%i] : memref<100xf32>
      memref.store %5, %p[%i] : memref<100xi32>
    }
    scf.reduce
  }
  return
}

// The last one but one is kept too: no selection of one element.
// CHECK-LABEL: func.func private @two
// CHECK-NOT: nvvm.shfl.sync
// CHECK: return
func.func private @two(%x: memref<100x64xf32>, %y: memref<100xf32> {llvm.noalias}, %z: memref<100xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<100x64xf32>
      %1 = memref.load %y[%i] : memref<100xf32>
      %2 = memref.load %z[%i] : memref<100xf32>
      %more = arith.cmpf ogt, %0, %1 : f32
      %4 = arith.select %more, %0, %1 : f32
      %5 = arith.select %more, %1, %2 : f32
      memref.store %4, %y[%i] : memref<100xf32>
      memref.store %5, %z[%i] : memref<100xf32>
    }
    scf.reduce
  }
  return
}

// One element for two values that are kept.
// CHECK-LABEL: func.func private @same
// CHECK-NOT: nvvm.shfl.sync
// CHECK: return
func.func private @same(%x: memref<100x64xi32>, %y: memref<100xi32> {llvm.noalias}, %z: memref<100xi32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<100x64xi32>
      %1 = memref.load %y[%i] : memref<100xi32>
      %2 = memref.load %z[%i] : memref<100xi32>
      %more = arith.cmpi sgt, %0, %1 : i32
      %4 = arith.select %more, %0, %1 : i32
      %5 = arith.select %more, %0, %2 : i32
      memref.store %4, %y[%i] : memref<100xi32>
      memref.store %5, %z[%i] : memref<100xi32>
    }
    scf.reduce
  }
  return
}

// -----

// A module that asks for the order of the program.
module attributes {fp8.program_order} {
  // CHECK-LABEL: func.func private @in_order
  // CHECK: scf.parallel (%{{[^,]+}}) =
  // CHECK-NOT: nvvm.shfl
  func.func private @in_order(%x: memref<100x64xf32>, %y: memref<100xf32> {llvm.noalias}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c100 = arith.constant 100 : index
    scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
      scf.for %j = %c0 to %c64 step %c1 {
        %0 = memref.load %x[%i, %j] : memref<100x64xf32>
        %1 = memref.load %y[%i] : memref<100xf32>
        %2 = arith.addf %1, %0 : f32
        memref.store %2, %y[%i] : memref<100xf32>
      }
      scf.reduce
    }
    return
  }
}

// -----

// Rows, and of how many elements, are known at a launch.
// CHECK-LABEL: func.func private @dynamic(
// CHECK: scf.parallel (%{{.*}}, %[[LANE:.*]]) = (%{{.*}}, %{{.*}}) to (%{{.*}}, %c32{{.*}})
// CHECK: scf.for %{{.*}} = %[[LANE]] to %{{.*}} step %c32
// CHECK: nvvm.shfl.sync bfly
func.func private @dynamic(%rows: index, %x: memref<?x?xf32>, %y: memref<?xf32> {fp8.own_memory}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    scf.for %j = %c0 to %columns step %c1 {
      %0 = memref.load %x[%i, %j] : memref<?x?xf32>
      %1 = memref.load %y[%i] : memref<?xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%i] : memref<?xf32>
    }
    scf.reduce
  }
  return
}

// One thread runs a loop whose bound is in memory.
// CHECK-LABEL: func.func private @loaded_bound(
// CHECK-NOT: nvvm.shfl.sync
// CHECK: return
func.func private @loaded_bound(%count: memref<index>, %x: memref<?x64xf32>, %y: memref<?xf32> {fp8.own_memory}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = memref.load %count[] : memref<index>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<?x64xf32>
      %1 = memref.load %y[%i] : memref<?xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%i] : memref<?xf32>
    }
    scf.reduce
  }
  return
}
