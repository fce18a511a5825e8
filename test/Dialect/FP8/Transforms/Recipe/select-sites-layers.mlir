// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{first=1 last=1})' | FileCheck %s
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{first=3 last=1})' 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{first=9223372036854775807 last=1})' 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites{first=-1})' 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// Layers are counted by the first number that varies (h0, h2, h10), not by fc1 and fc2; they
// are ordered as numbers; a site without that number is in no layer.

// MANY: error: --first=3 and --last=1 name more than the 3 layers of this program
// HUGE: error: --first=9223372036854775807 and --last=1 name more than the 3 layers of this program
// NEGATIVE: error: --first and --last count layers and cannot be negative

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %i: tensor<4x4xf32>) {
  // CHECK: site("h0/fc1") {{.*}} kept("in the first layers, --first=1")
  fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#a, #b, #c]} -> tensor<4x4xf32>
  // CHECK: site("h0/fc2#2") {{.*}} kept("in the first layers, --first=1")
  fp8.matmul site("h0/fc2#2") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#a, #b, #c]} -> tensor<4x4xf32>
  // CHECK: site("h2/fc1") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins
  fp8.matmul site("h2/fc1") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#a, #b, #c]} -> tensor<4x4xf32>
  // CHECK: site("h10/only_here") {{.*}} kept("in the last layers, --last=1")
  fp8.matmul site("h10/only_here") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#a, #b, #c]} -> tensor<4x4xf32>
  // CHECK: site("h10/fc1") {{.*}} kept("in the last layers, --last=1")
  fp8.matmul site("h10/fc1") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#a, #b, #c]} -> tensor<4x4xf32>
  // CHECK: site("head") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins
  fp8.matmul site("head") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#a, #b, #c]} -> tensor<4x4xf32>
  return
}
