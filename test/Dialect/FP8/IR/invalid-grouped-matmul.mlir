// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything that the verifiers of grouped products refuse.

// RUN: fp8-opt %s -split-input-file -verify-diagnostics

#tk = affine_map<(t, n, k) -> (t, k)>
#kn = affine_map<(t, n, k) -> (k, n)>
#tn = affine_map<(t, n, k) -> (t, n)>
func.func @no_groups(%x: tensor<64x16xf8E4M3FN>, %w: tensor<16x32xf8E4M3FN>, %ends: tensor<4xi32>, %xs: tensor<f32>, %ws: tensor<f32>, %c: tensor<64x32xbf16>) {
  // expected-error@+1 {{needs 3 indexing_maps of 4 dimensions: groups in one of them}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>, tensor<4xi32>)
      scales(%xs, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<64x32xbf16>) {indexing_maps = [#tk, #kn, #tn]} -> tensor<64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
#gtn = affine_map<(t, n, k, g) -> (g, t, n)>
func.func @groups_in_two(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x16x32xf8E4M3FN>, %ends: tensor<4xi32>, %xs: tensor<f32>, %ws: tensor<f32>, %c: tensor<4x64x32xbf16>) {
  // expected-error@+1 {{needs 3 indexing_maps of 4 dimensions: groups in one of them}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4xi32>)
      scales(%xs, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<4x64x32xbf16>) {indexing_maps = [#tk, #gkn, #gtn]} -> tensor<4x64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @rank(%x: tensor<64x16xf8E4M3FN>, %w: tensor<16x32xf8E4M3FN>, %ends: tensor<4xi32>, %xs: tensor<f32>, %ws: tensor<f32>, %c: tensor<64x32xbf16>) {
  // expected-error@+1 {{an indexing map has 3 results for rank 2}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>, tensor<4xi32>)
      scales(%xs, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<64x32xbf16>) {indexing_maps = [#tk, #gkn, #tn]} -> tensor<64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @sizes(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x17x32xf8E4M3FN>, %ends: tensor<4xi32>, %xs: tensor<f32>, %ws: tensor<f32>, %c: tensor<64x32xbf16>) {
  // expected-error@+1 {{operands disagree on the size of dimension d2: 17}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x17x32xf8E4M3FN>, tensor<4xi32>)
      scales(%xs, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<64x32xbf16>) {indexing_maps = [#tk, #gkn, #tn]} -> tensor<64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @ends(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x16x32xf8E4M3FN>, %ends: tensor<5xi32>, %xs: tensor<f32>, %ws: tensor<f32>, %c: tensor<64x32xbf16>) {
  // expected-error@+1 {{group_ends has 5 entries for 4 groups}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<5xi32>)
      scales(%xs, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<64x32xbf16>) {indexing_maps = [#tk, #gkn, #tn]} -> tensor<64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @ends_rank(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x16x32xf8E4M3FN>, %ends: tensor<4x1xi32>, %xs: tensor<f32>, %ws: tensor<f32>, %c: tensor<64x32xbf16>) {
  // expected-error@+1 {{group_ends must have one dimension, the groups}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4x1xi32>)
      scales(%xs, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<64x32xbf16>) {indexing_maps = [#tk, #gkn, #tn]} -> tensor<64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @ends_type(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x16x32xf8E4M3FN>, %ends: tensor<4xf32>, %xs: tensor<f32>, %ws: tensor<f32>, %c: tensor<64x32xbf16>) {
  // expected-error@+1 {{must be ranked tensor or memref of i32 or i64}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4xf32>)
      scales(%xs, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<64x32xbf16>) {indexing_maps = [#tk, #gkn, #tn]} -> tensor<64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @row_scales(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x16x32xf8E4M3FN>, %ends: tensor<4xi32>, %xs: tensor<63x1xf32>, %ws: tensor<f32>, %c: tensor<64x32xbf16>) {
  // expected-error@+1 {{the scale_inv of the first operand has shape [63, 1], expected [64, 1], one entry per block}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4xi32>)
      scales(%xs, %ws : tensor<63x1xf32>, tensor<f32>) outs(%c : tensor<64x32xbf16>) {indexing_maps = [#tk, #gkn, #tn], lhs_block = array<i64: 1, 0>} -> tensor<64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @group_scales(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x16x32xf8E4M3FN>, %ends: tensor<4xi32>, %xs: tensor<f32>, %ws: tensor<3x1x1xf32>, %c: tensor<64x32xbf16>) {
  // expected-error@+1 {{the scale_inv of the second operand has shape [3, 1, 1], expected [4, 1, 1], one entry per block}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4xi32>)
      scales(%xs, %ws : tensor<f32>, tensor<3x1x1xf32>) outs(%c : tensor<64x32xbf16>) {indexing_maps = [#tk, #gkn, #tn], rhs_block = array<i64: 1, 0, 0>} -> tensor<64x32xbf16>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @result(%x: tensor<64x16xf8E4M3FN>, %w: tensor<4x16x32xf8E4M3FN>, %ends: tensor<4xi32>, %xs: tensor<f32>, %ws: tensor<f32>, %c: tensor<64x32xf8E5M2>) {
  // expected-error@+1 {{result element type 'f8E5M2' must be f32, bf16 or f16}}
  %0 = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4xi32>)
      scales(%xs, %ws : tensor<f32>, tensor<f32>) outs(%c : tensor<64x32xf8E5M2>) {indexing_maps = [#tk, #gkn, #tn]} -> tensor<64x32xf8E5M2>
  return
}

// -----

#tk = affine_map<(t, n, k, g) -> (t, k)>
#gkn = affine_map<(t, n, k, g) -> (g, k, n)>
#tn = affine_map<(t, n, k, g) -> (t, n)>
func.func @f64(%x: tensor<64x16xf64>, %w: tensor<4x16x32xf32>, %ends: tensor<4xi32>, %c: tensor<64x32xf32>) {
  // expected-error@+1 {{has an operand of 'f64', expected floats of at most 32 bits}}
  %0 = fp8.grouped_matmul ins(%x, %w, %ends : tensor<64x16xf64>, tensor<4x16x32xf32>, tensor<4xi32>)
      outs(%c : tensor<64x32xf32>) {indexing_maps = [#tk, #gkn, #tn]} -> tensor<64x32xf32>
  return
}

// -----

func.func @group_rows_rank(%x: tensor<64xf32>, %ends: tensor<4xi32>) {
  // expected-error@+1 {{needs rows [T, K] and group_ends [G]}}
  %0 = fp8.group_rows ins(%x, %ends : tensor<64xf32>, tensor<4xi32>) -> tensor<4x64xf32>
  return
}

// -----

func.func @group_rows_type(%x: tensor<64x16xf32>, %ends: tensor<4xi32>) {
  // expected-error@+1 {{has the result type 'tensor<4x16x64xf32>', expected 'tensor<4x64x16xf32>'}}
  %0 = fp8.group_rows ins(%x, %ends : tensor<64x16xf32>, tensor<4xi32>) -> tensor<4x16x64xf32>
  return
}
