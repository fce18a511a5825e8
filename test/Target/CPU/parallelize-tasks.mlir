// RUN: fp8-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(fp8-parallelize-tasks))' | FileCheck %s

// A worker for each of 24 tasks; it takes tasks while there are any.
// CHECK-LABEL: func.func @heads
// CHECK-SAME: %[[X:.+]]: memref<2x12xf32>
// CHECK: %[[TAKEN:.+]] = memref.alloc() {alignment = 64 : i64} : memref<1xi64>
// CHECK: memref.store %c0_i64, %[[TAKEN]]
// CHECK: scf.parallel (%{{.+}}) = (%{{.+}}) to (%c24{{(_[0-9])?}})
// CHECK: scf.while
// CHECK: %[[NEXT:.+]] = memref.atomic_rmw addi %{{.+}}, %[[TAKEN]]
// CHECK: %[[TASK:.+]] = arith.index_cast %[[NEXT]] : i64 to index
// CHECK: %[[LEFT:.+]] = arith.cmpi ult, %[[TASK]], %{{.+}} : index
// CHECK: scf.condition(%[[LEFT]]) %[[TASK]]
// CHECK: ^bb0(%[[INDEX:.+]]: index):
// CHECK: %[[PLACE:.+]]:2 = affine.delinearize_index %[[INDEX]] into (2, 12)
// CHECK: memref.store %{{.+}}, %[[X]][%[[PLACE]]#0, %[[PLACE]]#1]
// CHECK: } {fp8.computes = "attention", fp8.kernel, fp8.tasks}
func.func @heads(%x: memref<2x12xf32>) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%b, %h) in (2, 12) {
    memref.store %zero, %x[%b, %h] : memref<2x12xf32>
  } {fp8.tasks, fp8.computes = "attention"}
  return
}

// -----

// There are at most 256 workers, and other loops stay as they are.
// CHECK-LABEL: func.func @many
// CHECK-DAG: %[[ALL:.+]] = arith.constant 1000 : index
// CHECK-DAG: %[[WORKERS:.+]] = arith.constant 256 : index
// CHECK: scf.parallel (%{{.+}}) = (%{{.+}}) to (%[[WORKERS]])
// CHECK: arith.cmpi ult, %{{.+}}, %[[ALL]]
// CHECK: scf.forall
func.func @many(%x: memref<1000xf32>) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%h) in (1000) {
    memref.store %zero, %x[%h] : memref<1000xf32>
  } {fp8.tasks}
  scf.forall (%h) in (1000) {
    memref.store %zero, %x[%h] : memref<1000xf32>
  }
  return
}

// -----

func.func @unknown(%x: memref<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  // expected-error@+1 {{a loop over tasks must run from 0 to known numbers by 1, and have no results}}
  scf.forall (%h) in (%n) {
    memref.store %zero, %x[%h] : memref<?xf32>
  } {fp8.tasks}
  return
}
