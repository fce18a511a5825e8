// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-pin-loop-buffers | FileCheck %s -enable-var-scope

// Two values that change places: both are read before either is written. The third only
// passes through and stays where it is.
// CHECK-LABEL: func @swap
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<4xf32>, %[[Y:[a-z0-9]+]]: memref<4xf32>, %[[Z:[a-z0-9]+]]: memref<4xf32>
// CHECK-DAG: %[[P:.*]] = memref.alloc()
// CHECK-DAG: %[[Q:.*]] = memref.alloc()
// CHECK-DAG: memref.copy %[[X]], %[[P]]
// CHECK-DAG: memref.copy %[[Y]], %[[Q]]
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %[[P]], %[[B:.*]] = %[[Q]], %[[C:.*]] = %[[Z]])
// CHECK: %[[T:.*]] = memref.alloc()
// CHECK: memref.copy %[[B]], %[[T]]
// CHECK: %[[U:.*]] = memref.alloc()
// CHECK: memref.copy %[[A]], %[[U]]
// CHECK: memref.copy %[[T]], %[[P]]
// CHECK: memref.copy %[[U]], %[[Q]]
// CHECK: scf.yield %[[P]], %[[Q]], %[[C]]
func.func @swap(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>, %c0: index, %c1: index, %n: index) {
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %z) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) {
    scf.yield %b, %a, %c : memref<4xf32>, memref<4xf32>, memref<4xf32>
  }
  return
}

// -----

// Both halves of a while loop hand over buffers of their own. Scalars are no buffers.
// CHECK-LABEL: func @while
// CHECK-SAME: (%[[X:.*]]: memref<4xf32>
// CHECK-DAG: %[[BEFORE:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK-DAG: %[[AFTER:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK: memref.copy %[[X]], %{{.*}}
// CHECK: scf.while (%[[I:.*]] = %{{.*}}, %[[OLD:.*]] = %[[P:.*]]) :
// CHECK: %[[COPY:.*]] = memref.alloc()
// CHECK: memref.copy %[[OLD]], %[[COPY]]
// CHECK: memref.copy %[[COPY]], %[[Q:.*]] :
// CHECK: scf.condition(%{{.*}}) %[[I]], %[[Q]]
// CHECK: %[[NEW:.*]] = memref.alloc() : memref<4xf32>
// CHECK: memref.copy %[[NEW]], %[[P]]
// CHECK: scf.yield %{{.*}}, %[[P]]
func.func @while(%x: memref<4xf32>, %c0: index, %c1: index, %n: index) {
  %r:2 = scf.while (%i = %c0, %old = %x) : (index, memref<4xf32>) -> (index, memref<4xf32>) {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i, %old : index, memref<4xf32>
  } do {
  ^bb0(%i: index, %old: memref<4xf32>):
    %next = arith.addi %i, %c1 : index
    %new = memref.alloc() : memref<4xf32>
    linalg.exp ins(%old : memref<4xf32>) outs(%new : memref<4xf32>)
    scf.yield %next, %new : index, memref<4xf32>
  }
  return
}

// -----

func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>, %c0: index, %c1: index, %n: index) {
  // expected-error @below {{the loop carries a value of dynamic shape, which is not supported yet}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> memref<?xf32> {
    scf.yield %y : memref<?xf32>
  }
  return
}
