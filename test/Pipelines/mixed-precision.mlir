// Mixed precision and loss scaling as options of the ingest pipeline; attributes on calls survive inlining.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-ingest-pipeline{mixed-precision=bf16 loss-scaling=1024 loss=1})' | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: fp8.initial = dense<1.024000e+03> : tensor<f32>, fp8.program_state = "loss_scale"
// CHECK: fp8.matmul site("matmul0") role(fprop) {{.+}} : tensor<4x8xbf16>, tensor<8x8xbf16>) outs(%{{.+}} : tensor<4x8xbf16>)
// CHECK: fp8.matmul site("matmul1") role(fprop) {{.+}} : tensor<4x8xf32>, tensor<8x8xf32>) outs(%{{.+}} : tensor<4x8xf32>)
// CHECK: fp8.matmul {{.+}} role(wgrad)
// CHECK: fp8.unscale
// CHECK: fp8.update_loss_scale
func.func private @layer(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func @main(%w1: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}, %w2: tensor<8x8xf32>, %x: tensor<4x8xf32>)
    -> (tensor<8x8xf32>, tensor<f32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %h = call @layer(%x, %w1) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %y = call @layer(%h, %w2) {fp8.mixed_precision = "off"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%y : tensor<4x8xf32>) outs(%f0 : tensor<f32>) {
    ^bb0(%p: f32, %r: f32):
      %q = arith.mulf %p, %p : f32
      %s = arith.addf %r, %q : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %e1 = tensor.empty() : tensor<8x4xf32>
  %xt = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e1 : tensor<8x4xf32>) permutation = [1, 0]
  %e2 = tensor.empty() : tensor<8x8xf32>
  %wt = linalg.transpose ins(%w2 : tensor<8x8xf32>) outs(%e2 : tensor<8x8xf32>) permutation = [1, 0]
  %dh = call @layer(%y, %wt) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = linalg.matmul ins(%xt, %dh : tensor<8x4xf32>, tensor<4x8xf32>) outs(%f2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = arith.subf %w1, %g : tensor<8x8xf32>
  return %n, %loss, %loss : tensor<8x8xf32>, tensor<f32>, tensor<f32>
}
