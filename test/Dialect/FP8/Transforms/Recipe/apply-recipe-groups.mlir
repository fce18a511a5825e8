// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups of rows: what is cast is the rows, once, whatever groups they belong to. Values: test/python/steps/test_experts.py.
// RUN: fp8-opt %s --fp8-apply-recipe='recipe=#fp8.current_scaling' | FileCheck %s -enable-var-scope --check-prefix=ONE
// RUN: fp8-opt %s --fp8-apply-recipe='recipe=#fp8.row_scaling' | FileCheck %s -enable-var-scope --check-prefix=ROW
// RUN: fp8-opt %s --fp8-apply-recipe='recipe=#fp8.block_scaling' | FileCheck %s -enable-var-scope --check-prefix=BLOCK

// One scale: the groups are a view of the FP8 rows (fp8-form-grouped-matmuls).
// ONE-LABEL: func @groups
// ONE-SAME: (%[[X:.*]]: tensor<8x6xf32>, %[[W:.*]]: tensor<3x6x5xf32>, %[[DY:.*]]: tensor<8x5xf32>, %[[ENDS:.*]]: tensor<3xi32>
// ONE-DAG: %[[X8:.*]]:2 = fp8.quantize ins(%[[X]] : tensor<8x6xf32>)
// ONE-DAG: %[[W8:.*]]:2 = fp8.quantize ins(%[[W]] : tensor<3x6x5xf32>)
// ONE-DAG: %[[DY8:.*]]:2 = fp8.quantize ins(%[[DY]] : tensor<8x5xf32>)
// ONE: %[[G8:.*]] = fp8.group_rows ins(%[[X8]]#0, %[[ENDS]] : tensor<8x6xf8E4M3FN>, tensor<3xi32>) -> tensor<3x8x6xf8E4M3FN>
// ONE-NEXT: fp8.scaled_matmul site("moe") role(fprop) {{.*}} ins(%[[G8]], %[[W8]]#0 :
// ONE: fp8.scaled_matmul site("moe") role(wgrad)
// ONE-NOT: fp8.quantize

// A scale per row: products are grouped ones at once, because their operands have other dimensions than blocks. The
// weight has scales for each group; a weight gradient's are those of columns of all rows.
// ROW-LABEL: func @groups
// ROW-SAME: (%[[X:.*]]: tensor<8x6xf32>, %[[W:.*]]: tensor<3x6x5xf32>, %[[DY:.*]]: tensor<8x5xf32>, %[[ENDS:.*]]: tensor<3xi32>
// ROW-DAG: fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%[[X]] : tensor<8x6xf32>) {{.*}}blocks = [array<i64: 1, 0>]
// ROW-DAG: fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%[[W]] : tensor<3x6x5xf32>) {{.*}}blocks = [array<i64: 1, 0, 1>]
// ROW: fp8.scaled_grouped_matmul site("moe") role(fprop) recipe(#fp8.row_scaling) fast ins(%{{.*}}, %{{.*}}, %[[ENDS]] : {{.*}}) scales(%{{.*}}, %{{.*}} : tensor<8x1xf32>, tensor<3x1x5xf32>) {{.*}}lhs_block = array<i64: 1, 0>, rhs_block = array<i64: 1, 0, 1>
// ROW: fp8.scaled_grouped_matmul site("moe") role(wgrad) recipe(#fp8.row_scaling) split ins({{.*}}) scales(%{{.*}}, %{{.*}} : tensor<1x6xf32>, tensor<1x5xf32>) {{.*}}lhs_block = array<i64: 0, 1>, rhs_block = array<i64: 0, 1>

// Blocks along K: so too, but for the weight gradient, whose blocks of rows groups would divide.
// BLOCK: fp8.scaled_grouped_matmul site("moe") role(fprop) {{.*}} scales(%{{.*}}, %{{.*}} : tensor<8x1xf32>, tensor<3x1x1xf32>) {{.*}}lhs_block = array<i64: 1, 128>, rhs_block = array<i64: 1, 128, 128>
// BLOCK: fp8.scaled_matmul site("moe") role(wgrad)
func.func @groups(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %dy: tensor<8x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>, %j: tensor<3x6x5xf32>) -> (tensor<8x5xf32>, tensor<3x6x5xf32>) {
  %g = fp8.group_rows ins(%x, %ends : tensor<8x6xf32>, tensor<3xi32>) -> tensor<3x8x6xf32>
  %y = fp8.matmul site("moe") role(fprop) kinds(input, weight) ins(%g, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
    {indexing_maps = [affine_map<(m, n, k, g) -> (g, m, k)>, affine_map<(m, n, k, g) -> (g, k, n)>, affine_map<(m, n, k, g) -> (m, n)>]} -> tensor<8x5xf32>
  %d = fp8.group_rows ins(%dy, %ends : tensor<8x5xf32>, tensor<3xi32>) -> tensor<3x8x5xf32>
  %dw = fp8.matmul site("moe") role(wgrad) kinds(input, grad_output) ins(%g, %d : tensor<3x8x6xf32>, tensor<3x8x5xf32>) outs(%j : tensor<3x6x5xf32>)
    {indexing_maps = [affine_map<(g, m, n, k) -> (g, k, m)>, affine_map<(g, m, n, k) -> (g, k, n)>, affine_map<(g, m, n, k) -> (g, m, n)>]} -> tensor<3x6x5xf32>
  return %y, %dw : tensor<8x5xf32>, tensor<3x6x5xf32>
}
