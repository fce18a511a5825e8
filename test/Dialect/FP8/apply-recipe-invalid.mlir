// What cannot become FP8 is an error at the product.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe)'

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @nameless(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  // expected-error@+1 {{has no site, role or kinds; run fp8-infer-sites before fp8-apply-recipe}}
  %0 = fp8.matmul ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>) outs(%c : tensor<8x8xbf16>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  return %0 : tensor<8x8xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @loop(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ten = arith.constant 10 : index
  %result = scf.for %i = %zero to %ten step %one iter_args(%x = %a) -> tensor<8x8xbf16> {
    // expected-error@+1 {{site 'fc' is inside control flow, where FP8 is not supported yet; keep it with --keep}}
    %0 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    scf.yield %0 : tensor<8x8xbf16>
  }
  return %result : tensor<8x8xbf16>
}
