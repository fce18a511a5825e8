// A matmul that cannot become FP8 is an error.
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
func.func @parallel(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ten = arith.constant 10 : index
  scf.parallel (%i) = (%zero) to (%ten) step (%one) {
    // expected-error@+1 {{site 'fc' is inside 'scf.parallel', out of which no amax can be carried; use --recipe=current, or keep it with --keep}}
    %0 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  }
  return
}
