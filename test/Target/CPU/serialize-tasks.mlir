// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-serialize-tasks))' | FileCheck %s

// Loops in tasks run on one thread; others are left to all.
// CHECK-LABEL: func.func @rows
// CHECK: scf.parallel
// CHECK: scf.for %[[ROW:.+]] = %c0 to %c64 step %c8
// CHECK: memref.store %{{.+}}, %{{.+}}[%{{.+}}, %[[ROW]]]
// CHECK: fp8.tasks
// CHECK: scf.parallel (%{{.+}}, %{{.+}}) = (%c0, %c0) to (%c12, %c64)
func.func @rows(%x: memref<12x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%worker) = (%c0) to (%c12) step (%c1) {
    scf.parallel (%row) = (%c0) to (%c64) step (%c8) {
      memref.store %zero, %x[%worker, %row] : memref<12x64xf32>
      scf.reduce
    }
    scf.reduce
  } {fp8.tasks}
  scf.parallel (%i, %j) = (%c0, %c0) to (%c12, %c64) step (%c1, %c1) {
    memref.store %zero, %x[%i, %j] : memref<12x64xf32>
    scf.reduce
  }
  return
}
