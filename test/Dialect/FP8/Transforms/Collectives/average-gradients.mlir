// Means over the ranks stand right behind the gradients, before the product with the learning rate.
// RUN: fp8-opt %s --fp8-average-gradients | FileCheck %s -enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

module attributes {fp8.grid = array<i64: 2, 4>, fp8.batch_axis = 1 : i64} {
  // CHECK-LABEL: func.func @step
  // CHECK-NOT: fp8.all_reduce
  // CHECK: %[[DW:.+]] = fp8.matmul site("fc") role(wgrad)
  // CHECK: %[[MEAN:.+]] = fp8.all_reduce mean on(2x4) axes [1] of("gradient of fc") ins(%[[DW]] : tensor<8x2xf32>) outs(%[[DW]] : tensor<8x2xf32>)
  // CHECK: %[[STEP:.+]] = arith.mulf %[[MEAN]], %{{.+}} : tensor<8x2xf32>
  // CHECK: arith.subf %{{.+}}, %[[STEP]]
  // CHECK-NOT: fp8.all_reduce
  // CHECK: return
  func.func @step(%w: tensor<8x2xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4x8xf32> {fp8.batch = 0 : i64},
                  %rate: tensor<8x2xf32>, %g: tensor<4x2xf32>, %y: tensor<4x2xf32>, %dw: tensor<8x2xf32>,
                  %loss: tensor<f32>) -> (tensor<8x2xf32>, tensor<f32>) {
    %0 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x2xf32>)
        outs(%y : tensor<4x2xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x2xf32>
    %1 = arith.mulf %0, %g : tensor<4x2xf32>
    %2 = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %1 : tensor<4x8xf32>, tensor<4x2xf32>)
        outs(%dw : tensor<8x2xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x2xf32>
    %3 = arith.mulf %2, %rate : tensor<8x2xf32>
    %4 = arith.subf %w, %3 : tensor<8x2xf32>
    return %4, %loss : tensor<8x2xf32>, tensor<f32>
  }
}
