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

// -----

// A result that is in its carrier already was saved for nothing.
// CHECK-LABEL: func @in_place
// CHECK-NEXT: return{{$}}
func.func @in_place(%w: memref<4xf32> {tf.aliasing_output = 0 : i32}) -> memref<4xf32> {
  %saved = memref.alloc() : memref<4xf32>
  memref.copy %w, %saved : memref<4xf32> to memref<4xf32>
  memref.copy %saved, %w : memref<4xf32> to memref<4xf32>
  return %w : memref<4xf32>
}

// -----

// One of two results that change places has to be saved.
// CHECK-LABEL: func @swap
// CHECK-SAME: (%[[A:[a-z0-9]+]]: memref<4xf32> {{.*}}, %[[B:[a-z0-9]+]]: memref<4xf32>
// CHECK-NEXT: %[[SAVED:.*]] = memref.alloc() : memref<4xf32>
// CHECK-NEXT: memref.copy %[[B]], %[[SAVED]]
// CHECK-NEXT: memref.copy %[[A]], %[[B]]
// CHECK-NEXT: memref.copy %[[SAVED]], %[[A]]
// CHECK-NEXT: return{{$}}
func.func @swap(%a: memref<4xf32> {tf.aliasing_output = 0 : i32}, %b: memref<4xf32> {tf.aliasing_output = 1 : i32})
    -> (memref<4xf32>, memref<4xf32>) {
  %saved_a = memref.alloc() : memref<4xf32>
  memref.copy %a, %saved_a : memref<4xf32> to memref<4xf32>
  %saved_b = memref.alloc() : memref<4xf32>
  memref.copy %b, %saved_b : memref<4xf32> to memref<4xf32>
  memref.copy %saved_a, %b : memref<4xf32> to memref<4xf32>
  memref.copy %saved_b, %a : memref<4xf32> to memref<4xf32>
  return %a, %b : memref<4xf32>, memref<4xf32>
}

// -----

// A write of anything else than a known other buffer may be one of the saved memory.
// CHECK-LABEL: func @written
// CHECK: memref.copy %{{.*}}, %[[SAVED:.*]] : memref<4xf32> to memref<4xf32>
// CHECK: linalg.fill
// CHECK: memref.copy %[[SAVED]], %{{.*}} : memref<4xf32> to memref<4xf32>
func.func @written(%w: memref<4xf32> {tf.aliasing_output = 0 : i32}, %v: f32) -> memref<4xf32> {
  %saved = memref.alloc() : memref<4xf32>
  memref.copy %w, %saved : memref<4xf32> to memref<4xf32>
  linalg.fill ins(%v : f32) outs(%w : memref<4xf32>)
  memref.copy %saved, %w : memref<4xf32> to memref<4xf32>
  return %w : memref<4xf32>
}

// -----

// Two places of one buffer may overlap: what moves from one to the other is saved.
// CHECK-LABEL: func @overlapping
// CHECK: %[[SAVED:.*]] = memref.alloc() : memref<3xf32>
// CHECK: memref.copy %{{.*}}, %[[SAVED]]
// CHECK: memref.copy %[[SAVED]], %{{.*}}
func.func @overlapping(%w: memref<4xf32> {tf.aliasing_output = 0 : i32}) -> memref<4xf32> {
  %from = memref.subview %w[0] [3] [1] : memref<4xf32> to memref<3xf32, strided<[1]>>
  %to = memref.subview %w[1] [3] [1] : memref<4xf32> to memref<3xf32, strided<[1], offset: 1>>
  %saved = memref.alloc() : memref<3xf32>
  memref.copy %from, %saved : memref<3xf32, strided<[1]>> to memref<3xf32>
  memref.copy %saved, %to : memref<3xf32> to memref<3xf32, strided<[1], offset: 1>>
  return %w : memref<4xf32>
}
