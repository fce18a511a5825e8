// RUN: fp8-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(fp8-parallelize-rows))' | FileCheck %s

// 8,192 elements: threads, each with temporaries of its own.
// CHECK-LABEL: func @large
// CHECK-NOT: memref.alloc()
// CHECK: scf.parallel (%{{.+}}, %{{.+}}) = (%{{.+}}, %{{.+}}) to (%{{.+}}, %{{.+}})
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK: } {fp8.kernel, fp8.row_elements = 64 : i64}
func.func @large(%x: memref<8x16x64xf32>) {
  scf.forall (%i, %j) in (8, 16) {
    %0 = memref.alloc() : memref<64xf32>
    %1 = memref.subview %x[%i, %j, 0] [1, 1, 64] [1, 1, 1] : memref<8x16x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    linalg.exp ins(%1 : memref<64xf32, strided<[1], offset: ?>>) outs(%0 : memref<64xf32>)
    linalg.exp ins(%0 : memref<64xf32>) outs(%1 : memref<64xf32, strided<[1], offset: ?>>)
  } {fp8.row_elements = 64 : i64}
  return
}

// -----

// One element fewer per row: one thread, and one set of temporaries for all rows.
// CHECK-LABEL: func @small
// CHECK: memref.alloc() : memref<63xf32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK: } {fp8.kernel, fp8.row_elements = 63 : i64}
func.func @small(%x: memref<8x16x63xf32>) {
  scf.forall (%i, %j) in (8, 16) {
    %0 = memref.alloc() : memref<63xf32>
    %1 = memref.subview %x[%i, %j, 0] [1, 1, 63] [1, 1, 1] : memref<8x16x63xf32> to memref<63xf32, strided<[1], offset: ?>>
    linalg.exp ins(%1 : memref<63xf32, strided<[1], offset: ?>>) outs(%0 : memref<63xf32>)
    linalg.exp ins(%0 : memref<63xf32>) outs(%1 : memref<63xf32, strided<[1], offset: ?>>)
  } {fp8.row_elements = 63 : i64}
  return
}

// -----

// A number of rows that only the running program knows: threads.
// CHECK-LABEL: func @unknown
// CHECK: scf.parallel
func.func @unknown(%n: index, %x: memref<?x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    memref.store %zero, %x[%i, %c0] : memref<?x8xf32>
  } {fp8.row_elements = 8 : i64}
  return
}

// -----

// A program's own loop is left to others.
// CHECK-LABEL: func @own
// CHECK: scf.forall
func.func @own(%x: memref<65536xf32>) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (65536) {
    memref.store %zero, %x[%i] : memref<65536xf32>
  }
  return
}

// -----

func.func @unknown_temporary(%n: index, %x: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (16) {
    // expected-error@+1 {{temporary 'memref<?xf32>' of a row must be of known size}}
    %0 = memref.alloc(%n) : memref<?xf32>
    memref.store %zero, %0[%c0] : memref<?xf32>
  } {fp8.row_elements = 8 : i64}
  return
}
