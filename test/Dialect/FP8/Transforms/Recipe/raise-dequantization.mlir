// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands that are FP8 of the program's own. Values: test/python/ingest/test_own_fp8.py.
// RUN: fp8-opt %s --split-input-file --fp8-raise-dequantization | FileCheck %s -enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>

// Sizes known at run time; a transpose in the op that scales; a division.
// CHECK-DAG: #[[$NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func @transposed
// CHECK-SAME: (%{{.*}}: tensor<?x8xbf16>, %[[W:.*]]: tensor<16x8xf8E5M2>, %[[S:.*]]: f32,
// CHECK: %[[INV:.*]] = arith.divf %{{.*}}, %[[S]] : f32
// CHECK: %[[T:.*]] = tensor.from_elements %[[INV]]
// CHECK: %[[D:.*]] = fp8.dequantize ins(%[[W]] : tensor<16x8xf8E5M2>) scale_inv(%[[T]] : tensor<f32>) {{.*}} -> tensor<16x8xf32>
// CHECK: fp8.matmul ins(%{{.*}}, %[[D]] : {{.*}}) {{.*}} {indexing_maps = [#{{.*}}, #[[$NK]], #{{.*}}]}
func.func @transposed(%x: tensor<?x8xbf16>, %w: tensor<16x8xf8E5M2>, %s: f32, %i: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %d = linalg.generic {indexing_maps = [#ji, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<16x8xf8E5M2>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%in: f8E5M2, %out: f32):
    %a = arith.extf %in : f8E5M2 to f32
    %m = arith.divf %a, %s : f32
    linalg.yield %m : f32
  } -> tensor<8x16xf32>
  %y = fp8.matmul ins(%x, %d : tensor<?x8xbf16>, tensor<8x16xf32>) outs(%i : tensor<?x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#ij = affine_map<(i, j) -> (i, j)>

// Not touched: a kept product, and what is no scaled tensor of bytes: a sum with a zero
// point, a mask of the same shape.
// CHECK-LABEL: func @others
// CHECK-NOT: fp8.dequantize
// CHECK: return
func.func @others(%x: tensor<4x8xbf16>, %w: tensor<8x16xf8E4M3FN>, %z: f32, %mask: tensor<8x16xf32>, %i: tensor<4x16xf32>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
  %e = tensor.empty() : tensor<8x16xf32>
  %d0 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<8x16xf8E4M3FN>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%in: f8E4M3FN, %out: f32):
    %a = arith.extf %in : f8E4M3FN to f32
    %m = arith.mulf %a, %z : f32
    linalg.yield %m : f32
  } -> tensor<8x16xf32>
  %y0 = fp8.matmul kept("no") ins(%x, %d0 : tensor<4x8xbf16>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %d1 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<8x16xf8E4M3FN>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%in: f8E4M3FN, %out: f32):
    %a = arith.extf %in : f8E4M3FN to f32
    %m = arith.addf %a, %z : f32
    linalg.yield %m : f32
  } -> tensor<8x16xf32>
  %y1 = fp8.matmul ins(%x, %d1 : tensor<4x8xbf16>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %d2 = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%w, %mask : tensor<8x16xf8E4M3FN>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%in: f8E4M3FN, %b: f32, %out: f32):
    %a = arith.extf %in : f8E4M3FN to f32
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x16xf32>
  %y2 = fp8.matmul ins(%x, %d2 : tensor<4x8xbf16>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  return %y0, %y1, %y2 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}
