// The matmuls that become FP8, and the reasons of the others.
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites)' | FileCheck %s --check-prefixes=CHECK,LINEAR
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{sites=all})' | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{sites=h[01]/fc})' | FileCheck %s --check-prefixes=CHECK,REGEX
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{keep=^h1/})' | FileCheck %s --check-prefixes=CHECK,KEEP
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{recipe=})' | FileCheck %s --check-prefixes=CHECK,NONE

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @sites
func.func @sites(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  // LINEAR: fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
  // ALL: fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
  // REGEX: fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
  // KEEP: fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
  // NONE: fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) kept("--recipe=none") ins(
  %0 = fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  // LINEAR: fp8.matmul site("h1/qkv") role(wgrad) kinds(input, grad_output) recipe(#fp8.delayed_scaling) ins(
  // REGEX: fp8.matmul site("h1/qkv") role(wgrad) kinds(input, grad_output) kept("does not match --sites=h[01]/fc") ins(
  // KEEP: fp8.matmul site("h1/qkv") role(wgrad) kinds(input, grad_output) kept("matches --keep=^h1/") ins(
  %1 = fp8.matmul site("h1/qkv") role(wgrad) kinds(input, grad_output) ins(%0, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  // LINEAR: fp8.matmul site("h1/attention") role(other) kinds(input, input) kept("no weight operand") ins(
  // ALL: fp8.matmul site("h1/attention") role(other) kinds(input, input) recipe(#fp8.delayed_scaling) ins(
  %2 = fp8.matmul site("h1/attention") role(other) kinds(input, input) ins(%1, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  // A reason that is there already stays.
  // CHECK: fp8.matmul site("h0/fc2") role(fprop) kinds(input, weight) kept("asked for") ins(
  %3 = fp8.matmul site("h0/fc2") role(fprop) kinds(input, weight) kept("asked for") ins(%2, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  return %3 : tensor<8x8xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @f64
func.func @f64(%a: tensor<8x8xf64>, %c: tensor<8x8xf64>) -> tensor<8x8xf64> {
  // LINEAR: kept("element type f64 has no FP8 matmul")
  %0 = fp8.matmul site("h0/fc") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xf64>, tensor<8x8xf64>)
      outs(%c : tensor<8x8xf64>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf64>
  return %0 : tensor<8x8xf64>
}
