func.func @in_a_loop(%x: tensor<4x8xf32>, %s: tensor<f32>, %n: index) -> tensor<8xf8E4M3FN> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = tensor.empty() : tensor<8xf8E4M3FN>
  %e = tensor.empty() : tensor<f32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %d) -> (tensor<8xf8E4M3FN>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
    %q, %t, %a = fp8.quantize record_amax column(0) ins(%row : tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%old, %e, %e : tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>
    scf.yield %q : tensor<8xf8E4M3FN>
  }
  return %r : tensor<8xf8E4M3FN>
}
