func.func @update_alone(%a: tensor<2xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
  %u:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [5, 0] formats [f8E4M3FN, f8E5M2]
    ins(%a : tensor<2xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  return %u#0, %u#1 : tensor<1xf32>, tensor<4x1xf32>
}
