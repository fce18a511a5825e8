// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two layers with a relu between them: a training step (forward, backward, gradient descent)
// and its evaluation, in f32, named as JAX names things. test_compile_run.py computes the same.

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>

func.func @main(%w1: tensor<140x20xf32> {tf.aliasing_output = 0 : i32} loc("w1"),
                %w2: tensor<20x5xf32> {tf.aliasing_output = 1 : i32} loc("w2"),
                %x: tensor<150x140xf32> loc("x"), %t: tensor<150x5xf32> loc("t"))
    -> (tensor<140x20xf32>, tensor<20x5xf32>, tensor<f32>) {
  %h = call @layer1(%x, %w1) : (tensor<150x140xf32>, tensor<140x20xf32>) -> tensor<150x20xf32> loc("jvp(net)")
  %zero = arith.constant dense<0.0> : tensor<150x20xf32>
  %a = arith.maximumf %h, %zero : tensor<150x20xf32>
  %y = call @layer2(%a, %w2) : (tensor<150x20xf32>, tensor<20x5xf32>) -> tensor<150x5xf32> loc("jvp(net)")
  %d = arith.subf %y, %t : tensor<150x5xf32>
  %loss = call @sum_of_squares(%d) : (tensor<150x5xf32>) -> tensor<f32>

  %e0 = tensor.empty() : tensor<20x5xf32>
  %z = arith.constant 0.0 : f32
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<20x5xf32>) -> tensor<20x5xf32>
  %g2 = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %d : tensor<150x20xf32>, tensor<150x5xf32>) outs(%f0 : tensor<20x5xf32>) {
    ^bb0(%p: f32, %q: f32, %r: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %r, %m : f32
      linalg.yield %s : f32
  } -> tensor<20x5xf32> loc("transpose(jvp(net))/l2/dot_general")
  %e1 = tensor.empty() : tensor<150x20xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<150x20xf32>) -> tensor<150x20xf32>
  %ga = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %w2 : tensor<150x5xf32>, tensor<20x5xf32>) outs(%f1 : tensor<150x20xf32>) {
    ^bb0(%p: f32, %q: f32, %r: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %r, %m : f32
      linalg.yield %s : f32
  } -> tensor<150x20xf32> loc("transpose(jvp(net))/l2/dot_general")
  %positive = arith.cmpf ogt, %h, %zero : tensor<150x20xf32>
  %gh = arith.select %positive, %ga, %zero : tensor<150x20xi1>, tensor<150x20xf32>
  %e2 = tensor.empty() : tensor<140x20xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<140x20xf32>) -> tensor<140x20xf32>
  %g1 = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %gh : tensor<150x140xf32>, tensor<150x20xf32>) outs(%f2 : tensor<140x20xf32>) {
    ^bb0(%p: f32, %q: f32, %r: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %r, %m : f32
      linalg.yield %s : f32
  } -> tensor<140x20xf32> loc("transpose(jvp(net))/l1/dot_general")

  %lr1 = arith.constant dense<0.001> : tensor<140x20xf32>
  %lr2 = arith.constant dense<0.001> : tensor<20x5xf32>
  %u1 = arith.mulf %g1, %lr1 : tensor<140x20xf32>
  %u2 = arith.mulf %g2, %lr2 : tensor<20x5xf32>
  %n1 = arith.subf %w1, %u1 : tensor<140x20xf32>
  %n2 = arith.subf %w2, %u2 : tensor<20x5xf32>
  return %n1, %n2, %loss : tensor<140x20xf32>, tensor<20x5xf32>, tensor<f32>
}

func.func @evaluate(%w1: tensor<140x20xf32> loc("w1"), %w2: tensor<20x5xf32> loc("w2"), %x: tensor<150x140xf32> loc("x"))
    -> tensor<150x5xf32> {
  %h = call @layer1(%x, %w1) : (tensor<150x140xf32>, tensor<140x20xf32>) -> tensor<150x20xf32> loc("net")
  %zero = arith.constant dense<0.0> : tensor<150x20xf32>
  %a = arith.maximumf %h, %zero : tensor<150x20xf32>
  %y = call @layer2(%a, %w2) : (tensor<150x20xf32>, tensor<20x5xf32>) -> tensor<150x5xf32> loc("net")
  return %y : tensor<150x5xf32>
}

func.func private @layer1(%x: tensor<150x140xf32>, %w: tensor<140x20xf32>) -> tensor<150x20xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<150x20xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<150x20xf32>) -> tensor<150x20xf32>
  %y = linalg.matmul ins(%x, %w : tensor<150x140xf32>, tensor<140x20xf32>) outs(%f : tensor<150x20xf32>)
      -> tensor<150x20xf32> loc("l1/dot_general")
  return %y : tensor<150x20xf32>
}

func.func private @layer2(%x: tensor<150x20xf32>, %w: tensor<20x5xf32>) -> tensor<150x5xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<150x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<150x5xf32>) -> tensor<150x5xf32>
  %y = linalg.matmul ins(%x, %w : tensor<150x20xf32>, tensor<20x5xf32>) outs(%f : tensor<150x5xf32>)
      -> tensor<150x5xf32> loc("l2/dot_general")
  return %y : tensor<150x5xf32>
}

func.func private @sum_of_squares(%d: tensor<150x5xf32>) -> tensor<f32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}
      ins(%d : tensor<150x5xf32>) outs(%f : tensor<f32>) {
    ^bb0(%p: f32, %r: f32):
      %m = arith.mulf %p, %p : f32
      %q = arith.addf %r, %m : f32
      linalg.yield %q : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}
