// A product, the sum of its squares, the gradient of its weight (without the factor 2) and the new weight.
module {
  func.func @main(%x: tensor<16x32xf32> loc("x"), %w: tensor<32x24xf32> {tf.aliasing_output = 1 : i32} loc("w")) -> (tensor<f32> {jax.result_info = "loss"}, tensor<32x24xf32>) {
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16x24xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    %y = linalg.matmul ins(%x, %w : tensor<16x32xf32>, tensor<32x24xf32>) outs(%i : tensor<16x24xf32>) -> tensor<16x24xf32> loc("jit(step)/fc/dot_general")
    %es = tensor.empty() : tensor<f32>
    %is = linalg.fill ins(%z : f32) outs(%es : tensor<f32>) -> tensor<f32>
    %loss = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<16x24xf32>) outs(%is : tensor<f32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.mulf %a, %a : f32
      %t = arith.addf %s, %b : f32
      linalg.yield %t : f32
    } -> tensor<f32>
    %ew = tensor.empty() : tensor<32x24xf32>
    %iw = linalg.fill ins(%z : f32) outs(%ew : tensor<32x24xf32>) -> tensor<32x24xf32>
    %et = tensor.empty() : tensor<32x16xf32>
    %xt = linalg.transpose ins(%x : tensor<16x32xf32>) outs(%et : tensor<32x16xf32>) permutation = [1, 0]
    %dw = linalg.matmul ins(%xt, %y : tensor<32x16xf32>, tensor<16x24xf32>) outs(%iw : tensor<32x24xf32>) -> tensor<32x24xf32> loc("jit(step)/transpose(fc)/dot_general")
    %nw = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%w, %dw : tensor<32x24xf32>, tensor<32x24xf32>) outs(%ew : tensor<32x24xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %lr = arith.constant 1.0e-8 : f32
      %s = arith.mulf %b, %lr : f32
      %t = arith.subf %a, %s : f32
      linalg.yield %t : f32
    } -> tensor<32x24xf32>
    return %loss, %nw : tensor<f32>, tensor<32x24xf32>
  }
}
