// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-quantize-before-gather))' | FileCheck %s -enable-var-scope

// The amax of a shard is combined over the ranks of its group; then all scales are equal.
// CHECK-LABEL: func @one_scale
// CHECK-SAME:    %[[W:.*]]: tensor<4x8xf32>
// CHECK:         %[[PART:.*]] = fp8.amax ins(%[[W]] : tensor<4x8xf32>)
// CHECK:         %[[AMAX:.*]] = fp8.all_reduce max on(2x3) axes [1] of("amax of a shard") ins(%[[PART]] : tensor<f32>)
// CHECK:         %[[SCALE:.*]] = fp8.compute_scale {{.*}} ins(%[[AMAX]] : tensor<f32>)
// CHECK:         %[[Q:.*]]:2 = fp8.quantize ins(%[[W]] : tensor<4x8xf32>) scale(%[[SCALE]] : tensor<f32>)
// CHECK:         %[[ALL:.*]] = fp8.all_gather dim 1 on(2x3) axes [1] ins(%[[Q]]#0 : tensor<4x8xf8E4M3FN>) outs({{.*}}) {fp8.saved_bytes = 96 : i64}
// CHECK:         fp8.scaled_matmul {{.*}} ins(%[[ALL]], %[[ALL]] : {{.*}}) scales(%[[Q]]#1, %[[Q]]#1 : {{.*}})
// CHECK-NOT:     tensor<4x24xf32>)
func.func @one_scale(%w: tensor<4x8xf32>, %i: tensor<4x24xf32>, %a: tensor<f32>, %d: tensor<4x24xf8E4M3FN>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %all = fp8.all_gather dim 1 on(2x3) axes [1] ins(%w : tensor<4x8xf32>) outs(%i : tensor<4x24xf32>) -> tensor<4x24xf32>
  %amax = fp8.amax ins(%all : tensor<4x24xf32>) outs(%a : tensor<f32>) -> tensor<f32>
  %scale = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%amax : tensor<f32>) outs(%a : tensor<f32>) -> tensor<f32>
  %q:2 = fp8.quantize ins(%all : tensor<4x24xf32>) scale(%scale : tensor<f32>) outs(%d, %a : tensor<4x24xf8E4M3FN>, tensor<f32>) -> tensor<4x24xf8E4M3FN>, tensor<f32>
  %r = fp8.scaled_matmul recipe(#fp8.current_scaling) fast ins(%q#0, %q#0 : tensor<4x24xf8E4M3FN>, tensor<4x24xf8E4M3FN>) scales(%q#1, %q#1 : tensor<f32>, tensor<f32>)
      outs(%y : tensor<4x4xf32>) {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// A scale that comes from elsewhere may differ between ranks.
// CHECK-LABEL: func @scale_of_the_caller
// CHECK:         fp8.all_gather {{.*}} {fp8.gathered_wide = "its scale is not known to be equal on all ranks"} -> tensor<8x8xf32>
func.func @scale_of_the_caller(%w: tensor<4x8xf32>, %i: tensor<8x8xf32>, %s: tensor<f32>, %d: tensor<8x8xf8E4M3FN>) -> tensor<8x8xf8E4M3FN> {
  %all = fp8.all_gather dim 0 on(2) axes [0] ins(%w : tensor<4x8xf32>) outs(%i : tensor<8x8xf32>) -> tensor<8x8xf32>
  %q:2 = fp8.quantize ins(%all : tensor<8x8xf32>) scale(%s : tensor<f32>) outs(%d, %s : tensor<8x8xf8E4M3FN>, tensor<f32>) -> tensor<8x8xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<8x8xf8E4M3FN>
}

// Two directions of bf16 have as many bytes as the tensor, and their scales.
// CHECK-LABEL: func @no_fewer_bytes
// CHECK:         fp8.all_gather {{.*}} {fp8.gathered_wide = "its casts have no fewer bytes (576)"} -> tensor<8x64xbf16>
func.func @no_fewer_bytes(%w: tensor<4x64xbf16>, %i: tensor<8x64xbf16>, %d: tensor<8x64xf8E4M3FN>, %s: tensor<8x2xf32>) -> tensor<8x64xf8E4M3FN> {
  %all = fp8.all_gather dim 0 on(2) axes [0] ins(%w : tensor<4x64xbf16>) outs(%i : tensor<8x64xbf16>) -> tensor<8x64xbf16>
  %q:4 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%all : tensor<8x64xbf16>) outs(%d, %s, %d, %s : tensor<8x64xf8E4M3FN>, tensor<8x2xf32>, tensor<8x64xf8E4M3FN>, tensor<8x2xf32>)
      {blocks = [array<i64: 1, 32>, array<i64: 1, 32>]} -> tensor<8x64xf8E4M3FN>, tensor<8x2xf32>, tensor<8x64xf8E4M3FN>, tensor<8x2xf32>
  return %q#0 : tensor<8x64xf8E4M3FN>
}

// CHECK-LABEL: func @no_cast
// CHECK:         fp8.all_gather {{.*}} {fp8.gathered_wide = "'func.return' reads it too"}
func.func @no_cast(%w: tensor<4x8xf32>, %i: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %all = fp8.all_gather dim 0 on(2) axes [0] ins(%w : tensor<4x8xf32>) outs(%i : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %all : tensor<8x8xf32>
}
