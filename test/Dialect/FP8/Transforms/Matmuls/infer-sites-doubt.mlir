// RUN: fp8-opt %s --fp8-infer-sites -verify-diagnostics

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>

// A product of a gradient with a parameter that no forward product reads: part of the
// optimizer, or a gradient of something that dataflow does not show.
func.func @doubt(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %p: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dx = fp8.matmul ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  // expected-remark @+1 {{taken for a forward matmul: it depends on gradients, but neither dataflow nor names tell what it is; set fp8.role to say so}}
  %pre = fp8.matmul ins(%dw, %p : tensor<8x8xf32>, tensor<8x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf32>
  return %pre, %dx : tensor<8x8xf32>, tensor<4x8xf32>
}

// The user's word settles it.
func.func @settled(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %p: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %dx = fp8.matmul ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %pre = fp8.matmul ins(%dw, %p : tensor<8x8xf32>, tensor<8x8xf32>) outs(%l : tensor<8x8xf32>) {fp8.role = "other", indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf32>
  return %pre, %dx : tensor<8x8xf32>, tensor<4x8xf32>
}

// Gradients of a result that come from outside, one alone: as well a forward product of the same
// activation, whose result happens to be as large as a weight.
func.func @from_outside(%x: tensor<4x8xf32>, %w: tensor<8x12xf32>, %dy: tensor<4x12xf32>) -> (tensor<4x12xf32>, tensor<8x12xf32>) {
  %i = tensor.empty() : tensor<4x12xf32>
  %l = tensor.empty() : tensor<8x12xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x12xf32>) outs(%i : tensor<4x12xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x12xf32>
  // expected-remark @+1 {{taken for a forward matmul: it has the form of a gradient of site 'matmul0', but does not depend on its result, and no name tells what it is; set fp8.role to say so}}
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x12xf32>) outs(%l : tensor<8x12xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x12xf32>
  return %y, %dw : tensor<4x12xf32>, tensor<8x12xf32>
}

// Names that say so settle it.
func.func @from_outside_by_name(%x: tensor<4x8xf32>, %w: tensor<8x12xf32>, %dy: tensor<4x12xf32>) -> (tensor<4x12xf32>, tensor<8x12xf32>) {
  %i = tensor.empty() : tensor<4x12xf32>
  %l = tensor.empty() : tensor<8x12xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x12xf32>) outs(%i : tensor<4x12xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x12xf32> loc("jvp(fc)/dot_general")
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x12xf32>) outs(%l : tensor<8x12xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x12xf32> loc("transpose(jvp(fc))/dot_general")
  return %y, %dw : tensor<4x12xf32>, tensor<8x12xf32>
}

// The derivative of a gradient along a direction: a product with dy that no forward product reaches.
func.func @along_a_direction(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %v: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %i = tensor.empty() : tensor<4x8xf32>
  %l = tensor.empty() : tensor<8x8xf32>
  %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %dy = math.exp %y : tensor<4x8xf32>
  %dw = fp8.matmul ins(%x, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  %u = fp8.matmul ins(%v, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i : tensor<4x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xf32>
  %direction = math.sin %u : tensor<4x8xf32>
  // expected-remark @+1 {{taken for a matmul without a weight: it depends on gradients, but neither dataflow nor names tell what it is; set fp8.role to say so}}
  %along = fp8.matmul ins(%direction, %dy : tensor<4x8xf32>, tensor<4x8xf32>) outs(%l : tensor<8x8xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xf32>
  return %dw, %along : tensor<8x8xf32>, tensor<8x8xf32>
}
