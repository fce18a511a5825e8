// A step with a product that runs only where `gate` is positive: z = x u, beside y = x w; the loss is the sum of the squares.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @main(%w: tensor<16x32xf32> {tf.aliasing_output = 0 : i32} loc("w"), %u: tensor<16x32xf32> {tf.aliasing_output = 1 : i32} loc("u"),
                %x: tensor<8x16xf32> loc("x"), %gate: tensor<1xf32> loc("gate")) -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<f32>) {
  %z = arith.constant 0.0 : f32
  %i0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %ew = tensor.empty() : tensor<16x32xf32>
  %fw = linalg.fill ins(%z : f32) outs(%ew : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.matmul
      ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>) outs(%f : tensor<8x32xf32>) -> tensor<8x32xf32> loc("jit(s)/jvp(base)/dot_general")
  %dw = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<8x16xf32>, tensor<8x32xf32>) outs(%fw : tensor<16x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x32xf32> loc("jit(s)/transpose(jvp(base))/dot_general")
  %g = tensor.extract %gate[%i0] : tensor<1xf32>
  %p = arith.cmpf ogt, %g, %z : f32
  %q:2 = scf.if %p -> (tensor<8x32xf32>, tensor<16x32xf32>) {
    %v = linalg.matmul
        ins(%x, %u : tensor<8x16xf32>, tensor<16x32xf32>) outs(%f : tensor<8x32xf32>) -> tensor<8x32xf32> loc("jit(s)/jvp(expert)/dot_general")
    %du = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %v : tensor<8x16xf32>, tensor<8x32xf32>) outs(%fw : tensor<16x32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<16x32xf32> loc("jit(s)/transpose(jvp(expert))/dot_general")
    scf.yield %v, %du : tensor<8x32xf32>, tensor<16x32xf32>
  } else {
    scf.yield %f, %fw : tensor<8x32xf32>, tensor<16x32xf32>
  }
  %es = tensor.empty() : tensor<f32>
  %fs = linalg.fill ins(%z : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%y, %q#0 : tensor<8x32xf32>, tensor<8x32xf32>) outs(%fs : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %a : f32
    %n = arith.mulf %b, %b : f32
    %s = arith.addf %m, %n : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %r = arith.constant dense<0.001> : tensor<16x32xf32>
  %sw = arith.mulf %dw, %r : tensor<16x32xf32>
  %su = arith.mulf %q#1, %r : tensor<16x32xf32>
  %nw = arith.subf %w, %sw : tensor<16x32xf32>
  %nu = arith.subf %u, %su : tensor<16x32xf32>
  return %nw, %nu, %loss : tensor<16x32xf32>, tensor<16x32xf32>, tensor<f32>
}
