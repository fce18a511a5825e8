// RUN: fp8-opt %s --split-input-file --pass-pipeline='builtin.module(fp8-infer-sites{explain})' -verify-diagnostics

// The rules by which backward products are found, one after the other (lib/Analysis/Sites/BackwardMatching.cpp).

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

func.func @both_gradients(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x16xf32>
  %j = tensor.empty() : tensor<8x16xf32>
  %l = tensor.empty() : tensor<4x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dy = math.exp %y : tensor<4x16xf32>
  // expected-remark@+1 {{wgrad of site 'matmul0', by the rule both-gradients}}
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>) outs(%j : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  // expected-remark@+1 {{dgrad of site 'matmul0', by the rule both-gradients}}
  %dx = fp8.matmul ins(%dy, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%l : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  return %dw, %dx : tensor<8x16xf32>, tensor<4x8xf32>
}

func.func @both_gradients_of_outer_cotangent(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %dy: tensor<4x16xf32>)
    -> (tensor<4x16xf32>, tensor<8x16xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x16xf32>
  %j = tensor.empty() : tensor<8x16xf32>
  %l = tensor.empty() : tensor<4x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  // expected-remark@+1 {{wgrad of site 'matmul0', by the rule both-gradients-of-outer-cotangent}}
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>) outs(%j : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  // expected-remark@+1 {{dgrad of site 'matmul0', by the rule both-gradients-of-outer-cotangent}}
  %dx = fp8.matmul ins(%dy, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%l : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  return %y, %dw, %dx : tensor<4x16xf32>, tensor<8x16xf32>, tensor<4x8xf32>
}

func.func @one_gradient(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %i = tensor.empty() : tensor<4x16xf32>
  %j = tensor.empty() : tensor<8x16xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dy = math.exp %y : tensor<4x16xf32>
  // expected-remark@+1 {{wgrad of site 'matmul0', by the rule one-gradient}}
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>) outs(%j : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %dw : tensor<8x16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The activation is computed again in another way, as the backward pass of a checkpoint may.
func.func @weight_gradient_by_sibling(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x16xf32>
  %j = tensor.empty() : tensor<8x16xf32>
  %l = tensor.empty() : tensor<4x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dy = math.exp %y : tensor<4x16xf32>
  // expected-remark@+1 {{dgrad of site 'matmul0', by the rule one-gradient}}
  %dx = fp8.matmul ins(%dy, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%l : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %square = arith.mulf %x, %x : tensor<4x8xf32>
  %again = math.sqrt %square : tensor<4x8xf32>
  // expected-remark@+1 {{wgrad of site 'matmul0', by the rule weight-gradient-by-sibling}}
  %dw = fp8.matmul ins(%again, %dy : tensor<4x8xf32>, tensor<4x16xf32>) outs(%j : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %dw, %dx : tensor<8x16xf32>, tensor<4x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The gradient's norm is part of the loss.
func.func @second_gradient(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}, %w1: tensor<8x8xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %a = math.tanh %h : tensor<4x8xf32>
  %y = fp8.matmul ins(%a, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  // expected-remark@+1 {{wgrad of site 'matmul1', by the rule both-gradients}}
  %dw1 = fp8.matmul ins(%a, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  // expected-remark@+1 {{dgrad of site 'matmul1', by the rule both-gradients}}
  %da = fp8.matmul ins(%dy, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %of_loss = arith.mulf %da, %a : tensor<4x8xf32>
  %of_norm = arith.divf %da, %a : tensor<4x8xf32>
  // expected-remark@+1 {{wgrad of site 'matmul0', by the rule second-gradient}}
  %first = fp8.matmul ins(%x, %of_loss : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  // expected-remark@+1 {{wgrad of site 'matmul0', by the rule one-gradient}}
  %second = fp8.matmul ins(%x, %of_norm : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dw0 = arith.addf %first, %second : tensor<8x8xf32>
  return %dw0, %dw1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// A frozen layer is computed again by another product and other operations.
func.func @gradient_in_new_value(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8x8xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %t = tensor.empty() : tensor<8x4xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %a = math.absf %h : tensor<4x8xf32>
  %y = fp8.matmul ins(%a, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %again = fp8.matmul ins(%w0, %x : tensor<8x8xf32>, tensor<4x8xf32>) outs(%t : tensor<8x4xf32>) {indexing_maps = [#km, #nk, #mn]} -> tensor<8x4xf32>
  %square = arith.mulf %again, %again : tensor<8x4xf32>
  %root = math.sqrt %square : tensor<8x4xf32>
  // expected-remark@+1 {{wgrad of site 'matmul1', by the rule gradient-in-new-value}}
  %dw = fp8.matmul ins(%root, %dy : tensor<8x4xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf32>
  %new = arith.subf %w1, %dw : tensor<8x8xf32>
  return %new : tensor<8x8xf32>
}
