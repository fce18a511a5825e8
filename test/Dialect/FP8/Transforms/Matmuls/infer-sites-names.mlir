// RUN: fp8-opt %s --split-input-file --fp8-infer-sites | FileCheck %s

// Names from name stacks; every product here has a weight of its own.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#loop = loc("jit(step)/jvp()/while/body/closed_call")
#layer = loc("jit(step)/jvp(h7)/jit(mlp)")

// CHECK-LABEL: func @names
func.func @names(%x: tensor<4x4xf32>, %w: tensor<16x4x4xf32>, %v: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  // Transformations are unwrapped as deep as they nest; the primitive and components with an arrow go.
  %w0 = tensor.extract_slice %w[0, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // CHECK: fp8.matmul site("h0/fc1")
  %0 = fp8.matmul ins(%x, %w0 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(step)/vmap(jvp(h0))/fc1/btd,de->bte/dot_general")
  %t0 = math.tanh %0 : tensor<4x4xf32>
  // Slashes in parentheses do not split.
  %w1 = tensor.extract_slice %w[1, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // CHECK: fp8.matmul site("h1/attn/proj")
  %1 = fp8.matmul ins(%t0, %w1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(step)/jvp(h1/attn)/proj/dot_general")
  %t1 = math.tanh %1 : tensor<4x4xf32>
  // A prefix that is repeated after its transformation counts once.
  %w2 = tensor.extract_slice %w[2, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // CHECK: fp8.matmul site("h2/h2/fc")
  %2 = fp8.matmul ins(%t1, %w2 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(step)/jvp(h2)/checkpoint/h2/h2/fc/dot_general")
  %t2 = math.tanh %2 : tensor<4x4xf32>
  // Machinery goes.
  %w3 = tensor.extract_slice %w[3, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // CHECK: fp8.matmul site("h3/fc")
  %3 = fp8.matmul ins(%t2, %w3 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(step)//while/cond/branch_1_fun/jvp(jit(relu))/h3/fc/dot_general")
  %t3 = math.tanh %3 : tensor<4x4xf32>
  // Call sites: the caller's names come first.
  %w4 = tensor.extract_slice %w[4, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // CHECK: fp8.matmul site("h7/up")
  %4 = fp8.matmul ins(%t3, %w4 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc(callsite("up/dot_general" at #layer))
  %t4 = math.tanh %4 : tensor<4x4xf32>
  %w5 = tensor.extract_slice %w[5, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // CHECK: fp8.matmul site("inner/down")
  %5 = fp8.matmul ins(%t4, %w5 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc(callsite(callsite("down/dot_general" at "inner/closed_call") at #loop))
  %t5 = math.tanh %5 : tensor<4x4xf32>
  // Names may carry a position, and stand among fused locations.
  %w6 = tensor.extract_slice %w[6, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // CHECK: fp8.matmul site("blocks.0.qkv")
  %6 = fp8.matmul ins(%t5, %w6 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc(fused["model.py":3:4, "blocks.0.qkv/mm"("model.py":1:2)])
  %t6 = math.tanh %6 : tensor<4x4xf32>
  // Where nothing is left, products are counted.
  %w7 = tensor.extract_slice %w[7, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // CHECK: fp8.matmul site("matmul0")
  %7 = fp8.matmul ins(%t6, %w7 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(step)/jvp()/dot_general")
  %t7 = math.tanh %7 : tensor<4x4xf32>
  %w8 = tensor.extract_slice %w[8, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<16x4x4xf32> to tensor<4x4xf32>
  // A different way to use the weight is a site of its own, even without a name.
  // CHECK: fp8.matmul site("matmul1")
  %8 = fp8.matmul ins(%t7, %v : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc(unknown)
  return %8 : tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Weights tell sites of one name apart, names those of one weight; both alike are one
// site. The user's name wins, for the gradients too, and is not given twice.
// CHECK-LABEL: func @sites
// CHECK: fp8.matmul site("fc")
// CHECK: fp8.matmul site("fc#2")
// CHECK: fp8.matmul site("fc")
// CHECK: fp8.matmul site("head")
// CHECK: fp8.matmul site("mine") role(fprop)
// CHECK-NOT: fp8.site
// CHECK: fp8.matmul site("mine#2") role(fprop)
// CHECK: fp8.matmul site("mine") role(wgrad)
// CHECK: fp8.matmul site("special") role(dgrad)
// CHECK-NOT: fp8.site
func.func @sites(%x: tensor<4x4xf32>, %a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>, %d: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %i = tensor.empty() : tensor<4x4xf32>
  %0 = fp8.matmul ins(%x, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  %1 = fp8.matmul ins(%0, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  %2 = fp8.matmul ins(%1, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  %3 = fp8.matmul ins(%2, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("head/dot_general")
  %4 = fp8.matmul ins(%3, %c : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {fp8.site = "mine", indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  %5 = fp8.matmul ins(%4, %d : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("mine/dot_general")
  %g = math.exp %5 : tensor<4x4xf32>
  %6 = fp8.matmul ins(%3, %g : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  %7 = fp8.matmul ins(%g, %c : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {fp8.site = "special", indexing_maps = [#mk, affine_map<(m, n, k) -> (n, k)>, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  return %5, %6, %7 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Functions share sites by name: evaluation reads what training made.
// CHECK-LABEL: func @evaluate
// CHECK: fp8.matmul site("fc") role(fprop)
func.func @evaluate(%x: tensor<4x4xf32>, %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  %0 = fp8.matmul ins(%x, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  return %0 : tensor<4x4xf32>
}

// A number that is taken is not given again.
// CHECK-LABEL: func @taken_number
// CHECK: fp8.matmul site("fc")
// CHECK: fp8.matmul site("fc#3")
// CHECK: fp8.matmul site("fc#2")
func.func @taken_number(%x: tensor<4x4xf32>, %a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  %0 = fp8.matmul ins(%x, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  %1 = fp8.matmul ins(%0, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  %2 = fp8.matmul ins(%1, %c : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {fp8.site = "fc#2", indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// In a program whose names mark backward code, what a function without any such name computes is forward code:
// the second product of a tied pair has the form of a gradient of the first, and the type of x.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func @train
// CHECK: fp8.matmul site("fc") role(fprop)
// CHECK: fp8.matmul site("fc") role(wgrad)
func.func @train(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>) {
  %i = tensor.empty() : tensor<4x4xf32>
  %j = tensor.empty() : tensor<8x4xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jvp(fc)/dot_general")
  %g = math.exp %y : tensor<4x4xf32>
  %dw = fp8.matmul ins(%x, %g : tensor<4x8xf32>, tensor<4x4xf32>) outs(%j : tensor<8x4xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x4xf32> loc("transpose(jvp(fc))/dot_general")
  return %y, %dw : tensor<4x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func @evaluate_tied
// CHECK: fp8.matmul site("fc") role(fprop)
// CHECK: fp8.matmul site("out") role(fprop)
func.func @evaluate_tied(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %i = tensor.empty() : tensor<4x4xf32>
  %j = tensor.empty() : tensor<4x8xf32>
  %h = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("fc/dot_general")
  %e = math.exp %h : tensor<4x4xf32>
  %y = fp8.matmul ins(%e, %w : tensor<4x4xf32>, tensor<8x4xf32>) outs(%j : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32> loc("out/dot_general")
  return %y : tensor<4x8xf32>
}

// -----

// A matmul of an optimizer is no layer, though an operand is a weight.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func @update
func.func @update(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %i = tensor.empty() : tensor<4x4xf32>
  // CHECK: fp8.matmul site("fc") role(fprop)
  // CHECK-NOT: kept
  %y = fp8.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("jit(step)/fc/mm")
  // CHECK: fp8.matmul site("update(Muon)") role(other)
  // CHECK-SAME: kept("part of the optimizer's update")
  %z = fp8.matmul ins(%w, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("jit(step)/update(Muon)/mm")
  return %y, %z : tensor<4x4xf32>, tensor<4x4xf32>
}
