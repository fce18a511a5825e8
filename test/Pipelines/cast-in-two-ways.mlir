// RUN: fp8-opt --pass-pipeline='builtin.module(fp8-fusion-pipeline)' %s | FileCheck -enable-var-scope %s

// A tensor that is narrowed in two ways, cast in both with a scale that depends on it, and recorded
// for one: fusion finds that it is one tensor, and it is cast once.

// CHECK-LABEL: func.func @f(
// CHECK:         %[[Q:.*]]:3 = fp8.quantize record_amax
// CHECK-NOT:     fp8.quantize
// CHECK:         return %[[Q]]#0, %[[Q]]#0, %[[Q]]#2
func.func @f(%w: tensor<8x4xf32>, %c: i1, %s: tensor<f32>) -> (tensor<8x4xf8E4M3FN>, tensor<8x4xf8E4M3FN>, tensor<f32>) {
  %a = arith.truncf %w : tensor<8x4xf32> to tensor<8x4xbf16>
  %e = tensor.empty() : tensor<8x4xbf16>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8x4xf32>) outs(%e : tensor<8x4xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<8x4xbf16>
  %f = tensor.empty() : tensor<f32>
  %d = tensor.empty() : tensor<8x4xf8E4M3FN>
  %sa = scf.if %c -> (tensor<f32>) {
    %m = fp8.amax ins(%a : tensor<8x4xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
    %n = fp8.compute_scale recipe(#fp8.current_scaling<>) format(f8E4M3FN) input_type(bf16) ins(%m : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
    scf.yield %n : tensor<f32>
  } else {
    scf.yield %s : tensor<f32>
  }
  %sb = scf.if %c -> (tensor<f32>) {
    %m = fp8.amax ins(%b : tensor<8x4xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
    %n = fp8.compute_scale recipe(#fp8.current_scaling<>) format(f8E4M3FN) input_type(bf16) ins(%m : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
    scf.yield %n : tensor<f32>
  } else {
    scf.yield %s : tensor<f32>
  }
  %p, %pi, %pa = fp8.quantize record_amax column(0) ins(%a : tensor<8x4xbf16>) scale(%sa : tensor<f32>)
      outs(%d, %f, %f : tensor<8x4xf8E4M3FN>, tensor<f32>, tensor<f32>)
      -> tensor<8x4xf8E4M3FN>, tensor<f32>, tensor<f32>
  %q, %qi = fp8.quantize column(0) ins(%b : tensor<8x4xbf16>) scale(%sb : tensor<f32>)
      outs(%d, %f : tensor<8x4xf8E4M3FN>, tensor<f32>) -> tensor<8x4xf8E4M3FN>, tensor<f32>
  return %p, %q, %pa : tensor<8x4xf8E4M3FN>, tensor<8x4xf8E4M3FN>, tensor<f32>
}
