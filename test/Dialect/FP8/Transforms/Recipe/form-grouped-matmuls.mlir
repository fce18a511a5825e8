// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of groups of rows become grouped products. Values: test/python/steps/test_experts.py.
// RUN: fp8-opt %s --fp8-form-grouped-matmuls | FileCheck %s -enable-var-scope

#fwd_a = affine_map<(m, n, k, g) -> (g, m, k)>
#fwd_b = affine_map<(m, n, k, g) -> (g, k, n)>
#fwd_c = affine_map<(m, n, k, g) -> (m, n)>
#bwd_a = affine_map<(g, m, n, k) -> (g, k, m)>
#bwd_b = affine_map<(g, m, n, k) -> (g, k, n)>
#bwd_c = affine_map<(g, m, n, k) -> (g, m, n)>

// CHECK-DAG: #[[$TK:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
// CHECK-DAG: #[[$GKN:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2, d1)>
// CHECK-DAG: #[[$TN:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK-DAG: #[[$TM:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d1)>
// CHECK-DAG: #[[$TN2:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG: #[[$GMN:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:.*]]: tensor<8x6xf8E4M3FN>, %[[W:.*]]: tensor<3x6x5xf8E4M3FN>, %[[ENDS:.*]]: tensor<3xi32>, %[[S:.*]]: tensor<f32>, %[[I:.*]]: tensor<8x5xbf16>)
// CHECK-NEXT: %[[Y:.*]] = fp8.scaled_grouped_matmul site("moe") role(fprop) recipe(#fp8.current_scaling) fast ins(%[[X]], %[[W]], %[[ENDS]] : {{.*}}) scales(%[[S]], %[[S]] : {{.*}}) outs(%[[I]] : tensor<8x5xbf16>) {indexing_maps = [#[[$TK]], #[[$GKN]], #[[$TN]]]}
// CHECK-NEXT: return %[[Y]]
func.func @forward(%x: tensor<8x6xf8E4M3FN>, %w: tensor<3x6x5xf8E4M3FN>, %ends: tensor<3xi32>, %s: tensor<f32>, %i: tensor<8x5xbf16>) -> tensor<8x5xbf16> {
  %g = fp8.group_rows ins(%x, %ends : tensor<8x6xf8E4M3FN>, tensor<3xi32>) -> tensor<3x8x6xf8E4M3FN>
  %y = fp8.scaled_matmul site("moe") role(fprop) recipe(#fp8.current_scaling) fast ins(%g, %w : tensor<3x8x6xf8E4M3FN>, tensor<3x6x5xf8E4M3FN>) scales(%s, %s : tensor<f32>, tensor<f32>)
    outs(%i : tensor<8x5xbf16>) {indexing_maps = [#fwd_a, #fwd_b, #fwd_c]} -> tensor<8x5xbf16>
  return %y : tensor<8x5xbf16>
}

// The weight may come first.
// CHECK-LABEL: func @swapped
// CHECK: fp8.grouped_matmul site("moe") role(fprop) kept("why") ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<3x6x5xf32>, tensor<8x6xf32>, tensor<3xi32>) outs({{.*}}) {indexing_maps = [#[[$GKN]], #[[$TK]], #[[$TN]]]}
func.func @swapped(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %g = fp8.group_rows ins(%x, %ends : tensor<8x6xf32>, tensor<3xi32>) -> tensor<3x8x6xf32>
  %y = fp8.matmul site("moe") role(fprop) kept("why") ins(%w, %g : tensor<3x6x5xf32>, tensor<3x8x6xf32>)
    outs(%i : tensor<8x5xf32>) {indexing_maps = [#fwd_b, #fwd_a, #fwd_c]} -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// CHECK-LABEL: func @weight_gradient
// CHECK-SAME: (%[[X:.*]]: tensor<8x6xf32>, %[[DY:.*]]: tensor<8x5xf32>, %[[ENDS:.*]]: tensor<3xi32>, %[[I:.*]]: tensor<3x6x5xbf16>)
// CHECK-NEXT: %[[SUMS:.*]] = tensor.empty() : tensor<3x6x5xf32>
// CHECK-NEXT: %[[DW:.*]] = fp8.grouped_matmul ins(%[[X]], %[[DY]], %[[ENDS]] : {{.*}}) outs(%[[SUMS]] : {{.*}}) {indexing_maps = [#[[$TM]], #[[$TN2]], #[[$GMN]]]}
// CHECK-NEXT: %[[ADDED:.*]] = linalg.generic {{.*}} ins(%[[DW]] : tensor<3x6x5xf32>) outs(%[[I]] : tensor<3x6x5xbf16>)
// CHECK: arith.extf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.truncf
// CHECK: return %[[ADDED]]
func.func @weight_gradient(%x: tensor<8x6xf32>, %dy: tensor<8x5xf32>, %ends: tensor<3xi32>, %i: tensor<3x6x5xbf16>) -> tensor<3x6x5xbf16> {
  %a = fp8.group_rows ins(%x, %ends : tensor<8x6xf32>, tensor<3xi32>) -> tensor<3x8x6xf32>
  %b = fp8.group_rows ins(%dy, %ends : tensor<8x5xf32>, tensor<3xi32>) -> tensor<3x8x5xf32>
  %dw = fp8.matmul accumulate ins(%a, %b : tensor<3x8x6xf32>, tensor<3x8x5xf32>) outs(%i : tensor<3x6x5xbf16>)
    {indexing_maps = [#bwd_a, #bwd_b, #bwd_c]} -> tensor<3x6x5xbf16>
  return %dw : tensor<3x6x5xbf16>
}

// Groups that two operands do not share are written out: a mask that each operand is read through.
// CHECK-LABEL: func @other_groups
// CHECK-NOT: fp8.group_rows
// CHECK: %[[BEFORE:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK: arith.maxsi
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[BEFORE]], %{{.*}} : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>)
// CHECK: arith.cmpi sle
// CHECK: arith.cmpi slt
// CHECK: arith.select
// CHECK: fp8.matmul ins(%{{.*}}, %{{.*}} : tensor<3x8x6xf32>, tensor<3x8x5xf32>)
func.func @other_groups(%x: tensor<8x6xf32>, %dy: tensor<8x5xf32>, %ends: tensor<3xi32>, %others: tensor<3xi32>, %i: tensor<3x6x5xf32>) -> tensor<3x6x5xf32> {
  %a = fp8.group_rows ins(%x, %ends : tensor<8x6xf32>, tensor<3xi32>) -> tensor<3x8x6xf32>
  %b = fp8.group_rows ins(%dy, %others : tensor<8x5xf32>, tensor<3xi32>) -> tensor<3x8x5xf32>
  %dw = fp8.matmul ins(%a, %b : tensor<3x8x6xf32>, tensor<3x8x5xf32>) outs(%i : tensor<3x6x5xf32>)
    {indexing_maps = [#bwd_a, #bwd_b, #bwd_c]} -> tensor<3x6x5xf32>
  return %dw : tensor<3x6x5xf32>
}
