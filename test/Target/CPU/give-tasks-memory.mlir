// RUN: fp8-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(fp8-give-tasks-memory))' | FileCheck %s

// 17 elements take 68 bytes: parts of 128 bytes begin at lines of the cache.
// CHECK-LABEL: func.func @scores
// CHECK: %[[ALL:.+]] = memref.alloc() {alignment = 64 : i64} : memref<1536xi8>
// CHECK: scf.parallel (%[[WORKER:.+]]) =
// CHECK: scf.for
// CHECK: %[[SIZE:.+]] = arith.constant 128 : index
// CHECK: %[[BEGIN:.+]] = arith.muli %[[WORKER]], %[[SIZE]]
// CHECK: memref.view %[[ALL]][%[[BEGIN]]][] : memref<1536xi8> to memref<17xf32>
// CHECK-NOT: memref.alloc
func.func @scores() {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  scf.parallel (%worker) = (%c0) to (%c12) step (%c1) {
    scf.for %block = %c0 to %c12 step %c1 {
      %scores = memref.alloc() : memref<17xf32>
      memref.store %zero, %scores[%c0] : memref<17xf32>
    }
    scf.reduce
  } {fp8.tasks}
  return
}

// -----

// 64 MiB for each of 24 workers would be more than 1 GiB: there are 16.
// CHECK-LABEL: func.func @large
// CHECK: %[[COUNT:.+]] = arith.constant 16 : index
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<1073741824xi8>
// CHECK: scf.parallel (%{{.+}}) = (%{{.+}}) to (%[[COUNT]])
func.func @large() {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  scf.parallel (%worker) = (%c0) to (%c24) step (%c1) {
    %scores = memref.alloc() : memref<16777216xf32>
    memref.store %zero, %scores[%c0] : memref<16777216xf32>
    scf.reduce
  } {fp8.tasks}
  return
}

// -----

func.func @dynamic(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  scf.parallel (%worker) = (%c0) to (%c12) step (%c1) {
    // expected-error@+1 {{memory 'memref<?xf32>' of a task must be of known size}}
    %scores = memref.alloc(%n) : memref<?xf32>
    scf.reduce
  } {fp8.tasks}
  return
}
