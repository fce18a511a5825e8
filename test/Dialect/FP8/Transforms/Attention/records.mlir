// RUN: fp8-opt %s --mlir-disable-threading --pass-pipeline='builtin.module(func.func(fp8-fuse-attention))' | FileCheck %s

// The report gets the places of each function once: one thread runs the pass on both.
// CHECK: func.func @first({{.*}}) -> tensor<2x4x8xf32> attributes {{{.*}} = [{{{[^{}]*}}site = "first"}]}
// CHECK: func.func @second({{.*}}) -> tensor<2x4x8xf32> attributes {{{.*}} = [{{{[^{}]*}}site = "second"}]}
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @first(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("first") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %p = math.tanh %s : tensor<2x4x6xf32>
  %y = fp8.matmul site("first#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

func.func @second(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  %s = fp8.matmul site("second") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %p = math.tanh %s : tensor<2x4x6xf32>
  %y = fp8.matmul site("second#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
