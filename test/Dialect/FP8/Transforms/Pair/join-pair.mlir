// RUN: fp8-opt --fp8-join-pair --split-input-file %s | FileCheck -enable-var-scope %s
// RUN: fp8-opt --fp8-join-pair --fp8-split-pair --split-input-file %s | FileCheck -enable-var-scope --check-prefix=SPLIT %s

// Functions that nothing marks stay.

// CHECK-LABEL: func.func @alone(
// CHECK-NOT: end_forward
func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// A transpose that backward makes again is forward's, though each has its own destination.
// The square is computed again: it stays in backward.

// CHECK-LABEL: func.func @merge(
// CHECK-SAME:    %[[W:.*]]: tensor<2x4xbf16>) -> (tensor<4x2xbf16> {jax.result_info = "y"}, tensor<4x2xbf16> {jax.result_info = "dx"})
// CHECK-NOT:     fp8.backward
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[W]] :
// CHECK:         %[[Y:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK:         %[[DY:.*]] = fp8.end_forward @merge_backward given(%[[Y]] : tensor<4x2xbf16>) -> tensor<4x2xbf16>
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK:         %[[DX:.*]] = arith.mulf %[[SQUARE]], %[[DY]]
// CHECK:         return %[[Y]], %[[DX]]
// CHECK:       func.func @merge_backward(%{{.*}}: tensor<2x4xbf16> {fp8.residual}, %{{.*}}: tensor<4x2xbf16>) -> (tensor<4x2xbf16> {jax.result_info = "dx"})
// CHECK:         ub.poison

// Two tensors of one size: the one that needs no further operation crosses.
// SPLIT-LABEL: func.func @merge(
// SPLIT-SAME:    -> (tensor<4x2xbf16> {jax.result_info = "y"}, tensor<4x2xbf16> {fp8.residual}) attributes {fp8.backward = @merge_backward}
// SPLIT:         %[[T:.*]] = linalg.transpose
// SPLIT:         return %{{.*}}, %[[T]]
// SPLIT:       func.func @merge_backward(%[[R:.*]]: tensor<4x2xbf16> {fp8.residual}, %[[DY:.*]]: tensor<4x2xbf16>) -> (tensor<4x2xbf16> {jax.result_info = "dx"})
// SPLIT-NEXT:    %[[SQUARE:.*]] = arith.mulf %[[R]], %[[R]]
// SPLIT-NEXT:    %[[DX:.*]] = arith.mulf %[[SQUARE]], %[[DY]]
// SPLIT-NEXT:    return %[[DX]]
func.func @merge(%w: tensor<2x4xbf16>)
    -> (tensor<4x2xbf16> {jax.result_info = "y"}, tensor<2x4xbf16> {fp8.residual})
    attributes {fp8.backward = @merge_backward} {
  %e = tensor.empty() : tensor<4x2xbf16>
  %t = linalg.transpose ins(%w : tensor<2x4xbf16>) outs(%e : tensor<4x2xbf16>) permutation = [1, 0]
  %y = arith.mulf %t, %t : tensor<4x2xbf16>
  return %y, %w : tensor<4x2xbf16>, tensor<2x4xbf16>
}
func.func @merge_backward(%w: tensor<2x4xbf16> {fp8.residual}, %dy: tensor<4x2xbf16>)
    -> (tensor<4x2xbf16> {jax.result_info = "dx"}) {
  %e = tensor.empty() : tensor<4x2xbf16>
  %t = linalg.transpose ins(%w : tensor<2x4xbf16>) outs(%e : tensor<4x2xbf16>) permutation = [1, 0]
  %y = arith.mulf %t, %t : tensor<4x2xbf16>
  %dx = arith.mulf %y, %dy : tensor<4x2xbf16>
  return %dx : tensor<4x2xbf16>
}

// -----

// A tensor that only backward casts is cast in forward: half as much crosses. Bodies of
// generics are compared, names of values in them are not.

// CHECK-LABEL: func.func @hoist(
// CHECK:         %[[B:.*]] = linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         %[[DY:.*]] = fp8.end_forward
// CHECK-NEXT:    %[[A:.*]] = arith.mulf %[[B]], %[[DY]]
// CHECK-NEXT:    %[[C:.*]] = arith.addf %[[B]], %[[A]]
// CHECK-NEXT:    return %{{.*}}, %[[C]]

// SPLIT-LABEL: func.func @hoist(
// SPLIT-SAME:    -> (tensor<f32>, tensor<4xbf16> {fp8.residual})
#id = affine_map<(i) -> (i)>
func.func @hoist(%x: tensor<4xf32>, %l: tensor<f32>) -> (tensor<f32>, tensor<4xf32> {fp8.residual})
    attributes {fp8.backward = @hoist_backward} {
  return %l, %x : tensor<f32>, tensor<4xf32>
}
func.func @hoist_backward(%x: tensor<4xf32> {fp8.residual}, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
  %e = tensor.empty() : tensor<4xbf16>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4xbf16>
  %a = arith.mulf %b, %dy : tensor<4xbf16>
  %f = tensor.empty() : tensor<4xbf16>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%f : tensor<4xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4xbf16>
  %d = arith.addf %c, %a : tensor<4xbf16>
  return %d : tensor<4xbf16>
}

// -----

// Residuals may be marked in any place, and functions stand in any order; carried arguments
// of backward keep their results. An argument may be handed over twice: it crosses once.

// CHECK-LABEL: func.func @any_backward(
// CHECK-LABEL: func.func @any(
// CHECK:         %[[R:.*]]:2 = fp8.end_forward @any_backward -> tensor<4xf32>, tensor<4xf32>

// SPLIT-LABEL: func.func @any_backward(
// SPLIT-SAME:    %[[X:.*]]: tensor<4xf32> {fp8.residual}, %[[M:.*]]: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %[[DY:.*]]: tensor<4xf32>)
// SPLIT-NEXT:    %[[A:.*]] = arith.mulf %[[X]], %[[DY]]
// SPLIT-NEXT:    %[[B:.*]] = arith.addf %[[M]], %[[A]]
// SPLIT-NEXT:    %[[C:.*]] = arith.addf %[[X]], %[[B]]
// SPLIT-NEXT:    return %[[C]], %[[B]]
// SPLIT-LABEL: func.func @any(
// SPLIT-SAME:    %[[X:.*]]: tensor<4xf32> {fp8.returned = 0 : i32}) -> (tensor<4xf32> {fp8.residual})
// SPLIT-NEXT:    return %[[X]] :
func.func @any_backward(%m: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %x: tensor<4xf32> {fp8.residual},
                        %dy: tensor<4xf32>, %z: tensor<4xf32> {fp8.residual}) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = arith.mulf %x, %dy : tensor<4xf32>
  %b = arith.addf %m, %a : tensor<4xf32>
  %c = arith.addf %z, %b : tensor<4xf32>
  return %c, %b : tensor<4xf32>, tensor<4xf32>
}
func.func @any(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual}, tensor<4xf32> {fp8.residual})
    attributes {fp8.backward = @any_backward} {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}
