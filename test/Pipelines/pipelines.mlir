// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each pipeline takes the IR of the one before it, down to the LLVM dialect.
// RUN: fp8-opt %s --fp8-ingest-pipeline -o %t.ingest
// RUN: FileCheck %s --check-prefix=INGEST < %t.ingest
// RUN: fp8-opt %t.ingest --pass-pipeline='builtin.module(fp8-recipe-pipeline{amax-history-len=4 keep=head calibrate})' -o %t.recipe
// RUN: FileCheck %s --check-prefix=RECIPE < %t.recipe
// RUN: fp8-opt %t.recipe --fp8-fusion-pipeline -o %t.fusion
// RUN: FileCheck %s --check-prefix=FUSION < %t.fusion
// RUN: fp8-opt %t.fusion --fp8-batching-pipeline -o %t.batching
// RUN: FileCheck %s --check-prefix=BATCHING < %t.batching
// RUN: fp8-opt %t.batching --fp8-bufferize-pipeline -o %t.bufferize
// RUN: FileCheck %s --check-prefix=BUFFERIZE < %t.bufferize
// RUN: fp8-opt %t.bufferize --fp8-cpu-kernels-pipeline -o %t.kernels
// RUN: FileCheck %s --check-prefix=KERNELS --implicit-check-not=' = fp8.' --implicit-check-not='  fp8.' < %t.kernels
// RUN: fp8-opt %t.kernels --fp8-cpu-code-pipeline | FileCheck %s --check-prefix=CODE
//
// fp8-compile is these pipelines, in this order, on a module that names its target, with the vector registers of
// this machine.
// RUN: fp8-compile %s -o - --emit=bufferize --amax-history-len=4 --keep=head --calibrate | fp8-opt -o %t.compile
// RUN: sed -e 's/, fp8.target = #fp8.cpu\(<[^>]*>\)\{0,1\}//' %t.compile > %t.compile.neutral
// RUN: diff %t.bufferize %t.compile.neutral
// RUN: fp8-opt %t.compile --fp8-cpu-kernels-pipeline -o %t.compile.kernels
// RUN: fp8-compile %s -o - --emit=kernels --amax-history-len=4 --keep=head --calibrate | fp8-opt -o %t.kernels
// RUN: diff %t.kernels %t.compile.kernels

// INGEST-LABEL: func.func @main
// INGEST-SAME: (%[[W:[^:]*]]: tensor<16x32xf32> {tf.aliasing_output = 0 : i32}, %[[V:[^:]*]]: tensor<32x8xf32>, %[[X:[^:]*]]: tensor<4x16xf32>)
// What a program without gradients carries is a cache, no weight.
// INGEST: fp8.matmul site("fc") role(fprop) kinds(weight, input) ins(%[[X]], %[[W]]
// INGEST: fp8.matmul site("head") role(fprop) kinds(input, weight)
// INGEST-NOT: func.func private

// RECIPE-LABEL: func.func @main
// RECIPE-SAME: tensor<2xf32> {fp8.state = "scale", tf.aliasing_output = 2 : i32}
// RECIPE-SAME: tensor<4x2xf32> {fp8.state = "amax_history", tf.aliasing_output = 3 : i32})
// RECIPE-SAME: -> (tensor<16x32xf32>, tensor<4x8xf32>, tensor<2xf32> {fp8.state = "scale"}, tensor<4x2xf32> {fp8.state = "amax_history"})
// RECIPE-DAG: fp8.quantize record_amax column(0)
// RECIPE-DAG: fp8.quantize record_amax column(1)
// RECIPE: fp8.scaled_matmul site("fc") role(fprop)
// RECIPE: fp8.matmul site("head"){{.*}}kept("matches --keep=head")

// FUSION-COUNT-2: fp8.quantize record_amax
// FUSION-NOT: fp8.quantize

// No collective: the program is for one rank.
// BATCHING-NOT: fp8.all_reduce
// BATCHING: fp8.update_amax_history {{.*}}columns [0, 1]
// BATCHING-NOT: fp8.update_amax_history

// BUFFERIZE-LABEL: func.func @main
// BUFFERIZE-NOT: tensor<
// BUFFERIZE: fp8.quantize
// BUFFERIZE: fp8.scaled_matmul

// KERNELS-LABEL: func.func @main
// KERNELS: linalg.generic

// CODE-DAG: llvm.func @fp8_call_main(
// CODE-DAG: llvm.func {{.*}}@kernel_{{.*}}(

func.func @main(%w: tensor<16x32xf32> {tf.aliasing_output = 0 : i32}, %v: tensor<32x8xf32>, %x: tensor<4x16xf32>)
    -> (tensor<16x32xf32>, tensor<4x8xf32>) {
  %y = call @layer(%x, %w) : (tensor<4x16xf32>, tensor<16x32xf32>) -> tensor<4x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = linalg.matmul ins(%y, %v : tensor<4x32xf32>, tensor<32x8xf32>) outs(%f : tensor<4x8xf32>) -> tensor<4x8xf32> loc("head/dot")
  %half = arith.constant dense<0.5> : tensor<16x32xf32>
  %u = arith.mulf %w, %half : tensor<16x32xf32>
  return %u, %z : tensor<16x32xf32>, tensor<4x8xf32>
}
func.func private @layer(%x: tensor<4x16xf32>, %w: tensor<16x32xf32>) -> tensor<4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32xf32>) -> tensor<4x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x16xf32>, tensor<16x32xf32>) outs(%f : tensor<4x32xf32>) -> tensor<4x32xf32> loc("fc/dot")
  return %y : tensor<4x32xf32>
}
