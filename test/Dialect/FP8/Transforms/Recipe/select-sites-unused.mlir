// Options that no site fits are listed on the module in place of errors.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{sites=h7 keep=h8 require=h9 last=1 allow-unused site-recipes="[["fc", "none"], ["h6", "none"], ["f", #fp8.current_scaling]]"})' | FileCheck %s

// CHECK: module attributes {fp8.unused_options = [
// CHECK-SAME: {message = "no site matches --site-recipe=h6", option = "site-recipe", place = 1 : i64},
// CHECK-SAME: {message = "--site-recipe=f=current is for no site: earlier --site-recipe options match the same ones", option = "site-recipe", place = 2 : i64},
// CHECK-SAME: {message = "--first and --last need layers, but no number in the site names varies while the rest of the name repeats", option = "last"},
// CHECK-SAME: {message = "no site matches --sites=h7", option = "sites"},
// CHECK-SAME: {message = "no site matches --require=h9", option = "require"},
// CHECK-SAME: {message = "no site matches --keep=h8", option = "keep"}]}
// CHECK: fp8.matmul site("fc") role(fprop) kinds(input, weight) kept("does not match --sites=h7")
func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %y = fp8.matmul site("fc") role(fprop) kinds(input, weight)
    ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>)
    {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                      affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}
