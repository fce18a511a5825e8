// Loops that carry a float sum: their addends get loops of their own. The examples of the
// passes' descriptions are not repeated here.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-split-sums))' | FileCheck %s

// No longer than a chunk, with a maximum beside the sum, from an index that is not 0.
// CHECK-LABEL: func @short
// CHECK: %[[BUFFER:.+]] = memref.alloca() {alignment = 64 : i64} : memref<98xf32>
// CHECK: %[[MAX:.+]] = scf.for %[[K:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(%[[M:.+]] = %{{.+}}) -> (f32) {
// CHECK-NEXT: %[[I:.+]] = arith.addi %{{.+}}, %[[K]] : index
// CHECK-NEXT: memref.load %{{.+}}[%[[I]]]
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: %[[ADDEND:.+]] = arith.mulf
// CHECK-NEXT: arith.maximumf %[[M]]
// CHECK-NEXT: memref.store %[[ADDEND]], %[[BUFFER]][%[[K]]]
// CHECK-NEXT: scf.yield
// CHECK: scf.for
// CHECK-NEXT: memref.load %[[BUFFER]]
// CHECK-NEXT: memref.load %{{.+}}[] : memref<f32>
// CHECK-NEXT: arith.addf
// CHECK-NEXT: memref.store
// CHECK: return %[[MAX]]
func.func @short(%x: memref<100xf32> {llvm.noalias}, %y: memref<f32> {llvm.noalias}) -> f32 {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0.0 : f32
  %max = scf.for %i = %c2 to %c100 step %c1 iter_args(%m = %zero) -> (f32) {
    %in = memref.load %x[%i] : memref<100xf32>
    %sum = memref.load %y[] : memref<f32>
    %0 = arith.mulf %in, %in : f32
    %1 = arith.mulf %0, %in : f32
    %2 = arith.addf %sum, %1 : f32
    memref.store %2, %y[] : memref<f32>
    %3 = arith.maximumf %m, %in : f32
    scf.yield %3 : f32
  }
  return %max : f32
}

// A length that only the running program knows: the last chunk may be shorter.
// CHECK-LABEL: func @dynamic
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK: scf.for %[[BEGIN:.+]] = %{{.+}} to %[[N:.+]] step %[[CHUNK:.+]] {
// CHECK-NEXT: %[[LEFT:.+]] = arith.subi %[[N]], %[[BEGIN]]
// CHECK-NEXT: arith.minui %[[CHUNK]], %[[LEFT]]
func.func @dynamic(%x: memref<?xf32> {llvm.noalias}, %y: memref<4xf32> {llvm.noalias}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %in = memref.load %x[%i] : memref<?xf32>
    %sum = memref.load %y[%c1] : memref<4xf32>
    %0 = arith.mulf %in, %in : f32
    %1 = arith.mulf %0, %in : f32
    %2 = arith.addf %1, %sum : f32
    memref.store %2, %y[%c1] : memref<4xf32>
  }
  return
}

// A row is one chunk up to 4,096 elements; a longer one is several.
// CHECK-LABEL: func @rows
// CHECK: scf.parallel
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<4096xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK: scf.for %{{.+}} = %{{.+}} to %c4096
// CHECK: scf.for %{{.+}} = %{{.+}} to %c4096
// CHECK: scf.for %{{.+}} = %{{.+}} to %c4097{{.*}} step %c1024
func.func @rows(%x: memref<8x4097xf32> {llvm.noalias}, %y: memref<8xf32> {llvm.noalias}, %z: memref<8xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c4096 = arith.constant 4096 : index
  %c4097 = arith.constant 4097 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    scf.for %j = %c0 to %c4096 step %c1 {
      %in = memref.load %x[%i, %j] : memref<8x4097xf32>
      %sum = memref.load %y[%i] : memref<8xf32>
      %0 = arith.mulf %in, %in : f32
      %1 = arith.addf %sum, %0 : f32
      memref.store %1, %y[%i] : memref<8xf32>
    }
    scf.for %j = %c0 to %c4097 step %c1 {
      %in = memref.load %x[%i, %j] : memref<8x4097xf32>
      %sum = memref.load %z[%i] : memref<8xf32>
      %0 = arith.mulf %in, %in : f32
      %1 = arith.addf %sum, %0 : f32
      memref.store %1, %z[%i] : memref<8xf32>
    }
    scf.reduce
  }
  return
}

// The element differs between iterations; the sum is read besides; a single operation is cheaper than a buffer.
// CHECK-LABEL: func @kept
// CHECK-NOT: memref.alloca
func.func @kept(%x: memref<64xf32> {llvm.noalias}, %y: memref<f32> {llvm.noalias}, %z: memref<64xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %in = memref.load %x[%i] : memref<64xf32>
    %sum = memref.load %z[%i] : memref<64xf32>
    %0 = arith.mulf %in, %in : f32
    %1 = arith.mulf %0, %in : f32
    %2 = arith.addf %sum, %1 : f32
    memref.store %2, %z[%i] : memref<64xf32>
  }
  scf.for %i = %c0 to %c64 step %c1 {
    %in = memref.load %x[%i] : memref<64xf32>
    %sum = memref.load %y[] : memref<f32>
    %0 = arith.mulf %in, %in : f32
    %1 = arith.mulf %0, %in : f32
    %2 = arith.addf %sum, %1 : f32
    memref.store %2, %y[] : memref<f32>
    %3 = memref.load %y[] : memref<f32>
    memref.store %3, %z[%i] : memref<64xf32>
  }
  scf.for %i = %c0 to %c64 step %c1 {
    %in = memref.load %x[%i] : memref<64xf32>
    %sum = memref.load %y[] : memref<f32>
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %sum, %0 : f32
    memref.store %1, %y[] : memref<f32>
  }
  return
}

// The single operation in a row of a parallel loop: other rows run beside it. The buffer is that of a thread.
// CHECK-LABEL: func @row
// CHECK: scf.parallel
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<64xf32>
func.func @row(%x: memref<8x64xf32> {llvm.noalias}, %y: memref<8xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    scf.for %j = %c0 to %c64 step %c1 {
      %in = memref.load %x[%i, %j] : memref<8x64xf32>
      %sum = memref.load %y[%i] : memref<8xf32>
      %0 = arith.mulf %in, %in : f32
      %1 = arith.addf %sum, %0 : f32
      memref.store %1, %y[%i] : memref<8xf32>
    }
    scf.reduce
  }
  return
}

// An iteration reads the sum so far, or may do so: through a view, or where two arguments can be the same memory.
// CHECK-LABEL: func @overlapping
// CHECK-NOT: memref.alloca
func.func @overlapping(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32> {llvm.noalias}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %view = memref.subview %z[%n] [4] [1] : memref<64xf32> to memref<4xf32, strided<[1], offset: ?>>
  scf.for %i = %c0 to %c64 step %c1 {
    %in = memref.load %view[%c0] : memref<4xf32, strided<[1], offset: ?>>
    %sum = memref.load %z[%c1] : memref<64xf32>
    %0 = arith.mulf %in, %in : f32
    %1 = arith.mulf %0, %in : f32
    %2 = arith.addf %sum, %1 : f32
    memref.store %2, %z[%c1] : memref<64xf32>
  }
  scf.for %i = %c0 to %c64 step %c1 {
    %in = memref.load %x[%i] : memref<64xf32>
    %sum = memref.load %y[%c1] : memref<64xf32>
    %0 = arith.mulf %in, %in : f32
    %1 = arith.mulf %0, %in : f32
    %2 = arith.addf %sum, %1 : f32
    memref.store %2, %y[%c1] : memref<64xf32>
  }
  return
}
