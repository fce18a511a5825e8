// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-fuse-attention))' | FileCheck %s

// Padding beside a causal mask: keys behind a row's own are hidden from it where the first token of each sequence is
// there, so that every row sees one key.
// CHECK: #[[$VISIBLE:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d1 + 1)>
// CHECK-LABEL: @causal_and_tokens
// CHECK-SAME: %[[TOKENS:[^ ]+]]: tensor<2x6xi1>
// CHECK: %[[YES:.+]] = linalg.fill ins(%true{{.*}} : i1)
// CHECK: %[[FIRST:.+]] = linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%[[TOKENS]] : tensor<2x6xi1>) outs(%[[YES]] : tensor<i1>)
// CHECK: ^bb0(%[[TOKEN:.+]]: i1, %[[ALL:.+]]: i1):
// CHECK: %[[KEY:.+]] = linalg.index 1 : index
// CHECK: %[[OTHER:.+]] = arith.cmpi ne, %[[KEY]], %{{.*}} : index
// CHECK: %[[HOLDS:.+]] = arith.ori %[[OTHER]], %[[TOKEN]] : i1
// CHECK: %[[AND:.+]] = arith.andi %[[ALL]], %[[HOLDS]] : i1
// CHECK: linalg.yield %[[AND]] : i1
// CHECK: %[[CONDITION:.+]] = linalg.generic {{.*}} ins(%[[FIRST]] : tensor<i1>)
// CHECK: fp8.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>)
// CHECK-SAME: row_ins(%[[TOKENS]], %[[CONDITION]] : tensor<2x6xi1>, tensor<i1>)
// CHECK-SAME: visible_if = 1 : i64, visible_keys = #[[$VISIBLE]]
#q = affine_map<(b, i, j, d) -> (b, i, d)>
#k = affine_map<(b, i, j, d) -> (b, j, d)>
#s = affine_map<(b, i, j, d) -> (b, i, j)>
#p = affine_map<(b, i, e, j) -> (b, i, j)>
#v = affine_map<(b, i, e, j) -> (b, j, e)>
#o = affine_map<(b, i, e, j) -> (b, i, e)>
func.func @causal_and_tokens(%tokens: tensor<2x6xi1>, %q: tensor<2x6x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.0e38 : f32
  %below = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<2x6x6xf32>
  %stats = tensor.empty() : tensor<2x6xf32>
  %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<2x6xf32>) -> tensor<2x6xf32>
  %start = linalg.fill ins(%below : f32) outs(%stats : tensor<2x6xf32>) -> tensor<2x6xf32>
  %out = tensor.empty() : tensor<2x6x8xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x6x8xf32>, tensor<2x6x8xf32>) outs(%rows : tensor<2x6x6xf32>)
    {indexing_maps = [#q, #k, #s]} -> tensor<2x6x6xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %tokens : tensor<2x6x6xf32>, tensor<2x6xi1>) outs(%rows : tensor<2x6x6xf32>) {
    ^bb0(%x: f32, %token: i1, %old: f32):
      %i = linalg.index 1 : index
      %j = linalg.index 2 : index
      %c = arith.cmpi sge, %i, %j : index
      %seen = arith.andi %c, %token : i1
      %y = arith.select %seen, %x, %lowest : f32
      linalg.yield %y : f32
  } -> tensor<2x6x6xf32>
  %max = linalg.reduce { arith.maximumf } ins(%m : tensor<2x6x6xf32>) outs(%start : tensor<2x6xf32>) dimensions = [2]
  %maxes = linalg.broadcast ins(%max : tensor<2x6xf32>) outs(%rows : tensor<2x6x6xf32>) dimensions = [2]
  %shifted = arith.subf %m, %maxes : tensor<2x6x6xf32>
  %exp = math.exp %shifted : tensor<2x6x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x6x6xf32>) outs(%none : tensor<2x6xf32>) dimensions = [2]
  %sums = linalg.broadcast ins(%sum : tensor<2x6xf32>) outs(%rows : tensor<2x6x6xf32>) dimensions = [2]
  %p = arith.divf %exp, %sums : tensor<2x6x6xf32>
  %y = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%p, %v : tensor<2x6x6xf32>, tensor<2x6x8xf32>) outs(%out : tensor<2x6x8xf32>)
    {indexing_maps = [#p, #v, #o]} -> tensor<2x6x8xf32>
  return %y : tensor<2x6x8xf32>
}
