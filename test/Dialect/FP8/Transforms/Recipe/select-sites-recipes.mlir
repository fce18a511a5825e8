// Recipes of sites: the first pair that matches holds, before roles and the recipe of the program.
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{dgrad=bf16 site-recipes={[["h0/", #fp8.current_scaling], ["head", "none"], ["h1/fc", #fp8.custom<base = #fp8.row_scaling, wgrad = #fp8.mx_scaling>]]}})' | FileCheck %s
// RUN: not fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{site-recipes={[["h7", "none"]]}})' 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{site-recipes={[["h[0", "none"]]}})' 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{site-recipes={[["", "none"]]}})' 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{site-recipes={["h0"]}})' 2>&1 | FileCheck %s --check-prefix=PAIR
// RUN: not fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{site-recipes=7})' 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{site-recipes={[["h1/fc", "f16"]]}})' 2>&1 | FileCheck %s --check-prefix=TYPE

// UNUSED: error: no site matches --site-recipe=h7; the report lists the sites
// REGEX: error: --site-recipe=h[0 is not a regular expression: brackets ([ ]) not balanced
// EMPTY: error: --site-recipe==none needs a regex before the recipe
// PAIR: error: site-recipes has "h0", which is no pair of a regex and a recipe or word
// LIST: error: site-recipes=7 is not an array attribute of pairs
// TYPE: error: site 'h1/fc': --site-recipe=h1/fc=f16 keeps matmuls as they are, and the program has this one in bf16; say --site-recipe=h1/fc=bf16, or keep the site with --keep

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @main(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) {
    // CHECK: site("h0/fc") role(fprop) {{.*}} recipe(#fp8.current_scaling)
    %0 = fp8.matmul site("h0/fc") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    // CHECK: site("h0/fc") role(dgrad) {{.*}} recipe(#fp8.current_scaling)
    %1 = fp8.matmul site("h0/fc") role(dgrad) kinds(grad_output, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    // CHECK: site("h2/fc") role(fprop) {{.*}} recipe(#fp8.delayed_scaling)
    %2 = fp8.matmul site("h2/fc") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    // CHECK: site("h2/fc") role(dgrad) {{.*}} kept("--dgrad=bf16")
    %3 = fp8.matmul site("h2/fc") role(dgrad) kinds(grad_output, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    // CHECK: site("head") role(fprop) {{.*}} kept("--site-recipe=head=none")
    %4 = fp8.matmul site("head") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    // A recipe that the target has no kernels for.
    // CHECK: site("h1/fc") role(wgrad) {{.*}} kept("--site-recipe=h1/fc=custom: mxfp8 scales have no kernel on sm_89, which has no MX tensor cores;
    %5 = fp8.matmul site("h1/fc") role(wgrad) kinds(input, grad_output) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    // --sites is of all products.
    // CHECK: site("h0/attention") role(other) {{.*}} kept("no weight operand")
    %6 = fp8.matmul site("h0/attention") role(other) kinds(input, input) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    return
  }
}

// -----

// Square blocks of both operands do not fit one product, on any target.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @names(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) {
  %0 = fp8.matmul site("h0/fc") role(other) kinds(input, input) kept("of a site that is named") ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  %1 = fp8.matmul site("h1/fc") role(other) kinds(input, input) kept("of a site that is named") ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  %2 = fp8.matmul site("head") role(other) kinds(input, input) kept("of a site that is named") ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  return
}
