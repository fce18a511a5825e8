// A recipe that the module's target has no kernels for is one error, at the first product that it would take.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp8-select-sites{recipe=#fp8.mx_scaling})'

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @main(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>)
      -> (tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<4x16xbf16>) {
    %0 = fp8.matmul site("kept") role(fprop) kinds(input, weight) kept("its own reason") ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
        outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
    // expected-error@+1 {{site 'first': mxfp8 scales have no kernel on sm_89, which has no MX tensor cores; use --recipe=block}}
    %1 = fp8.matmul site("first") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
        outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
    %2 = fp8.matmul site("second") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
        outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
    return %0, %1, %2 : tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<4x16xbf16>
  }
}

// -----

// No target is named: the recipe is for a later one to judge.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %0 = fp8.matmul site("first") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
      outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  return %0 : tensor<4x16xbf16>
}
