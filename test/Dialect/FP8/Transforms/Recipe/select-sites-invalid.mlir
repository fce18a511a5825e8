// A site that must become FP8 and cannot is an error where the user wrote it; so is a bad regex.
// RUN: fp8-opt %s -verify-diagnostics --pass-pipeline='builtin.module(fp8-select-sites{require=all})'
// RUN: fp8-opt %s -verify-diagnostics --pass-pipeline='builtin.module(fp8-select-sites{require=attention})'
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{keep=h[0})' 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{sites=h[0})' 2>&1 | FileCheck %s --check-prefix=SITES
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{require=nothing})' 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{sites=h7})' 2>&1 | FileCheck %s --check-prefix=SEVEN
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{keep=nothing})' 2>&1 | FileCheck %s --check-prefix=KEEP

// NOTHING: error: no site matches --require=nothing; the report lists the sites
// SEVEN: error: no site matches --sites=h7; the report lists the sites
// KEEP: warning: no site matches --keep=nothing; the report lists them
// REGEX: error: --keep=h[0 is not a regular expression: brackets ([ ]) not balanced
// SITES: error: --sites=h[0 is not a regular expression: brackets ([ ]) not balanced

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @sites(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %0 = fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  // expected-error-re@+1 {{site 'h0/attention' is required to be FP8 (--require={{all|attention}}) but stays in high precision: no weight operand}}
  %1 = fp8.matmul site("h0/attention") role(other) kinds(input, input) ins(%0, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  return %1 : tensor<8x8xbf16>
}
