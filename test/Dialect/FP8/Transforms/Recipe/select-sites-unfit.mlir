// A recipe that does not fit the kinds of a product is an error; as the recipe of a site it leaves the site high.
// RUN: fp8-opt %s -verify-diagnostics --pass-pipeline='builtin.module(fp8-select-sites{recipe=#fp8.block_scaling<x_block_scaling_dim=2>})'
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{site-recipes={[["fc", #fp8.block_scaling<x_block_scaling_dim = 2>]]}})' | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @main(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) {
  // CHECK: kept("--site-recipe=fc=block: at most one operand of a matmul has square blocks; set x_block_scaling_dim or w_block_scaling_dim = 1")
  // expected-error@+1 {{site 'fc': at most one operand of a matmul has square blocks; set x_block_scaling_dim or w_block_scaling_dim = 1}}
  %0 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  return
}
