func.func @marks_of_other_kinds(%x: tensor<4xf32> {tf.aliasing_output = "no", fp8.result = 2.0 : f32, fp8.returned = @f}) -> (tensor<4xf32> {fp8.state = 1 : i32}) {
  return %x : tensor<4xf32>
}
