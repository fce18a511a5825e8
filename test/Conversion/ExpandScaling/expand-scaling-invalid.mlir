// An operation that fp8-expand-scaling cannot expand is an error.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics --fp8-expand-scaling

func.func @history(%a: memref<1xf32>, %s: memref<?xf32>, %h: memref<?x?xf32>) {
  // expected-error@+1 {{of dynamic shape has no lowering: give amax_history static sizes}}
  fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
      ins(%a : memref<1xf32>) outs(%s, %h : memref<?xf32>, memref<?x?xf32>)
  return
}

// -----

func.func @tensors(%a: tensor<f32>, %s: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{is on tensors; bufferize before fp8-expand-scaling}}
  %0 = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%a : tensor<f32>) outs(%s : tensor<f32>)
      -> tensor<f32>
  return %0 : tensor<f32>
}
