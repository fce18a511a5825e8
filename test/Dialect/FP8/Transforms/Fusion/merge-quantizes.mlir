// One quantize per tensor, format and scale; different ones stay different.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-merge-quantizes))' | FileCheck %s

// CHECK-LABEL: func.func @same
func.func @same(%x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>, %e: tensor<f32>)
    -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>) {
  // The first takes over the amax that the second records.
  // CHECK: %[[Q:.+]]:3 = fp8.quantize record_amax
  // CHECK-NOT: fp8.quantize
  // CHECK: return %[[Q]]#0, %[[Q]]#0, %[[Q]]#1, %[[Q]]#2
  %q0, %i0 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %q1, %i1, %a = fp8.quantize record_amax ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e, %e : tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %q0, %q1, %i1, %a : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @different
func.func @different(%x: tensor<4xf32>, %y: tensor<4xf32>, %s: tensor<f32>, %t: tensor<f32>, %d: tensor<4xf8E4M3FN>, %g: tensor<4xf8E5M2>, %e: tensor<f32>)
    -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>) {
  // CHECK-COUNT-4: fp8.quantize
  %tensor, %i0 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %other, %i1 = fp8.quantize ins(%y : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %scale, %i2 = fp8.quantize ins(%x : tensor<4xf32>) scale(%t : tensor<f32>)
      outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  %format, %i3 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%g, %e : tensor<4xf8E5M2>, tensor<f32>) -> tensor<4xf8E5M2>, tensor<f32>
  return %tensor, %other, %scale, %format : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>
}
