// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-fuse-attention{require=h.}))' -verify-diagnostics -o /dev/null

// A place that must be fused and is not.
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @required(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x4x6xf32>
  %stats = tensor.empty() : tensor<2x4xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x4xf32>) -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<2x4x8xf32>
  // expected-error @+1 {{attention of site 'h0' is required to be fused (--require-attention=h.) and stays written out: its scores or probabilities are results of the program}}
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x4x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x4x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%s : tensor<2x4x6xf32>) outs(%below : tensor<2x4xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %shifted = arith.subf %s, %maxes : tensor<2x4x6xf32>
  %exp = math.exp %shifted : tensor<2x4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x4x6xf32>) outs(%none : tensor<2x4xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x4xf32>) outs(%rows : tensor<2x4x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x4x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x4x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x4x8xf32>
  return %y, %p : tensor<2x4x8xf32>, tensor<2x4x6xf32>
}
