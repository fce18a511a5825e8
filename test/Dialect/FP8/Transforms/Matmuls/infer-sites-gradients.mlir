// RUN: fp8-opt %s --split-input-file --fp8-infer-sites | FileCheck %s

// The layer of each gradient, where layers are alike and nothing has a name.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A gradient belongs to the weight whose new value it goes into: through a sum, a moment and
// the norm that scales all gradients alike.
// CHECK-LABEL: func @carried
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul1") role(wgrad)
// CHECK: site("matmul0") role(wgrad)
func.func @carried(%x: tensor<4x8xf32>, %v: tensor<8x8xf32> {tf.aliasing_output = 1 : i32}, %w: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}, %zero: tensor<f32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %a = fp8.matmul ins(%x, %v : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %b = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %y = arith.addf %a, %b : tensor<4x8xf32>
  %da = math.exp %y : tensor<4x8xf32>
  %db = math.tanh %y : tensor<4x8xf32>
  %dw = fp8.matmul ins(%x, %db : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dv = fp8.matmul ins(%x, %da : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %square = arith.mulf %dv, %dw : tensor<8x8xf32>
  %norm = linalg.reduce ins(%square : tensor<8x8xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1]
    (%in: f32, %out: f32) {
      %sum = arith.addf %in, %out : f32
      linalg.yield %sum : f32
    }
  %norms = linalg.broadcast ins(%norm : tensor<f32>) outs(%j : tensor<8x8xf32>) dimensions = [0, 1]
  %clipped_v = arith.divf %dv, %norms : tensor<8x8xf32>
  %clipped_w = arith.divf %dw, %norms : tensor<8x8xf32>
  %new_v = arith.subf %v, %clipped_v : tensor<8x8xf32>
  %new_w = arith.subf %w, %clipped_w : tensor<8x8xf32>
  return %new_w, %new_v : tensor<8x8xf32>, tensor<8x8xf32>
}

// The gradient of q has the form of a gradient of k, but s = q · k^T differentiates each by its own product.
// CHECK-LABEL: func @attention
// CHECK: site("matmul0") role(fprop) {{.*}} ins(%arg0, %arg1
// CHECK: site("matmul1") role(fprop) {{.*}} ins(%arg0, %arg2
// CHECK: site("matmul2") role(other) kinds(input, input)
// CHECK: site("matmul2") role(other)
// CHECK: site("matmul2") role(other)
// CHECK: site("matmul1") role(wgrad)
// CHECK: site("matmul0") role(wgrad)
func.func @attention(%x: tensor<4x8xf32>, %wq: tensor<8x8xf32>, %wk: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %l = tensor.empty() : tensor<4x4xf32>
  %q = fp8.matmul ins(%x, %wq : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %k = fp8.matmul ins(%x, %wk : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %s = fp8.matmul ins(%q, %k : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32>
  %ds = math.exp %s : tensor<4x4xf32>
  %dq = fp8.matmul ins(%ds, %k : tensor<4x4xf32>, tensor<4x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dk = fp8.matmul ins(%ds, %q : tensor<4x4xf32>, tensor<4x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<4x8xf32>
  %dwk = fp8.matmul ins(%x, %dk : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dwq = fp8.matmul ins(%x, %dq : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  return %dwq, %dwk : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A wgrad reads what was computed again from a frozen layer; the forward product that it
// belongs to is not, and there is no dgrad.
// CHECK-LABEL: func @frozen_recomputed
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(wgrad) kinds(grad_output, input)
func.func @frozen_recomputed(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8x8xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %a = math.tanh %h : tensor<4x8xf32>
  %y = fp8.matmul ins(%a, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %h2 = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %a2 = math.tanh %h2 : tensor<4x8xf32>
  %dw = fp8.matmul ins(%dy, %a2 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  return %dw : tensor<8x8xf32>
}

// The same where a transpose is folded into one product and not into the other, and a cast is
// written in another way.
// CHECK-LABEL: func @recomputed_in_another_layout
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(wgrad) kinds(grad_output, input)
func.func @recomputed_in_another_layout(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8x8xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %t = tensor.empty() : tensor<8x4xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %n = tensor.empty() : tensor<4x8xbf16>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %narrow = arith.truncf %h : tensor<4x8xf32> to tensor<4x8xbf16>
  %tanh = math.tanh %narrow : tensor<4x8xbf16>
  %a = arith.extf %tanh : tensor<4x8xbf16> to tensor<4x8xf32>
  %y = fp8.matmul ins(%a, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %turned = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%t : tensor<8x4xf32>) {indexing_maps = [#mk, #kn, affine_map<(m, n, k) -> (n, m)>]} -> tensor<8x4xf32>
  %h2 = linalg.transpose ins(%turned : tensor<8x4xf32>) outs(%i : tensor<4x8xf32>) permutation = [1, 0]
  %narrow2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%h2 : tensor<4x8xf32>) outs(%n : tensor<4x8xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %r = arith.truncf %in : f32 to bf16
      linalg.yield %r : bf16
  } -> tensor<4x8xbf16>
  %tanh2 = math.tanh %narrow2 : tensor<4x8xbf16>
  %a2 = arith.extf %tanh2 : tensor<4x8xbf16> to tensor<4x8xf32>
  %dw = fp8.matmul ins(%dy, %a2 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  return %dw : tensor<8x8xf32>
}

// The same in two loops: the second one reads what the first one stacked, from the end.
// CHECK-LABEL: func @recomputed_in_a_loop
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(wgrad) kinds(grad_output, input)
func.func @recomputed_in_a_loop(%x: tensor<4x8xf32>, %w0: tensor<2x8x8xf32>, %w1: tensor<2x8x8xf32> {tf.aliasing_output = 0 : i32}, %stack: tensor<2x4x8xf32>) -> tensor<2x8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %e = tensor.empty() : tensor<2x8x8xf32>
  %y, %xs = scf.for %n = %c0 to %c2 step %c1 iter_args(%in = %x, %s = %stack) -> (tensor<4x8xf32>, tensor<2x4x8xf32>) {
    %v0 = tensor.extract_slice %w0[%n, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> to tensor<8x8xf32>
    %v1 = tensor.extract_slice %w1[%n, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> to tensor<8x8xf32>
    %h = fp8.matmul ins(%in, %v0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
    %a = math.tanh %h : tensor<4x8xf32>
    %out = fp8.matmul ins(%a, %v1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
    %next = tensor.insert_slice %in into %s[%n, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<4x8xf32> into tensor<2x4x8xf32>
    scf.yield %out, %next : tensor<4x8xf32>, tensor<2x4x8xf32>
  }
  %loss = math.exp %y : tensor<4x8xf32>
  %dw = scf.for %n = %c0 to %c2 step %c1 iter_args(%g = %e) -> (tensor<2x8x8xf32>) {
    %back = arith.subi %c1, %n : index
    %in = tensor.extract_slice %xs[%back, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<2x4x8xf32> to tensor<4x8xf32>
    %v0 = tensor.extract_slice %w0[%back, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> to tensor<8x8xf32>
    %h = fp8.matmul ins(%in, %v0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
    %a = math.tanh %h : tensor<4x8xf32>
    %dw1 = fp8.matmul ins(%loss, %a : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
    %next = tensor.insert_slice %dw1 into %g[%back, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<8x8xf32> into tensor<2x8x8xf32>
    scf.yield %next : tensor<2x8x8xf32>
  }
  return %dw : tensor<2x8x8xf32>
}

// The loss is computed elsewhere: dy is an argument, which no forward result reaches. Nothing
// between the layers does either.
// CHECK-LABEL: func @tangent
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(fprop)
// CHECK: site("matmul1") role(wgrad) kinds(input, grad_output)
// CHECK: site("matmul1") role(dgrad) kinds(grad_output, weight)
// CHECK: site("matmul0") role(wgrad) kinds(input, grad_output)
// CHECK: site("matmul0") role(dgrad) kinds(grad_output, weight)
func.func @tangent(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %dy: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %y = fp8.matmul ins(%h, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dw1 = fp8.matmul ins(%h, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dh = fp8.matmul ins(%dy, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %dw0 = fp8.matmul ins(%x, %dh : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dx = fp8.matmul ins(%dh, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  return %y, %dw0, %dw1, %dx : tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>
}

// A backward function alone: what forward code computes again is the activation, though it
// is computed, and dy an argument.
// CHECK-LABEL: func @backward
// CHECK: site("h/fc1") role(fprop)
// CHECK: site("h/fc2") role(wgrad) kinds(grad_output, input)
func.func @backward(%x: tensor<4x8xf32>, %w0: tensor<8x8xf32>, %dy: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x8xf32>
  %h = fp8.matmul ins(%x, %w0 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("transpose(jvp(h))/checkpoint/rematted_computation/fc1/dot_general")
  %a = math.tanh %h : tensor<4x8xf32>
  %dw = fp8.matmul ins(%dy, %a : tensor<4x8xf32>, tensor<4x8xf32>) outs(%j : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32> loc("transpose(jvp(h))/checkpoint/fc2/dot_general")
  return %dw : tensor<8x8xf32>
}
