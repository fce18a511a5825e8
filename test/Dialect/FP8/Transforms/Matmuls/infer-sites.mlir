// RUN: fp8-opt %s --split-input-file --fp8-infer-sites | FileCheck %s -enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>

// A step of two layers, by dataflow alone: the first layer has no dgrad, and its wgrad
// is not mistaken for the product of an input with a frozen weight.
// CHECK-LABEL: func @step
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight) ins(%arg0, %arg1
// CHECK: fp8.matmul site("matmul1") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul1") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("matmul1") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output) ins(%arg0,
func.func @step(%x: tensor<4x8xf32>, %w0: tensor<8x16xf32>, %w1: tensor<16x16xf32>)
    -> (tensor<16x16xf32>, tensor<8x16xf32>) {
  %i = tensor.empty() : tensor<4x16xf32>
  %i0 = tensor.empty() : tensor<8x16xf32>
  %i1 = tensor.empty() : tensor<16x16xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %a = math.tanh %h : tensor<4x16xf32>
  %y = fp8.matmul ins(%a, %w1 : tensor<4x16xf32>, tensor<16x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dy = math.exp %y : tensor<4x16xf32>
  %dw1 = fp8.matmul ins(%a, %dy : tensor<4x16xf32>, tensor<4x16xf32>) outs(%i1 : tensor<16x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<16x16xf32>
  %da = fp8.matmul ins(%dy, %w1 : tensor<4x16xf32>, tensor<16x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x16xf32>
  %dh = arith.mulf %da, %a : tensor<4x16xf32>
  %dw0 = fp8.matmul ins(%x, %dh : tensor<4x8xf32>, tensor<4x16xf32>) outs(%i0 : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %dw1, %dw0 : tensor<16x16xf32>, tensor<8x16xf32>
}

// A frozen layer after a trained one: no product has both gradients, and the only sign of
// training is the gradient that is a result.
// CHECK-LABEL: func @frozen_after_trained
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul1") role(dgrad) kinds(grad_output, weight)
// CHECK: site("matmul0") role(wgrad) kinds(input, grad_output)
func.func @frozen_after_trained(%x: tensor<4x8xf32>, %w0: tensor<8x16xf32>, %w1: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %i = tensor.empty() : tensor<4x16xf32>
  %i0 = tensor.empty() : tensor<8x16xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %y = fp8.matmul ins(%h, %w1 : tensor<4x16xf32>, tensor<16x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dy = math.exp %y : tensor<4x16xf32>
  %dh = fp8.matmul ins(%dy, %w1 : tensor<4x16xf32>, tensor<16x16xf32>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x16xf32>
  %dw0 = fp8.matmul ins(%x, %dh : tensor<4x8xf32>, tensor<4x16xf32>) outs(%i0 : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %dw0 : tensor<8x16xf32>
}

// A weight that comes first and is recomputed with: the gradient that one of the two products
// has makes it the weight of both.
// CHECK-LABEL: func @recomputed_weight_first
// CHECK: site("matmul0") role(fprop) kinds(weight, input)
// CHECK: site("matmul0") role(fprop) kinds(weight, input)
// CHECK: site("matmul0") role(wgrad)
func.func @recomputed_weight_first(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<16x4xf32>, tensor<8x16xf32>) {
  %i = tensor.empty() : tensor<16x4xf32>
  %i0 = tensor.empty() : tensor<8x16xf32>
  %h = fp8.matmul ins(%w, %x : tensor<8x16xf32>, tensor<4x8xf32>) outs(%i : tensor<16x4xf32>) {indexing_maps = [#km, #nk, #mn]} -> tensor<16x4xf32>
  %again = fp8.matmul ins(%w, %x : tensor<8x16xf32>, tensor<4x8xf32>) outs(%i : tensor<16x4xf32>) {indexing_maps = [#km, #nk, #mn]} -> tensor<16x4xf32>
  %dh = math.exp %again : tensor<16x4xf32>
  %dw = fp8.matmul ins(%x, %dh : tensor<4x8xf32>, tensor<16x4xf32>) outs(%i0 : tensor<8x16xf32>) {indexing_maps = [#km, #nk, #mn]} -> tensor<8x16xf32>
  return %h, %dw : tensor<16x4xf32>, tensor<8x16xf32>
}

// Attention has no weight; its gradients read a gradient each.
// CHECK-LABEL: func @attention
// CHECK: fp8.matmul site("qkv") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("attn") role(other) kinds(input, input)
// CHECK: fp8.matmul site("attn#2") role(other) kinds(input, input)
// CHECK: fp8.matmul site("attn#2") role(other) kinds(grad_output, input)
// CHECK: fp8.matmul site("attn#2") role(other) kinds(input, grad_output)
// CHECK: fp8.matmul site("attn") role(other) kinds(grad_output, input)
// CHECK: fp8.matmul site("attn") role(other) kinds(grad_output, input)
func.func @attention(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %i = tensor.empty() : tensor<4x4xf32>
  %h = fp8.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(f)/jvp(qkv)/dot")
  %q = math.tanh %h : tensor<4x4xf32>
  %k = math.absf %h : tensor<4x4xf32>
  %v = math.exp %h : tensor<4x4xf32>
  %s = fp8.matmul ins(%q, %k : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("jit(f)/jvp(attn)/td,sd->ts/dot")
  %p = math.exp %s : tensor<4x4xf32>
  %o = fp8.matmul ins(%p, %v : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(f)/jvp(attn)/ts,sd->td/dot")
  %do = math.exp %o : tensor<4x4xf32>
  %dp = fp8.matmul ins(%do, %v : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("jit(f)/transpose(jvp(attn))/dot")
  %dv = fp8.matmul ins(%p, %do : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<4x4xf32> loc("jit(f)/transpose(jvp(attn))/dot")
  %ds = arith.mulf %dp, %p : tensor<4x4xf32>
  %dq = fp8.matmul ins(%ds, %k : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(f)/transpose(jvp(attn))/dot")
  %dk = fp8.matmul ins(%ds, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<4x4xf32> loc("jit(f)/transpose(jvp(attn))/dot")
  return %dq, %dk, %dv : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>

// Tied embedding and output: the output projection reads the weight as a gradient of
// the embedding would, but it has gradients of its own. Two sites, as they read the
// weight in two ways.
// CHECK-LABEL: func @tied
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul1") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul1") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("matmul1") role(wgrad) kinds(grad_output, input)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
func.func @tied(%onehot: tensor<4x32xf32>, %w: tensor<32x8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<32x8xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<4x32xf32>
  %l = tensor.empty() : tensor<32x8xf32>
  %e = fp8.matmul ins(%onehot, %w : tensor<4x32xf32>, tensor<32x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %h = math.tanh %e : tensor<4x8xf32>
  %y = fp8.matmul ins(%h, %w : tensor<4x8xf32>, tensor<32x8xf32>) outs(%j : tensor<4x32xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x32xf32>
  %dy = math.exp %y : tensor<4x32xf32>
  %dh = fp8.matmul ins(%dy, %w : tensor<4x32xf32>, tensor<32x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dw1 = fp8.matmul ins(%dy, %h : tensor<4x32xf32>, tensor<4x8xf32>) outs(%l : tensor<32x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<32x8xf32>
  %de = arith.mulf %dh, %h : tensor<4x8xf32>
  %dw0 = fp8.matmul ins(%onehot, %de : tensor<4x32xf32>, tensor<4x8xf32>) outs(%l : tensor<32x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<32x8xf32>
  %dw = arith.addf %dw0, %dw1 : tensor<32x8xf32>
  %new = arith.subf %w, %dw : tensor<32x8xf32>
  return %new : tensor<32x8xf32>
}

// The same, evaluated: nothing is a gradient.
// CHECK-LABEL: func @tied_inference
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul1") role(fprop) kinds(input, weight)
func.func @tied_inference(%ids: tensor<4x32xf32>, %w: tensor<32x8xf32>) -> tensor<4x32xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<4x32xf32>
  %onehot = math.floor %ids : tensor<4x32xf32>
  %e = fp8.matmul ins(%onehot, %w : tensor<4x32xf32>, tensor<32x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %h = math.tanh %e : tensor<4x8xf32>
  %y = fp8.matmul ins(%h, %w : tensor<4x8xf32>, tensor<32x8xf32>) outs(%j : tensor<4x32xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// Two microbatches are one site.
// CHECK-LABEL: func @microbatches
// CHECK-COUNT-2: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul0") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("matmul0") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
func.func @microbatches(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %xa = math.tanh %a : tensor<4x8xf32>
  %xb = math.tanh %b : tensor<4x8xf32>
  %ya = fp8.matmul ins(%xa, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %yb = fp8.matmul ins(%xb, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %loss = arith.addf %ya, %yb : tensor<4x8xf32>
  %ga = arith.mulf %ya, %loss : tensor<4x8xf32>
  %gb = arith.mulf %yb, %loss : tensor<4x8xf32>
  %dxa = fp8.matmul ins(%ga, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %dwa = fp8.matmul ins(%xa, %ga : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dxb = fp8.matmul ins(%gb, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %dwb = fp8.matmul ins(%xb, %gb : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dw = arith.addf %dwa, %dwb : tensor<8x8xf32>
  return %dw, %dxa, %dxb : tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Recomputed layers: the first product is computed again, and its gradients belong to
// either; of the second only the input is, and the wgrad is known by the gradient.
// CHECK-LABEL: func @recomputed
// CHECK: fp8.matmul site("a") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("b") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("a") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("b") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("b") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("a") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("a") role(dgrad) kinds(grad_output, weight)
func.func @recomputed(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("jvp(checkpoint)/a/dot_general")
  %a = math.tanh %h : tensor<4x8xf32>
  %y = fp8.matmul ins(%a, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("jvp(checkpoint)/b/dot_general")
  %dy = math.exp %y : tensor<4x8xf32>
  %h2 = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("transpose(jvp(checkpoint))/rematted_computation/a/dot_general")
  %a2 = math.tanh %h2 : tensor<4x8xf32>
  %dw1 = fp8.matmul ins(%a2, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32> loc("transpose(jvp(checkpoint))/b/dot_general")
  %da = fp8.matmul ins(%dy, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32> loc("transpose(jvp(checkpoint))/b/dot_general")
  %dh = arith.mulf %da, %a2 : tensor<4x8xf32>
  %dw0 = fp8.matmul ins(%x, %dh : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32> loc("transpose(jvp(checkpoint))/a/dot_general")
  %dx = fp8.matmul ins(%dh, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32> loc("transpose(jvp(checkpoint))/a/dot_general")
  return %dw0, %dw1, %dx : tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nk = affine_map<(m, n, k) -> (n, k)>

// Without gradients: what is computed by a product is no weight; of two plain operands the constant, then the one
// of lower rank, then the second. A carried operand is a cache.
// CHECK-LABEL: func @which_weight
// CHECK: role(fprop) kinds(input, weight) ins(%arg0, %{{[0-9]+}}
// CHECK: role(fprop) kinds(input, weight) ins(%arg0, %arg1
// CHECK: role(fprop) kinds(input, weight) ins(%arg2, %arg0
// CHECK: role(fprop) kinds(weight, input) ins(%arg0, %arg3
// CHECK: role(fprop) kinds(weight, input) ins(%cst
// CHECK: role(fprop) kinds(weight, input) ins(%arg0, %[[Y:[0-9]+]]
// CHECK: role(other) kinds(input, input) ins(%[[Y]], %arg2
// CHECK: role(other) kinds(input, input)
func.func @which_weight(%x: tensor<4x5xf32>, %y: tensor<5x6xf32>, %cache: tensor<7x4xf32> {tf.aliasing_output = 0 : i32},
                        %batched: tensor<2x5x3xf32>)
    -> (tensor<7x4xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<7x5xf32>, tensor<2x4x3xf32>, tensor<3x5xf32>, tensor<4x6xf32>, tensor<6x7xf32>, tensor<6x6xf32>) {
  %i = tensor.empty() : tensor<4x6xf32>
  %j = tensor.empty() : tensor<2x4x3xf32>
  %l = tensor.empty() : tensor<7x5xf32>
  %p = tensor.empty() : tensor<3x5xf32>
  %q = tensor.empty() : tensor<6x7xf32>
  %r = tensor.empty() : tensor<6x6xf32>
  %c = arith.constant dense<2.0> : tensor<3x4xf32>
  %t = math.tanh %y : tensor<5x6xf32>
  %0 = fp8.matmul ins(%x, %t : tensor<4x5xf32>, tensor<5x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x6xf32>
  %1 = fp8.matmul ins(%x, %y : tensor<4x5xf32>, tensor<5x6xf32>) outs(%i : tensor<4x6xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x6xf32>
  %2 = fp8.matmul ins(%cache, %x : tensor<7x4xf32>, tensor<4x5xf32>) outs(%l : tensor<7x5xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<7x5xf32>
  %3 = fp8.matmul ins(%x, %batched : tensor<4x5xf32>, tensor<2x5x3xf32>) outs(%j : tensor<2x4x3xf32>)
    {indexing_maps = [affine_map<(b, m, n, k) -> (m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]} -> tensor<2x4x3xf32>
  %4 = fp8.matmul ins(%c, %x : tensor<3x4xf32>, tensor<4x5xf32>) outs(%p : tensor<3x5xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<3x5xf32>
  %h = math.tanh %2 : tensor<7x5xf32>
  %5 = fp8.matmul ins(%x, %0 : tensor<4x5xf32>, tensor<4x6xf32>) outs(%y : tensor<5x6xf32>) {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, #kn, #mn]} -> tensor<5x6xf32>
  %6 = fp8.matmul ins(%0, %cache : tensor<4x6xf32>, tensor<7x4xf32>) outs(%q : tensor<6x7xf32>) {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, #nk, #mn]} -> tensor<6x7xf32>
  %7 = fp8.matmul ins(%0, %1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%r : tensor<6x6xf32>) {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, #kn, #mn]} -> tensor<6x6xf32>
  return %cache, %0, %1, %2, %3, %4, %1, %6, %7 : tensor<7x4xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<7x5xf32>, tensor<2x4x3xf32>, tensor<3x5xf32>, tensor<4x6xf32>, tensor<6x7xf32>, tensor<6x6xf32>
}

// A weight behind casts, a transpose, a broadcast, a reshape and a slice; sizes known
// at run time only.
// CHECK-LABEL: func @views_of_weights
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
func.func @views_of_weights(%ids: tensor<?x8xf32>, %w: tensor<3x128xf32>, %n: index, %layer: index) -> tensor<?x16xbf16> {
  %i = tensor.empty(%n) : tensor<?x16xbf16>
  %x = arith.truncf %ids : tensor<?x8xf32> to tensor<?x8xbf16>
  %t = math.tanh %x : tensor<?x8xbf16>
  %slice = tensor.extract_slice %w[%layer, 0] [1, 128] [1, 1] : tensor<3x128xf32> to tensor<128xf32>
  %reshaped = tensor.expand_shape %slice [[0, 1]] output_shape [16, 8] : tensor<128xf32> into tensor<16x8xf32>
  %e = tensor.empty() : tensor<8x16xbf16>
  %transposed = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                                iterator_types = ["parallel", "parallel"]}
      ins(%reshaped : tensor<16x8xf32>) outs(%e : tensor<8x16xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %r = arith.truncf %in : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<8x16xbf16>
  %cast = tensor.cast %transposed : tensor<8x16xbf16> to tensor<8x?xbf16>
  %y = fp8.matmul ins(%t, %cast : tensor<?x8xbf16>, tensor<8x?xbf16>) outs(%i : tensor<?x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<?x16xbf16>
  return %y : tensor<?x16xbf16>
}

// A global.
// CHECK-LABEL: func @global
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
memref.global "private" constant @w : memref<4x4xf32> = dense<1.0>
func.func @global(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  %t = math.tanh %x : tensor<4x4xf32>
  %m = memref.get_global @w : memref<4x4xf32>
  %w = bufferization.to_tensor %m restrict : memref<4x4xf32> to tensor<4x4xf32>
  %y = fp8.matmul ins(%t, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>

// Layers as a loop over stacked weights, their inputs kept in a stack for a second
// loop that runs backwards.
// CHECK-LABEL: func @layers_in_loops
// CHECK: scf.for
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: scf.for
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("matmul0") role(dgrad) kinds(grad_output, weight)
func.func @layers_in_loops(%x0: tensor<4x8xf32>, %w: tensor<3x8x8xf32>) -> tensor<3x8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %se = tensor.empty() : tensor<3x4x8xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%se : tensor<3x4x8xf32>) -> tensor<3x4x8xf32>
  %forward:2 = scf.for %n = %c0 to %c3 step %c1 iter_args(%x = %x0, %stack = %s0) -> (tensor<4x8xf32>, tensor<3x4x8xf32>) {
    %wn = tensor.extract_slice %w[%n, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<3x8x8xf32> to tensor<8x8xf32>
    %saved = tensor.insert_slice %x into %stack[%n, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<4x8xf32> into tensor<3x4x8xf32>
    %y = fp8.matmul ins(%x, %wn : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
    %a = math.tanh %y : tensor<4x8xf32>
    scf.yield %a, %saved : tensor<4x8xf32>, tensor<3x4x8xf32>
  }
  %dy0 = math.exp %forward#0 : tensor<4x8xf32>
  %ge = tensor.empty() : tensor<3x8x8xf32>
  %backward:2 = scf.for %n = %c0 to %c3 step %c1 iter_args(%dy = %dy0, %grads = %ge) -> (tensor<4x8xf32>, tensor<3x8x8xf32>) {
    %m = arith.subi %c2, %n : index
    %wm = tensor.extract_slice %w[%m, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<3x8x8xf32> to tensor<1x8x8xf32>
    %wf = tensor.collapse_shape %wm [[0, 1], [2]] : tensor<1x8x8xf32> into tensor<8x8xf32>
    %xs = tensor.extract_slice %forward#1[%m, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<1x4x8xf32>
    %xm = tensor.collapse_shape %xs [[0, 1], [2]] : tensor<1x4x8xf32> into tensor<4x8xf32>
    %dw = fp8.matmul ins(%xm, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
    %dx = fp8.matmul ins(%dy, %wf : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
    %g = tensor.insert_slice %dw into %grads[%m, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<8x8xf32> into tensor<3x8x8xf32>
    scf.yield %dx, %g : tensor<4x8xf32>, tensor<3x8x8xf32>
  }
  return %backward#1 : tensor<3x8x8xf32>
}

// Microbatches as a loop; a branch in the forward; the gradient depends on the product
// through a value that a body reads.
// CHECK-LABEL: func @microbatch_loop
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("matmul0") role(dgrad) kinds(grad_output, weight)
func.func @microbatch_loop(%xs: tensor<3x4x8xf32>, %w: tensor<8x8xf32>, %flag: i1) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %r:2 = scf.for %n = %c0 to %c3 step %c1 iter_args(%acc = %l, %dacc = %i) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
    %x = tensor.extract_slice %xs[%n, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<4x8xf32>
    %t = math.tanh %x : tensor<4x8xf32>
    %y = fp8.matmul ins(%t, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
    %b = scf.if %flag -> tensor<4x8xf32> {
      %p = math.exp %y : tensor<4x8xf32>
      scf.yield %p : tensor<4x8xf32>
    } else {
      scf.yield %y : tensor<4x8xf32>
    }
    %dy = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        outs(%i : tensor<4x8xf32>) {
    ^bb0(%out: f32):
      %row = linalg.index 0 : index
      %column = linalg.index 1 : index
      %e = tensor.extract %b[%row, %column] : tensor<4x8xf32>
      linalg.yield %e : f32
    } -> tensor<4x8xf32>
    %dw = fp8.matmul ins(%t, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
    %dx = fp8.matmul ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
    %sum = arith.addf %acc, %dw : tensor<8x8xf32>
    %dsum = arith.addf %dacc, %dx : tensor<4x8xf32>
    scf.yield %sum, %dsum : tensor<8x8xf32>, tensor<4x8xf32>
  }
  return %r#0, %r#1 : tensor<8x8xf32>, tensor<4x8xf32>
}

// The backward half of a step: its arguments are weights, activations and a gradient.
// CHECK-LABEL: func @backward_half
// CHECK: fp8.matmul site("fc1") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("fc1") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("attn") role(other) kinds(grad_output, input)
// CHECK: fp8.matmul site("attn") role(other) kinds(input, grad_output)
// CHECK: fp8.matmul site("fc0") role(wgrad) kinds(input, grad_output)
func.func @backward_half(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %h: tensor<4x8xf32>, %w: tensor<8x8xf32>, %q: tensor<4x8xf32>, %k: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %g = math.exp %dy : tensor<4x8xf32>
  %dw1 = fp8.matmul ins(%h, %g : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32> loc("transpose(jvp(fc1))/dot_general")
  %dh = fp8.matmul ins(%g, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32> loc("transpose(jvp(fc1))/dot_general")
  %ds = math.exp %dh : tensor<4x8xf32>
  %dq = fp8.matmul ins(%ds, %k : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32> loc("transpose(jvp(attn))/dot_general")
  %dk = fp8.matmul ins(%q, %ds : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32> loc("transpose(jvp(attn))/dot_general")
  %k2 = linalg.matmul ins(%dq, %dk : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) -> tensor<4x8xf32>
  %dw0 = fp8.matmul ins(%x, %k2 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32> loc("transpose(jvp(fc0))/dot_general")
  return %dw1, %dw0 : tensor<8x8xf32>, tensor<8x8xf32>
}

// The user's own names and roles win.
// CHECK-LABEL: func @user_roles
// CHECK: fp8.matmul site("matmul1") role(wgrad) kinds(grad_output, input)
// CHECK: fp8.matmul site("matmul0") role(other) kinds(input, input)
// CHECK-NOT: fp8.role
func.func @user_roles(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %g = math.exp %dy : tensor<4x8xf32>
  %0 = fp8.matmul ins(%g, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {fp8.role = "wgrad", indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %1 = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {fp8.role = "other", indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<4x8xf32>
}

// A role given to a forward product holds for its gradients.
// CHECK-LABEL: func @user_role_of_forward
// CHECK: fp8.matmul site("matmul0") role(other) kinds(input, input)
// CHECK: fp8.matmul site("matmul0") role(other) kinds(input, grad_output)
// CHECK: fp8.matmul site("matmul0") role(other) kinds(grad_output, input)
func.func @user_role_of_forward(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {fp8.role = "other", indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dx = fp8.matmul ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  return %dw, %dx : tensor<8x8xf32>, tensor<4x8xf32>
}

// A gradient that a parallel loop puts together, and a buffer that is shifted into
// itself, which is no stack.
// CHECK-LABEL: func @other_loops
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("matmul0") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("shift/other") role(fprop) kinds(input, weight)
func.func @other_loops(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b0: tensor<3x4x8xf32>)
    -> (tensor<8x8xf32>, tensor<4x8xf32>, tensor<3x4x8xf32>, tensor<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = scf.forall (%n) in (4) shared_outs(%out = %i) -> tensor<4x8xf32> {
    %row = tensor.extract_slice %y[%n, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
    %e = math.exp %row : tensor<1x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %out[%n, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<4x8xf32>
    }
  }
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dx = fp8.matmul ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %b:2 = scf.for %n = %c0 to %c2 step %c1 iter_args(%buffer = %b0, %r = %i) -> (tensor<3x4x8xf32>, tensor<4x8xf32>) {
    %m = arith.addi %n, %c1 : index
    %s = tensor.extract_slice %buffer[%m, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<4x8xf32>
    %shifted = tensor.insert_slice %s into %buffer[%n, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<4x8xf32> into tensor<3x4x8xf32>
    %z = fp8.matmul ins(%s, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("shift/other/dot")
    scf.yield %shifted, %z : tensor<3x4x8xf32>, tensor<4x8xf32>
  }
  return %dw, %dx, %b#0, %b#1 : tensor<8x8xf32>, tensor<4x8xf32>, tensor<3x4x8xf32>, tensor<4x8xf32>
}

// -----

// An embedding that is gathered, not multiplied: the gradient of the table is a product of a
// mask with a gradient.
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @gathered
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
// CHECK: fp8.matmul site("matmul0") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("matmul1") role(wgrad) kinds(input, grad_output)
func.func @gathered(%h: tensor<4x8xf32>, %ids: tensor<4x32xi1>, %table: tensor<32x8xf32>, %w: tensor<8x16xf32>)
    -> (tensor<32x8xf32>, tensor<8x16xf32>) {
  %x = math.tanh %h : tensor<4x8xf32>
  %e0 = tensor.empty() : tensor<4x16xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%e0 : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dy = math.exp %y : tensor<4x16xf32>
  %e1 = tensor.empty() : tensor<8x16xf32>
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>) outs(%e1 : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %dx = fp8.matmul ins(%dy, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%e2 : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %onehot = arith.uitofp %ids : tensor<4x32xi1> to tensor<4x32xf32>
  %e3 = tensor.empty() : tensor<32x8xf32>
  %dt = fp8.matmul ins(%onehot, %dx : tensor<4x32xf32>, tensor<4x8xf32>) outs(%e3 : tensor<32x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<32x8xf32>
  %new = arith.subf %table, %dt : tensor<32x8xf32>
  return %new, %dw : tensor<32x8xf32>, tensor<8x16xf32>
}

// -----

// A weight that is repeated over the batch: its gradient is a product per batch and a sum.
#bmk = affine_map<(b, m, n, k) -> (b, m, k)>
#bmn = affine_map<(b, m, n, k) -> (b, m, n)>
// CHECK-LABEL: func.func @repeated_weight
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul0") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
func.func @repeated_weight(%x0: tensor<2x4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<2x4x8xf32>) {
  %x = math.tanh %x0 : tensor<2x4x8xf32>
  %e0 = tensor.empty() : tensor<2x4x16xf32>
  %y = fp8.matmul ins(%x, %w : tensor<2x4x8xf32>, tensor<8x16xf32>) outs(%e0 : tensor<2x4x16xf32>)
    {indexing_maps = [#bmk, affine_map<(b, m, n, k) -> (k, n)>, #bmn]} -> tensor<2x4x16xf32>
  %dy = math.exp %y : tensor<2x4x16xf32>
  %e1 = tensor.empty() : tensor<2x4x8xf32>
  %dx = fp8.matmul ins(%dy, %w : tensor<2x4x16xf32>, tensor<8x16xf32>) outs(%e1 : tensor<2x4x8xf32>)
    {indexing_maps = [#bmk, affine_map<(b, m, n, k) -> (n, k)>, #bmn]} -> tensor<2x4x8xf32>
  %e2 = tensor.empty() : tensor<2x8x16xbf16>
  %dw = fp8.matmul ins(%x, %dy : tensor<2x4x8xf32>, tensor<2x4x16xf32>) outs(%e2 : tensor<2x8x16xbf16>)
    {indexing_maps = [affine_map<(b, m, n, k) -> (b, k, m)>, affine_map<(b, m, n, k) -> (b, k, n)>, #bmn]} -> tensor<2x8x16xbf16>
  %wide = arith.extf %dw : tensor<2x8x16xbf16> to tensor<2x8x16xf32>
  %zero = arith.constant 0.0 : f32
  %e3 = tensor.empty() : tensor<8x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%wide : tensor<2x8x16xf32>) outs(%i : tensor<8x16xf32>) dimensions = [0]
  return %sum, %dx : tensor<8x16xf32>, tensor<2x4x8xf32>
}

// -----

// Frozen weights have no wgrad; what is read by two sites of two names is two sites.
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @frozen
// CHECK: fp8.matmul site("matmul0") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul1") role(fprop) kinds(input, weight)
// CHECK: fp8.matmul site("matmul1") role(dgrad) kinds(grad_output, weight)
// CHECK: fp8.matmul site("matmul0") role(wgrad) kinds(input, grad_output)
func.func @frozen(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %frozen: tensor<8x16xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %h = math.tanh %y : tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<4x16xf32>
  %z = fp8.matmul ins(%h, %frozen : tensor<4x8xf32>, tensor<8x16xf32>) outs(%e1 : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dz = math.exp %z : tensor<4x16xf32>
  %dh = fp8.matmul ins(%dz, %frozen : tensor<4x16xf32>, tensor<8x16xf32>) outs(%e : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %dy = arith.mulf %dh, %y : tensor<4x8xf32>
  %e2 = tensor.empty() : tensor<8x8xf32>
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e2 : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  return %dw : tensor<8x8xf32>
}
