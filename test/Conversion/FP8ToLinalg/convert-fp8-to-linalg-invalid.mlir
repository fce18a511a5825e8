// An operation without a lowering for the CPU is an error that says so.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics --convert-fp8-to-linalg

func.func @tensors(%x: tensor<4xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{'fp8.amax' op is on tensors; bufferize before convert-fp8-to-linalg}}
  %0 = fp8.amax ins(%x : tensor<4xf32>) outs(%a : tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @scale(%a: memref<8x1xf32>, %s: memref<8x1xf32>) {
  // expected-error@+1 {{'fp8.compute_scale' op follows the rules of a recipe; run fp8-expand-scaling before convert-fp8-to-linalg}}
  fp8.compute_scale recipe(#fp8.row_scaling) format(f8E4M3FN) ins(%a : memref<8x1xf32>) outs(%s : memref<8x1xf32>)
  return
}

// -----

func.func @later(%shard: memref<4xf32>, %whole: memref<16xf32>,
                 %g: memref<8xf32>, %f: memref<f32>, %t: memref<i32>) {
  // expected-error@+1 {{'fp8.all_gather' op is one operation; run fp8-overlap-collectives before convert-fp8-to-linalg}}
  fp8.all_gather dim 0 on(4) axes [0] ins(%shard : memref<4xf32>) outs(%whole : memref<16xf32>)
  // expected-error@+1 {{'fp8.unscale' op has no lowering for the CPU yet}}
  fp8.unscale ins(%g : memref<8xf32>) scale(%f : memref<f32>) outs(%g, %f : memref<8xf32>, memref<f32>)
  // expected-error@+1 {{'fp8.update_loss_scale' op has no lowering for the CPU yet}}
  fp8.update_loss_scale ins(%f : memref<f32>) outs(%f, %t : memref<f32>, memref<i32>)
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @grouped_lengths(%x: memref<64x256xf8E4M3FN>, %w: memref<4x256x32xf8E4M3FN>, %ends: memref<4xi64>, %s: memref<64x2xf32>, %ws: memref<4x4x32xf32>, %c: memref<64x32xf32>) {
  // expected-error@+1 {{'fp8.scaled_grouped_matmul' op has blocks of 64 and 128 along K; both operands need blocks of one length}}
  fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : memref<64x256xf8E4M3FN>, memref<4x256x32xf8E4M3FN>, memref<4xi64>)
      scales(%s, %ws : memref<64x2xf32>, memref<4x4x32xf32>) outs(%c : memref<64x32xf32>)
      {indexing_maps = [#tk, #gkn, #tn], lhs_block = array<i64: 1, 128>, rhs_block = array<i64: 1, 64, 1>}
  return
}

// -----

#tm = affine_map<(m, n, t, g) -> (t, m)>
#tn = affine_map<(m, n, t, g) -> (t, n)>
#gmn = affine_map<(m, n, t, g) -> (g, m, n)>
func.func @grouped_rows(%x: memref<256x16xf8E4M3FN>, %y: memref<256x32xf8E4M3FN>, %ends: memref<4xi64>, %s: memref<2x16xf32>, %ys: memref<2x32xf32>, %c: memref<4x16x32xf32>) {
  // expected-error@+1 {{'fp8.scaled_grouped_matmul' op with scales per block of its rows has no lowering, because groups divide the blocks; use --recipe=delayed, --recipe=current or --recipe=row}}
  fp8.scaled_grouped_matmul fast ins(%x, %y, %ends : memref<256x16xf8E4M3FN>, memref<256x32xf8E4M3FN>, memref<4xi64>)
      scales(%s, %ys : memref<2x16xf32>, memref<2x32xf32>) outs(%c : memref<4x16x32xf32>)
      {indexing_maps = [#tm, #tn, #gmn], lhs_block = array<i64: 128, 1>, rhs_block = array<i64: 128, 1>}
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
module attributes {fp8.target = #fp8.chip<"sm_89">} {
func.func @grouped_threads(%x: memref<64x256xf8E4M3FN>, %w: memref<4x256x32xf8E4M3FN>, %ends: memref<4xi64>, %s: memref<64x2xf32>, %ws: memref<f32>, %c: memref<64x32xf32>) {
  // expected-error@+1 {{'fp8.scaled_grouped_matmul' op with scales per block of K has no loops of threads; use --recipe=delayed, --recipe=current or --recipe=row}}
  fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : memref<64x256xf8E4M3FN>, memref<4x256x32xf8E4M3FN>, memref<4xi64>)
      scales(%s, %ws : memref<64x2xf32>, memref<f32>) outs(%c : memref<64x32xf32>)
      {indexing_maps = [#tk, #gkn, #tn], lhs_block = array<i64: 1, 128>}
  return
}
}

// -----

func.func @f64(%x: memref<4xf64>, %a: memref<f32>, %q: memref<4xf8E4M3FN>) {
  // expected-error@+1 {{'fp8.amax' op of f64 has no lowering for the CPU yet}}
  fp8.amax ins(%x : memref<4xf64>) outs(%a : memref<f32>)
  // expected-error@+1 {{'fp8.quantize' op of f64 has no lowering for the CPU yet}}
  fp8.quantize ins(%x : memref<4xf64>) scale(%a : memref<f32>) outs(%q, %a : memref<4xf8E4M3FN>, memref<f32>)
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @products(%qa: memref<8x16xf8E4M3FN>, %qb: memref<16x32xf8E4M3FN>, %s: memref<f32>, %q: memref<8x32xf8E4M3FN>) {
  // expected-error@+1 {{'fp8.scaled_matmul' op cannot add to an FP8 result}}
  fp8.scaled_matmul fast accumulate ins(%qa, %qb : memref<8x16xf8E4M3FN>, memref<16x32xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
      out_scale(%s : memref<f32>) outs(%q, %s, %s : memref<8x32xf8E4M3FN>, memref<f32>, memref<f32>) {indexing_maps = [#mk, #kn, #mn]}
  return
}
