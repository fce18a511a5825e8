// Functions that recipes name: private, and with columns of a static length.
// RUN: fp8-opt %s --fp8-prepare-recipe-functions | FileCheck %s --enable-var-scope
// RUN: fp8-opt %s --fp8-prepare-recipe-functions --fp8-prepare-recipe-functions | FileCheck %s --enable-var-scope

#amax = #fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 8>, scale = @square, amax = @first>
#scale = #fp8.custom<base = #fp8.current_scaling, scale = @current>

// CHECK-LABEL: func.func private @first(
// CHECK-SAME: %[[ROWS:.*]]: tensor<8xf32>) -> f32
// CHECK-NEXT: %[[COLUMN:.*]] = tensor.cast %[[ROWS]] : tensor<8xf32> to tensor<?xf32>
// CHECK: tensor.extract %[[COLUMN]]
func.func @first(%column: tensor<?xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %amax = tensor.extract %column[%zero] : tensor<?xf32>
  return %amax : f32
}
// CHECK-LABEL: func.func private @square(
// CHECK-SAME: f32, %{{.*}}: f32, %{{.*}}: f32) -> f32
func.func @square(%amax: f32, %max: f32, %old: f32) -> f32 {
  return %max : f32
}
// CHECK-LABEL: func.func private @current(
func.func private @current(%amax: f32, %max: f32, %old: f32) -> f32 {
  return %max : f32
}
// Others stay as they are.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: tensor<?xf32>) -> f32
func.func @other(%column: tensor<?xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  return %zero : f32
}
// CHECK-LABEL: func.func @main(
func.func @main(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<8x1xf32>, %c: tensor<f32>)
    -> (tensor<1xf32>, tensor<8x1xf32>, tensor<f32>) {
  %s1, %h1 = fp8.update_amax_history recipe(#amax) columns [0] formats [f8E4M3FN]
      ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<8x1xf32>) -> tensor<1xf32>, tensor<8x1xf32>
  %e = tensor.empty() : tensor<f32>
  %c1 = fp8.compute_scale recipe(#scale) format(f8E5M2) ins(%c : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %s1, %h1, %c1 : tensor<1xf32>, tensor<8x1xf32>, tensor<f32>
}
