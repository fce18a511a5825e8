// How many rows run at a time, and which loops are left alone. The examples of the pass's
// description are not repeated here.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-interleave-rows,canonicalize,cse))' | FileCheck %s

// 49 = 7 x 7 rows of 5: seven at a time, and a scalar of each row that a later loop reads.
// CHECK-LABEL: func @seven
// CHECK: scf.parallel (%{{.+}}, %[[I:.+]]) = (%{{.+}}, %{{.+}}) to (%c5, %c49) step (%c1, %c7) {
// CHECK-DAG: %[[MEANS:.+]] = memref.alloca() {alignment = 64 : i64} : memref<7xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<448xi8>
// CHECK: scf.for
// CHECK-COUNT-7: arith.addf
// CHECK-NOT: arith.addf
// CHECK: scf.for %[[R:.+]] =
// CHECK: %[[MEAN:.+]] = arith.divf
// CHECK: memref.store %[[MEAN]], %[[MEANS]][%[[R]]]
// CHECK: scf.for
// CHECK-COUNT-7: arith.addf
// CHECK: scf.for %[[R2:.+]] =
// CHECK: memref.load %[[MEANS]][%[[R2]]]
func.func @seven(%x: memref<5x49x64xf32>, %y: memref<5x49xf32>) {
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 64.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c49 = arith.constant 49 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%b, %i) = (%c0, %c0) to (%c5, %c49) step (%c1, %c1) {
    %sum = memref.alloca() : memref<f32>
    memref.store %zero, %sum[] : memref<f32>
    %row = memref.subview %x[%b, %i, 0] [1, 1, 64] [1, 1, 1] : memref<5x49x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %row[%j] : memref<64xf32, strided<[1], offset: ?>>
      %1 = memref.load %sum[] : memref<f32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %sum[] : memref<f32>
    }
    %total = memref.load %sum[] : memref<f32>
    %mean = arith.divf %total, %size : f32
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %row[%j] : memref<64xf32, strided<[1], offset: ?>>
      %1 = memref.load %y[%b, %i] : memref<5x49xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%b, %i] : memref<5x49xf32>
    }
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %row[%j] : memref<64xf32, strided<[1], offset: ?>>
      %1 = arith.subf %0, %mean : f32
      memref.store %1, %row[%j] : memref<64xf32, strided<[1], offset: ?>>
    }
    scf.reduce
  }
  return
}

// Maxima and minima wait for each other as sums do.
// CHECK-LABEL: func @extremes
// CHECK: scf.parallel {{.+}} step (%c8) {
// CHECK: scf.for
// CHECK-COUNT-8: arith.maximumf
// CHECK-NOT: arith.maximumf
// CHECK: scf.for
// CHECK-COUNT-8: arith.minimumf
// CHECK-NOT: arith.minimumf
func.func @extremes(%x: memref<128x64xf32>, %most: memref<128xf32>, %least: memref<128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  scf.parallel (%i) = (%c0) to (%c128) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<128x64xf32>
      %1 = memref.load %most[%i] : memref<128xf32>
      %2 = arith.maximumf %1, %0 : f32
      memref.store %2, %most[%i] : memref<128xf32>
    }
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<128x64xf32>
      %1 = memref.load %least[%i] : memref<128xf32>
      %2 = arith.minimumf %1, %0 : f32
      memref.store %2, %least[%i] : memref<128xf32>
    }
    scf.reduce
  }
  return
}

// A prime number of rows, too few rows, and an unknown number of them.
// CHECK-LABEL: func @kept
// CHECK: step (%c1)
// CHECK: step (%c1)
// CHECK: step (%c1)
func.func @kept(%x: memref<?x64xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c31 = arith.constant 31 : index
  %c67 = arith.constant 67 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i) = (%c0) to (%c67) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<?x64xf32>
      %1 = memref.load %y[%i] : memref<?xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%i] : memref<?xf32>
    }
    scf.reduce
  }
  scf.parallel (%i) = (%c0) to (%c31) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<?x64xf32>
      %1 = memref.load %y[%i] : memref<?xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%i] : memref<?xf32>
    }
    scf.reduce
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
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

// No sum to interleave: rows run one at a time, and with the buffers of eight rows above the limit of a row, fewer.
// CHECK-LABEL: func @limits
// CHECK: step (%c1)
// CHECK: step (%c4)
func.func @limits(%x: memref<256x16384xf32>, %y: memref<256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %c16384 = arith.constant 16384 : index
  scf.parallel (%i) = (%c0) to (%c256) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<256x16384xf32>
      memref.store %0, %y[%i] : memref<256xf32>
      %1 = arith.negf %0 : f32
      memref.store %1, %x[%i, %j] : memref<256x16384xf32>
    }
    scf.reduce
  }
  scf.parallel (%i) = (%c0) to (%c256) step (%c1) {
    %row = memref.alloca() : memref<16384xf32>
    scf.for %j = %c0 to %c16384 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<256x16384xf32>
      %1 = arith.negf %0 : f32
      memref.store %1, %row[%j] : memref<16384xf32>
    }
    scf.for %j = %c0 to %c16384 step %c1 {
      %0 = memref.load %row[%j] : memref<16384xf32>
      %1 = memref.load %y[%i] : memref<256xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%i] : memref<256xf32>
    }
    scf.reduce
  }
  return
}
