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

// Attention has no weight; its gradients read a gradient each.
// CHECK-LABEL: func @attention
// CHECK: fp8.matmul site("attn") role(other) kinds(input, input)
// CHECK: fp8.matmul site("attn#2") role(other) kinds(input, input)
// CHECK: fp8.matmul site("attn#2") role(other) kinds(grad_output, input)
// CHECK: fp8.matmul site("attn#2") role(other) kinds(input, grad_output)
// CHECK: fp8.matmul site("attn") role(other) kinds(grad_output, input)
// CHECK: fp8.matmul site("attn") role(other) kinds(grad_output, input)
func.func @attention(%q0: tensor<4x4xf32>, %k0: tensor<4x4xf32>, %v0: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %i = tensor.empty() : tensor<4x4xf32>
  %q = math.tanh %q0 : tensor<4x4xf32>
  %k = math.tanh %k0 : tensor<4x4xf32>
  %v = math.tanh %v0 : tensor<4x4xf32>
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
