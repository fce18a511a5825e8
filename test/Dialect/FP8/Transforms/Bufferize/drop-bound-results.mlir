// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-drop-bound-results | FileCheck %s -enable-var-scope

// CHECK-LABEL: func @bound(%arg0: memref<4xf32> {tf.aliasing_output = 0 : i32}, %arg1: memref<4xf32> {fp8.result = 1 : i32}) {
// CHECK: return{{$}}
func.func @bound(%w: memref<4xf32> {tf.aliasing_output = 0 : i32}, %out: memref<4xf32> {fp8.result = 1 : i32}) -> (memref<4xf32>, memref<?xf32>) {
  %cast = memref.cast %out : memref<4xf32> to memref<?xf32>
  return %w, %cast : memref<4xf32>, memref<?xf32>
}

// -----

// CHECK-LABEL: func private @helper(%arg0: memref<4xf32>) -> memref<4xf32>
func.func private @helper(%x: memref<4xf32>) -> memref<4xf32> {
  return %x : memref<4xf32>
}

// -----

// expected-error @below {{result 0 of 'elsewhere' was not computed in its destination}}
func.func @elsewhere(%out: memref<4xf32> {fp8.result = 0 : i32}) -> memref<4xf32> {
  %new = memref.alloc() : memref<4xf32>
  return %new : memref<4xf32>
}

// -----

// Results of dynamic shape are returned in memory of their own: an allocation as it is, but
// once; arguments and views as copies.
// CHECK-LABEL: func @dynamic
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<?xf32>, %{{.*}}) ->
// CHECK-SAME: (memref<?xf32> {fp8.result = 0 : i32}, memref<?xf32> {fp8.result = 2 : i32}, memref<?xf32> {fp8.result = 3 : i32})
// CHECK: %[[NEW:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK: %[[AGAIN:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?xf32>
// CHECK: memref.copy %[[NEW]], %[[AGAIN]]
// CHECK: %[[COPY:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?xf32>
// CHECK: memref.copy %[[X]], %[[COPY]]
// CHECK: return %[[NEW]], %[[AGAIN]], %[[COPY]]
func.func @dynamic(%x: memref<?xf32>, %out: memref<4xf32> {fp8.result = 1 : i32}, %n: index)
    -> (memref<?xf32>, memref<4xf32>, memref<?xf32>, memref<?xf32>) {
  %new = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %new : memref<?xf32> to memref<?xf32>
  return %new, %out, %new, %x : memref<?xf32>, memref<4xf32>, memref<?xf32>, memref<?xf32>
}
