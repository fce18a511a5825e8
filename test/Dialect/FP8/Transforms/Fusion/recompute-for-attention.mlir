// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-recompute-elements{attention=true},cse))' | FileCheck %s
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-recompute-elements,cse))' | FileCheck %s --check-prefix=ELEMENTS

// Queries are widened to f32 in forward, and again before the gradient of attention reads them. Forward's own copies are
// read by forward alone then.
// CHECK-LABEL: @widened
// CHECK-SAME: (%[[HALF:[^ ]+]]: tensor<4x8x16xbf16>,
// CHECK: %[[Q:.+]] = linalg.generic {{.*}} ins(%[[HALF]] :
// CHECK: fp8.matmul {{.*}}ins(%[[Q]],
// CHECK: %[[AGAIN:.+]] = linalg.generic {{.*}} ins(%[[HALF]] : {{.*}} attrs = {fp8.again} {
// CHECK: fp8.attention_grad ins(%[[AGAIN]], %[[K:.+]], %[[V:[^ ]+]], %{{.+}} :
// ELEMENTS-LABEL: @widened
// ELEMENTS: %[[Q:.+]] = linalg.generic
// ELEMENTS: fp8.attention_grad ins(%[[Q]],
func.func @widened(%half: tensor<4x8x16xbf16>, %k: tensor<4x8x16xf32>, %v: tensor<4x8x16xf32>, %dy: tensor<4x8x16xf32>, %max: tensor<4x8xf32>,
                   %sum: tensor<4x8xf32>, %scores: tensor<4x8x8xf32>, %init: tensor<4x8x16xf32>)
    -> (tensor<4x8x8xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>) {
  %q = linalg.generic {indexing_maps = [affine_map<(b, i, d) -> (b, i, d)>, affine_map<(b, i, d) -> (b, i, d)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%half : tensor<4x8x16xbf16>) outs(%init : tensor<4x8x16xf32>) {
    ^bb0(%a: bf16, %o: f32):
      %wide = arith.extf %a : bf16 to f32
      linalg.yield %wide : f32
  } -> tensor<4x8x16xf32>
  %early = fp8.matmul role(other) kinds(input, input) ins(%q, %k : tensor<4x8x16xf32>, tensor<4x8x16xf32>) outs(%scores : tensor<4x8x8xf32>)
    {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>, affine_map<(b, i, j, d) -> (b, i, j)>]} -> tensor<4x8x8xf32>
  %dq, %dk, %dv = fp8.attention_grad
      ins(%q, %k, %v, %dy : tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>)
      row_ins(%max, %sum : tensor<4x8xf32>, tensor<4x8xf32>)
      outs(%init, %init, %init : tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>)
      {indexing_maps = [affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                        affine_map<(b, i, j, d, e) -> (b, j, e)>, affine_map<(b, i, j, d, e) -> (b, i, e)>,
                        affine_map<(b, i, j, d, e) -> (b, i)>, affine_map<(b, i, j, d, e) -> (b, i)>,
                        affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                        affine_map<(b, i, j, d, e) -> (b, j, e)>]} rows {
    ^bb0(%b: index, %i: index, %s: tensor<8xf32>, %g: tensor<8xf32>, %m: f32, %l: f32):
      %zero = arith.constant 0.0 : f32
      %scalar = tensor.empty() : tensor<f32>
      %row = tensor.empty() : tensor<8xf32>
      %p = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>],
                           iterator_types = ["parallel"]}
          ins(%s : tensor<8xf32>) outs(%row : tensor<8xf32>) {
        ^bb0(%in: f32, %out: f32):
          %x = arith.subf %in, %m : f32
          %y = math.exp %x : f32
          %z = arith.divf %y, %l : f32
          linalg.yield %z : f32
      } -> tensor<8xf32>
      %none = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
      %total = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>, affine_map<(j) -> ()>],
                               iterator_types = ["reduction"]}
          ins(%p, %g : tensor<8xf32>, tensor<8xf32>) outs(%none : tensor<f32>) {
        ^bb0(%x: f32, %y: f32, %acc: f32):
          %xy = arith.mulf %x, %y : f32
          %z = arith.addf %acc, %xy : f32
          linalg.yield %z : f32
      } -> tensor<f32>
      %sum_pg = tensor.extract %total[] : tensor<f32>
      %ds = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>, affine_map<(j) -> (j)>],
                            iterator_types = ["parallel"]}
          ins(%p, %g : tensor<8xf32>, tensor<8xf32>) outs(%row : tensor<8xf32>) {
        ^bb0(%x: f32, %y: f32, %out: f32):
          %centered = arith.subf %y, %sum_pg : f32
          %z = arith.mulf %x, %centered : f32
          linalg.yield %z : f32
      } -> tensor<8xf32>
      fp8.yield %p, %ds : tensor<8xf32>, tensor<8xf32>
  } -> tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>
  return %early, %dq, %dk, %dv : tensor<4x8x8xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>
}
