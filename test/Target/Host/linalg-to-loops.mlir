// RUN: fp8-opt %s --split-input-file --fp8-linalg-to-loops --canonicalize --cse | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --split-input-file --fp8-linalg-to-loops=parallel-threshold=1 --canonicalize --cse | FileCheck %s -enable-var-scope --check-prefix=MANY

// Column sums: rows outside, so that the inner loop is contiguous. Each sum is still taken
// from the first row to the last. Threads cannot share a sum.
// CHECK-LABEL: func @column_sums
// CHECK-DAG: %[[C8:.*]] = arith.constant 8
// CHECK-DAG: %[[C16:.*]] = arith.constant 16
// CHECK: scf.for %[[K:.*]] = {{.*}} to %[[C8]]
// CHECK: scf.for %[[N:.*]] = {{.*}} to %[[C16]]
// CHECK: memref.load %arg0[%[[K]], %[[N]]]
// MANY-LABEL: func @column_sums
// MANY-NOT: scf.parallel
func.func @column_sums(%x: memref<8x16xf32>, %y: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x16xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Enough work: the outer loops share the threads, the innermost is left to vectors.
// CHECK-LABEL: func @elementwise
// CHECK-NOT: scf.parallel
// CHECK-COUNT-3: scf.for
// MANY-LABEL: func @elementwise
// MANY: scf.parallel (%[[I:.*]], %[[J:.*]]) =
// MANY-NEXT: scf.for %[[K:.*]] =
// MANY-NEXT: memref.load %arg0[%[[I]], %[[J]], %[[K]]]
func.func @elementwise(%x: memref<4x8x16xf32>, %y: memref<4x8x16xf32>) {
  linalg.exp ins(%x : memref<4x8x16xf32>) outs(%y : memref<4x8x16xf32>)
  return
}

// -----

// Two reduction dimensions keep their order even where the other order is contiguous.
// CHECK-LABEL: func @two_reductions
// CHECK-DAG: %[[C2:.*]] = arith.constant 2
// CHECK-DAG: %[[C4:.*]] = arith.constant 4
// CHECK: scf.for %[[A:.*]] = {{.*}} to %[[C2]]
// CHECK: scf.for %[[B:.*]] = {{.*}} to %[[C4]]
// CHECK: memref.load %arg0[%[[B]], %[[A]]]
func.func @two_reductions(%x: memref<4x2xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<4x2xf32>) outs(%y : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Copies are loops too, strided ones included; so is an operation without dimensions.
// CHECK-LABEL: func @copies
// CHECK-NOT: memref.copy
// CHECK: scf.for
// CHECK: memref.load %arg0
// CHECK: memref.store %{{.*}}, %arg1
// CHECK: memref.load %arg2[]
// CHECK: memref.store %{{.*}}, %arg3[]
func.func @copies(%a: memref<4xf32, strided<[2]>>, %b: memref<4xf32>, %c: memref<f32>, %d: memref<f32>) {
  memref.copy %a, %b : memref<4xf32, strided<[2]>> to memref<4xf32>
  memref.copy %c, %d : memref<f32> to memref<f32>
  return
}

// -----

// A body that reads elsewhere and branches on its data.
// CHECK-LABEL: func @gather
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[LEFT:.*]] = arith.cmpi ult, %{{.*}}, %c4
// CHECK: scf.if %[[LEFT]]
// CHECK: memref.load %arg1[
func.func @gather(%n: memref<8xindex>, %x: memref<4xf32>, %y: memref<4xf32>, %out: memref<8xf32>) {
  %c4 = arith.constant 4 : index
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%out : memref<8xf32>) {
  ^bb0(%old: f32):
    %i = linalg.index 0 : index
    %at = memref.load %n[%i] : memref<8xindex>
    %left = arith.cmpi ult, %at, %c4 : index
    %value = scf.if %left -> f32 {
      %0 = memref.load %x[%at] : memref<4xf32>
      scf.yield %0 : f32
    } else {
      %j = arith.subi %at, %c4 : index
      %0 = memref.load %y[%j] : memref<4xf32>
      scf.yield %0 : f32
    }
    linalg.yield %value : f32
  }
  return
}

// -----

// Sums along rows: the sums of four rows are independent, and each is taken in order.
// CHECK-LABEL: func @row_sums
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK: scf.for %[[I:.*]] = {{.*}} step %[[C4]]
// CHECK: scf.for %[[K:.*]] =
// CHECK-COUNT-4: arith.addf
// CHECK-NOT: arith.addf
func.func @row_sums(%x: memref<12x16xf32>, %y: memref<12xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<12x16xf32>) outs(%y : memref<12xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// A concatenation: one copy per part, and no branch per element.
// CHECK-LABEL: func @concatenation
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C5:.*]] = arith.constant 5 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK-NOT: scf.if
// CHECK: scf.for %[[N:.*]] = %[[C0]] to %[[C5]]
// CHECK: memref.load %arg0[%{{.*}}, %[[N]]]
// CHECK: scf.for %[[M:.*]] = %[[C5]] to %[[C16]]
// CHECK: %[[L:.*]] = arith.subi %[[M]], %[[C5]]
// CHECK: memref.load %arg1[%{{.*}}, %[[L]]]
func.func @concatenation(%x: memref<4x5xf32>, %y: memref<4x11xf32>, %z: memref<4x16xf32>) {
  %c5 = arith.constant 5 : index
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} outs(%z : memref<4x16xf32>) {
  ^bb0(%out: f32):
    %m = linalg.index 0 : index
    %n = linalg.index 1 : index
    %first = arith.cmpi ult, %n, %c5 : index
    %value = scf.if %first -> (f32) {
      %0 = memref.load %x[%m, %n] : memref<4x5xf32>
      scf.yield %0 : f32
    } else {
      %l = arith.subi %n, %c5 : index
      %0 = memref.load %y[%m, %l] : memref<4x11xf32>
      scf.yield %0 : f32
    }
    linalg.yield %value : f32
  }
  return
}
