func.func @state_of_another_name(%x: tensor<4xf32> {fp8.state = "other"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
