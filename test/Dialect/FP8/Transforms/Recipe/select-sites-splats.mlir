// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-select-sites)' | FileCheck %s

// An operand that is a constant where a condition holds, as masked scores of attention are: one number stands for its 2^42
// elements, which would be looked at for hours.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @masked
// CHECK: fp8.matmul site("masked") role(fprop) kinds(input, weight) kept("one-hot selection")
func.func @masked(%c: tensor<2097152x2097152xi1>, %w: tensor<2097152x8xf32>, %i: tensor<2097152x8xf32>) -> tensor<2097152x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<2097152x2097152xf32>
  %one = arith.constant dense<1.0> : tensor<2097152x2097152xf32>
  %x = arith.select %c, %one, %zero : tensor<2097152x2097152xi1>, tensor<2097152x2097152xf32>
  %y = fp8.matmul site("masked") role(fprop) kinds(input, weight) ins(%x, %w : tensor<2097152x2097152xf32>, tensor<2097152x8xf32>)
      outs(%i : tensor<2097152x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<2097152x8xf32>
  return %y : tensor<2097152x8xf32>
}
