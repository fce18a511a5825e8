// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that a recipe names, from the recipe stage to their last use: inlined in the loop
// over the columns, and gone.
// DEFINE: %{recipe} = fp8-ingest-pipeline,fp8-recipe-pipeline{calibrate recipe="#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 8>, scale = @scale, amax = @oldest>"}
// RUN: fp8-opt %s --pass-pipeline='builtin.module(%{recipe})' | FileCheck %s --enable-var-scope --check-prefix=RECIPE
// RUN: fp8-opt %s --pass-pipeline='builtin.module(%{recipe},fp8-fusion-pipeline,fp8-batching-pipeline,fp8-bufferize-pipeline,fp8-cpu-kernels-pipeline)' | FileCheck %s --enable-var-scope --check-prefix=KERNELS --implicit-check-not="func.func {{(private )?}}@scale" --implicit-check-not="func.func {{(private )?}}@oldest"

// RECIPE-LABEL: func.func private @scale(
// RECIPE-LABEL: func.func private @oldest(
// RECIPE-SAME: tensor<8xf32>) -> f32
// RECIPE-LABEL: func.func @main(
// RECIPE: fp8.update_amax_history recipe(#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 8>, scale = @scale, amax = @oldest>)

// KERNELS-LABEL: func.func @main(
// KERNELS: %[[FACTOR:.*]] = arith.constant 1.750000e+00 : f32
// KERNELS: arith.mulf %{{.*}}, %[[FACTOR]] : f32
func.func @scale(%amax: f32, %max: f32, %old: f32) -> f32 {
  %factor = arith.constant 1.75 : f32
  %scale = arith.mulf %old, %factor : f32
  return %scale : f32
}
func.func @oldest(%column: tensor<?xf32>) -> f32 {
  %one = arith.constant 1 : index
  %amax = tensor.extract %column[%one] : tensor<?xf32>
  return %amax : f32
}
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
