// RUN: fp8-opt %s --split-input-file --fp8-infer-sites | FileCheck %s -enable-var-scope

// Matmuls that are computed again, and gradients beyond the one per operand that a matmul usually has.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A weight that is read transposed in a branch, where it looks as in a dgrad of the product before: the
// second branch computes the same again and has the gradients, so the first one is forward, too.
// CHECK-LABEL: func @tied_in_a_branch
// CHECK: site("matmul0") role(fprop)
// CHECK: scf.if
// CHECK: site("matmul1") role(fprop)
// CHECK: scf.if
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul1") role(wgrad)
// CHECK: site("matmul1") role(dgrad)
// CHECK: site("matmul0") role(wgrad)
func.func @tied_in_a_branch(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %flag: i1) -> tensor<8x8xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %y = scf.if %flag -> (tensor<4x8xf32>) {
    %p = fp8.matmul ins(%h, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
    %a = math.tanh %p : tensor<4x8xf32>
    scf.yield %a : tensor<4x8xf32>
  } else {
    scf.yield %h : tensor<4x8xf32>
  }
  %dy = math.exp %y : tensor<4x8xf32>
  %dh, %dw1 = scf.if %flag -> (tensor<4x8xf32>, tensor<8x8xf32>) {
    // The operands are swapped.
    %p = fp8.matmul ins(%w, %h : tensor<8x8xf32>, tensor<4x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#nk, #mk, #mn]} -> tensor<4x8xf32>
    %da = arith.mulf %dy, %p : tensor<4x8xf32>
    %dw = fp8.matmul ins(%da, %h : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
    %dx = fp8.matmul ins(%da, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
    scf.yield %dx, %dw : tensor<4x8xf32>, tensor<8x8xf32>
  } else {
    scf.yield %dy, %j : tensor<4x8xf32>, tensor<8x8xf32>
  }
  %dw0 = fp8.matmul ins(%x, %dh : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %sum = arith.addf %dw0, %dw1 : tensor<8x8xf32>
  return %sum : tensor<8x8xf32>
}

// A frozen layer is computed again by another product and another activation than before: the gradient
// is known by the weight whose new value it is, and by the products that the activation comes from.
// CHECK-LABEL: func @recomputed_otherwise
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(wgrad) kinds(input, grad_output)
func.func @recomputed_otherwise(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8x8xf32> {
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
  %dw = fp8.matmul ins(%root, %dy : tensor<8x4xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf32>
  %new = arith.subf %w1, %dw : tensor<8x8xf32>
  return %new : tensor<8x8xf32>
}

// The gradient's norm is part of the loss, so that the product has two gradients of its weight, which are
// added.
// CHECK-LABEL: func @penalty
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul1") role(wgrad)
// CHECK: site("matmul1") role(dgrad)
// CHECK: site("matmul0") role(wgrad) kinds(input, grad_output)
// CHECK: site("matmul0") role(wgrad) kinds(input, grad_output)
func.func @penalty(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}, %w1: tensor<8x8xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %a = math.tanh %h : tensor<4x8xf32>
  %y = fp8.matmul ins(%a, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %dw1 = fp8.matmul ins(%a, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %da = fp8.matmul ins(%dy, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %of_loss = arith.mulf %da, %a : tensor<4x8xf32>
  %of_norm = arith.divf %da, %a : tensor<4x8xf32>
  %first = fp8.matmul ins(%x, %of_loss : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %second = fp8.matmul ins(%x, %of_norm : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dw0 = arith.addf %first, %second : tensor<8x8xf32>
  return %dw0, %dw1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The same in a gradient of the user's own: its code has names of the backward pass, and none of the layer.
// CHECK-LABEL: func @own_gradient
// CHECK: site("frozen") role(fprop)
// CHECK: site("fc") role(fprop)
// CHECK: site("frozen") role(fprop)
// CHECK: site("fc") role(wgrad)
func.func @own_gradient(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8x8xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("jit(step)/frozen/dot_general")
  %a = math.tanh %h : tensor<4x8xf32>
  %y = fp8.matmul ins(%a, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("jit(step)/fc/dot_general")
  %dy = math.exp %y : tensor<4x8xf32>
  %h2 = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("jit(step)/transpose(jvp())/dot_general")
  %a2 = math.tanh %h2 : tensor<4x8xf32>
  %dw = fp8.matmul ins(%dy, %a2 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32> loc("jit(step)/transpose(jvp())/dot_general")
  return %dw : tensor<8x8xf32>
}

// -----

#btk = affine_map<(b, t, n, k) -> (b, t, k)>
#btn = affine_map<(b, t, n, k) -> (b, t, n)>
#kn = affine_map<(b, t, n, k) -> (k, n)>
#nk = affine_map<(b, t, n, k) -> (n, k)>

// The two gradients alone, of which names say that they are: the weight is the parameter of lower rank.
// CHECK-LABEL: func @two_gradients
// CHECK: site("fc") role(dgrad) kinds(grad_output, weight)
// CHECK: site("fc") role(wgrad) kinds(input, grad_output)
func.func @two_gradients(%w: tensor<8x12xf32>, %x: tensor<2x4x8xf32>, %dy: tensor<2x4x12xf32>) -> (tensor<2x4x8xf32>, tensor<8x12xf32>) {
  %i = tensor.empty() : tensor<2x4x8xf32>
  %j = tensor.empty() : tensor<8x12xf32>
  %dx = fp8.matmul ins(%dy, %w : tensor<2x4x12xf32>, tensor<8x12xf32>) outs(%i : tensor<2x4x8xf32>) {indexing_maps = [#btk, #nk, #btn]} -> tensor<2x4x8xf32> loc("transpose(jvp(fc))/dot_general")
  %dw = fp8.matmul ins(%x, %dy : tensor<2x4x8xf32>, tensor<2x4x12xf32>) outs(%j : tensor<8x12xf32>) {indexing_maps = [#btk, #btn, affine_map<(b, t, n, k) -> (k, n)>]} -> tensor<8x12xf32> loc("transpose(jvp(fc))/dot_general")
  return %dx, %dw : tensor<2x4x8xf32>, tensor<8x12xf32>
}
