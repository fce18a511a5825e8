// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-allocate-dynamic | FileCheck %s -enable-var-scope

// The caller gives the result; 12 bytes times what is asked for come from the heap,
// and all bits where that is too much to count.
// CHECK-DAG: func private @fp8_abi_allocate(!llvm.ptr, i64) -> !llvm.ptr
// CHECK-DAG: func private @fp8_abi_allocate_result(!llvm.ptr, i64, !llvm.ptr, i64) -> !llvm.ptr
// CHECK-DAG: func private @fp8_abi_free(!llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<?x3xf32>, %[[N:[a-z0-9]+]]: index, %[[FRAME:[a-z0-9]+]]: !llvm.ptr) -> i32
// CHECK-SAME: fp8.allocated_results = {"1" = memref<?x3xf32>}
// CHECK: %[[ROWS:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK: %[[TWELVE:.*]] = arith.constant 12 : i64
// CHECK: %[[ALL:.*]] = arith.constant -1 : i64
// CHECK: %[[LOW:.*]], %[[HIGH:.*]] = arith.mului_extended %[[TWELVE]], %[[ROWS]]
// CHECK: %[[MANY:.*]] = arith.cmpi ne, %[[HIGH]]
// CHECK: arith.select %[[MANY]], %[[ALL]], %[[LOW]]
// CHECK: %[[T:.*]] = call @fp8_abi_allocate(%[[FRAME]], %{{.*}})
// CHECK: %[[GIVEN:.*]] = llvm.icmp "ne" %[[T]]
// CHECK: cf.assert %[[GIVEN]], "out of memory for a temporary"
// CHECK: %[[SHAPE:.*]] = llvm.alloca
// CHECK: %[[R:.*]] = call @fp8_abi_allocate_result(%[[FRAME]], %{{.*}}, %[[SHAPE]], %{{.*}})
// CHECK: cf.assert %{{.*}}, "no memory for result 1"
// CHECK: call @fp8_abi_free
// CHECK: %[[OK:.*]] = arith.constant 0 : i32
// CHECK: return %[[OK]] : i32
func.func @main(%x: memref<?x3xf32>, %n: index) -> (memref<?x3xf32> {fp8.result = 1 : i32}) {
  %t = memref.alloc(%n) : memref<?x3xf32>
  memref.copy %x, %t : memref<?x3xf32> to memref<?x3xf32>
  %r = memref.alloc(%n) : memref<?x3xf32>
  memref.copy %t, %r : memref<?x3xf32> to memref<?x3xf32>
  memref.dealloc %t : memref<?x3xf32>
  return %r : memref<?x3xf32>
}

// -----

// An entry point that cannot fail stays as it is.
// CHECK-LABEL: func @static(%arg0: memref<4xf32>) {
func.func @static(%x: memref<4xf32>) {
  %t = memref.alloc() : memref<4xf32>
  memref.copy %x, %t : memref<4xf32> to memref<4xf32>
  return
}

// -----

// CHECK-LABEL: func @asserts(%arg0: i1, %arg1: !llvm.ptr) -> i32
func.func @asserts(%good: i1) {
  cf.assert %good, "bad"
  return
}

// -----

// expected-error @below {{'unmarked' returns values: run fp8-bind-results before bufferization}}
func.func @unmarked(%x: memref<?xf32>) -> memref<?xf32> {
  return %x : memref<?xf32>
}

// -----

// expected-error @below {{result 0 of 'argument' is no allocation of its own: run fp8-drop-bound-results after bufferization}}
func.func @argument(%x: memref<?xf32>) -> (memref<?xf32> {fp8.result = 0 : i32}) {
  return %x : memref<?xf32>
}
