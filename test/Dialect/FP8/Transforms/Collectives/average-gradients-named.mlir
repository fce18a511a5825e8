// Without a product of gradients, name stacks tell of a gradient that stays each rank's own.
// RUN: fp8-opt %s --fp8-average-gradients=average=3 --verify-diagnostics -o /dev/null

#all = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
#none = affine_map<(i, j) -> ()>

module attributes {fp8.grid = array<i64: 4>, fp8.batch_axis = 0 : i64} {
  // Results: the loss; the gradient of w; a new w; the gradient of w again, whose mean is asked for; that of x; a sum
  // of x, such as a normalization has, with the shape of w.
  func.func @step(%w: tensor<8xf32> loc("w"), %x: tensor<4x8xf32> {fp8.batch = 0 : i64})
      -> (tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8xf32>) {
    %zero = arith.constant dense<0.0> : tensor<8xf32>
    %z = arith.constant dense<0.0> : tensor<f32>
    %y = linalg.generic {indexing_maps = [#all, #col, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x, %w : tensor<4x8xf32>, tensor<8xf32>) outs(%x : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %p = arith.mulf %a, %b : f32
      linalg.yield %p : f32
    } -> tensor<4x8xf32> loc("jit(f)/jvp(norm)/mul")
    %loss = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}
        ins(%y : tensor<4x8xf32>) outs(%z : tensor<f32>) {
    ^bb0(%a: f32, %o: f32):
      %p = arith.mulf %a, %a : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    } -> tensor<f32> loc("jit(f)/jvp(norm)/reduce_sum")
    %g = arith.addf %y, %y : tensor<4x8xf32> loc("jit(f)/transpose(jvp(norm))/mul")
    %gx = arith.mulf %g, %x : tensor<4x8xf32> loc("jit(f)/transpose(jvp(norm))/mul")
    // expected-warning @+1 {{result 1 has the shape of the parameter 'w', and differs from rank to rank: --average=1 takes its mean}}
    %dw = linalg.reduce ins(%gx : tensor<4x8xf32>) outs(%zero : tensor<8xf32>) dimensions = [0]
      (%a: f32, %o: f32) {
        %s = arith.addf %a, %o : f32
        linalg.yield %s : f32
      }
    // expected-warning @+1 {{result 2 has the shape of the parameter 'w', and differs from rank to rank: --average=2 takes its mean}}
    %new = arith.subf %w, %dw : tensor<8xf32>
    %sum = linalg.reduce ins(%x : tensor<4x8xf32>) outs(%zero : tensor<8xf32>) dimensions = [0]
      (%a: f32, %o: f32) {
        %s = arith.addf %a, %o : f32
        linalg.yield %s : f32
      }
    return %loss, %dw, %new, %dw, %g, %sum : tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8xf32>
  }
}
