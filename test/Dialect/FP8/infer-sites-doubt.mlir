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
  // expected-remark @+1 {{taken for a forward product: it depends on gradients, but neither dataflow nor names tell what it is; set fp8.role to say so}}
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
