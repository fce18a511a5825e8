// RUN: fp8-opt %s --fp8-raise-contractions | FileCheck %s

// A product that is negated before it is added is a product of the negated operand, exactly.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @negated
// CHECK: %[[MINUS:.*]] = arith.negf %arg0 : tensor<8x16xf32>
// CHECK: fp8.matmul accumulate ins(%[[MINUS]], %arg1
func.func @negated(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %i: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>) outs(%i : tensor<8x32xf32>) {
  ^bb0(%l: f32, %m: f32, %o: f32):
    %p = arith.mulf %l, %m : f32
    %n = arith.negf %p : f32
    %s = arith.addf %o, %n : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}
