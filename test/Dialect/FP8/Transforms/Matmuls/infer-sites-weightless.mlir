// RUN: fp8-opt %s --split-input-file --fp8-infer-sites | FileCheck %s

// Products without weight: one site where the names agree and the operands come from the
// same sites.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Two microbatches of an attention, with names of their scope alone, and without any.
// CHECK-LABEL: func @microbatches
// CHECK: site("h0/q")
// CHECK: site("h0/k")
// CHECK: site("h0/attention")
// CHECK: site("h0/attention#2")
// CHECK: site("h0/q")
// CHECK: site("h0/k")
// CHECK: site("h0/attention")
// CHECK: site("h0/attention#2")
func.func @microbatches(%x: tensor<2x4x4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %i = tensor.empty() : tensor<4x4xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<2x4x4xf32> to tensor<4x4xf32>
  %q0 = fp8.matmul ins(%x0, %wq : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("h0/q/dot_general")
  %k0 = fp8.matmul ins(%x0, %wk : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("h0/k/dot_general")
  %s0 = fp8.matmul ins(%q0, %k0 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("h0/attention/dot_general")
  %p0 = math.exp %s0 : tensor<4x4xf32>
  %y0 = fp8.matmul ins(%p0, %k0 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("h0/attention/dot_general")
  %x1 = tensor.extract_slice %x[1, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<2x4x4xf32> to tensor<4x4xf32>
  %q1 = fp8.matmul ins(%x1, %wq : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("h0/q/dot_general")
  %k1 = fp8.matmul ins(%x1, %wk : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("h0/k/dot_general")
  %s1 = fp8.matmul ins(%q1, %k1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("h0/attention/dot_general")
  %p1 = math.exp %s1 : tensor<4x4xf32>
  %y1 = fp8.matmul ins(%p1, %k1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32> loc("h0/attention/dot_general")
  return %y0, %y1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func @nameless
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(other)
// CHECK: site("matmul0") role(fprop)
// CHECK: site("matmul1") role(other)
func.func @nameless(%x0: tensor<4x4xf32>, %x1: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %i = tensor.empty() : tensor<4x4xf32>
  %q0 = fp8.matmul ins(%x0, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %s0 = fp8.matmul ins(%q0, %q0 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32>
  %q1 = fp8.matmul ins(%x1, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %s1 = fp8.matmul ins(%q1, %q1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32>
  return %s0, %s1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// Sizes known at run time: of which product they are taken does not matter.
// CHECK-LABEL: func @sizes
// CHECK: site("h0/q")
// CHECK: site("h0/attention")
// CHECK: site("h0/q")
// CHECK: site("h0/attention")
func.func @sizes(%x0: tensor<?x4xf32>, %x1: tensor<?x4xf32>, %w: tensor<4x4xf32>, %i: tensor<?x4xf32>, %s: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %q0 = fp8.matmul ins(%x0, %w : tensor<?x4xf32>, tensor<4x4xf32>) outs(%i : tensor<?x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<?x4xf32> loc("h0/q/dot_general")
  %y0 = fp8.matmul ins(%q0, %q0 : tensor<?x4xf32>, tensor<?x4xf32>) outs(%s : tensor<?x?xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<?x?xf32> loc("h0/attention/dot_general")
  %q1 = fp8.matmul ins(%x1, %w : tensor<?x4xf32>, tensor<4x4xf32>) outs(%i : tensor<?x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<?x4xf32> loc("h0/q/dot_general")
  %size = tensor.dim %y0, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%size) : tensor<?x4xf32>
  %a1 = linalg.exp ins(%q1 : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y1 = fp8.matmul ins(%a1, %a1 : tensor<?x4xf32>, tensor<?x4xf32>) outs(%s : tensor<?x?xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<?x?xf32> loc("h0/attention/dot_general")
  return %y0, %y1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// Two heads of one projection are two sites, in the forward code and where it is computed
// again from the projection that was kept.
// CHECK-LABEL: func @heads
// CHECK: site("h0/qk")
// CHECK: site("h0/attention")
// CHECK: site("h0/attention#2")
// CHECK: site("h0/attention")
// CHECK: site("h0/attention#2")
func.func @heads(%x: tensor<4x4xf32>, %w: tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %i = tensor.empty() : tensor<4x4xf32>
  %j = tensor.empty() : tensor<4x8xf32>
  %qk = fp8.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x8xf32>) outs(%j : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32> loc("h0/qk/dot_general")
  %a = tensor.extract_slice %qk[0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %b = tensor.extract_slice %qk[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %0 = fp8.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("h0/attention/dot_general")
  %1 = fp8.matmul ins(%b, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("h0/attention/dot_general")
  %2 = fp8.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("transpose(h0)/rematted_computation/attention/dot_general")
  %3 = fp8.matmul ins(%b, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32> loc("transpose(h0)/rematted_computation/attention/dot_general")
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Evaluation reads by name what training trains: the weight, not its second operand.
// CHECK-LABEL: func @evaluate
// CHECK: site("fc") role(fprop) kinds(weight, input)
func.func @evaluate(%w: tensor<8x4xf32> loc("w"), %x: tensor<4x4xf32> loc("x")) -> tensor<8x4xf32> {
  %i = tensor.empty() : tensor<8x4xf32>
  %y = fp8.matmul ins(%w, %x : tensor<8x4xf32>, tensor<4x4xf32>) outs(%i : tensor<8x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x4xf32> loc("fc/dot_general")
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func @train
// CHECK: site("fc") role(fprop) kinds(weight, input)
// CHECK: site("fc") role(wgrad) kinds(grad_output, input)
func.func @train(%w: tensor<8x4xf32> loc("w"), %x: tensor<4x4xf32> loc("x")) -> tensor<8x4xf32> {
  %i = tensor.empty() : tensor<8x4xf32>
  %y = fp8.matmul ins(%w, %x : tensor<8x4xf32>, tensor<4x4xf32>) outs(%i : tensor<8x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x4xf32> loc("fc/dot_general")
  %dy = math.exp %y : tensor<8x4xf32>
  %dw = fp8.matmul ins(%dy, %x : tensor<8x4xf32>, tensor<4x4xf32>) outs(%i : tensor<8x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<8x4xf32> loc("transpose(fc)/dot_general")
  return %dw : tensor<8x4xf32>
}
