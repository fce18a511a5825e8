// RUN: fp8-opt %s --one-shot-bufferize="bufferize-function-boundaries" | FileCheck %s -enable-var-scope

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#swapped = affine_map<(m, n) -> (n, m)>

// Fused code reads an element before it writes the one at the same place: the argument is updated in place.
// CHECK-LABEL: func.func @update(
// CHECK-SAME: %[[W:[a-z0-9]*]]: memref<8x8xf32
// CHECK-NOT: memref.alloc
// CHECK: fp8.matmul {{.*}} epilogue_ins(%[[W]] : {{.*}}) outs(%[[W]] :
// CHECK-NOT: memref.copy
func.func @update(%w: tensor<8x8xf32> {bufferization.writable = true}, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %0 = fp8.matmul site("s") role(wgrad) ins(%x, %y : tensor<8x4xf32>, tensor<4x8xf32>) epilogue_ins(%w : tensor<8x8xf32>) outs(%w : tensor<8x8xf32>) {indexing_maps = [#a, #b, #c], epilogue_maps = [#id]} epilogue {
  ^bb0(%sum: f32, %old: f32):
    %new = arith.subf %old, %sum : f32
    fp8.yield %new : f32
  } -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The element at another place may have been written already: a copy.
// CHECK-LABEL: func.func @transposed(
// CHECK: memref.alloc
func.func @transposed(%w: tensor<8x8xf32> {bufferization.writable = true}, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %0 = fp8.matmul site("s") role(wgrad) ins(%x, %y : tensor<8x4xf32>, tensor<4x8xf32>) epilogue_ins(%w : tensor<8x8xf32>) outs(%w : tensor<8x8xf32>) {indexing_maps = [#a, #b, #c], epilogue_maps = [#swapped]} epilogue {
  ^bb0(%sum: f32, %old: f32):
    %new = arith.subf %old, %sum : f32
    fp8.yield %new : f32
  } -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// An operand of the product is read for every element: a copy.
// CHECK-LABEL: func.func @operand(
// CHECK: memref.alloc
func.func @operand(%w: tensor<8x8xf32> {bufferization.writable = true}, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = fp8.matmul site("s") role(fprop) ins(%w, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%w : tensor<8x8xf32>) {indexing_maps = [#a, #b, #c]} -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
