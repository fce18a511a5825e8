// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stock mlir-opt runs our pipelines through the plugin, as fp8-opt does.
// UNSUPPORTED: sanitizers
// RUN: mlir-opt-22 %s --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline{recipe=current keep=head})' -o %t.stock
// RUN: FileCheck %s < %t.stock
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline{recipe=current keep=head})' -o %t.own
// RUN: diff %t.stock %t.own
// RUN: mlir-opt-22 %t.stock --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-fusion-pipeline,fp8-batching-pipeline,fp8-bufferize-pipeline,fp8-cpu-kernels-pipeline,fp8-cpu-code-pipeline)' | FileCheck %s --check-prefix=CODE

// CHECK-LABEL: func.func @main
// CHECK: fp8.amax ins
// CHECK: fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN)
// CHECK: fp8.quantize ins
// CHECK: fp8.scaled_matmul site("fc") role(fprop) recipe(#fp8.current_scaling) fast
// CHECK: fp8.matmul site("head"){{.*}}kept("matches --keep=head")
// CODE: llvm.func @fp8_call_main(
func.func @main(%w: tensor<16x32xbf16>, %v: tensor<32x8xbf16>, %x: tensor<4x16xbf16>) -> tensor<4x8xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<4x32xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<4x32xbf16>) -> tensor<4x32xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x16xbf16>, tensor<16x32xbf16>) outs(%f : tensor<4x32xbf16>) -> tensor<4x32xbf16> loc("fc/dot")
  %e1 = tensor.empty() : tensor<4x8xbf16>
  %f1 = linalg.fill ins(%zero : bf16) outs(%e1 : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %z = linalg.matmul ins(%y, %v : tensor<4x32xbf16>, tensor<32x8xbf16>) outs(%f1 : tensor<4x8xbf16>) -> tensor<4x8xbf16> loc("head/dot")
  return %z : tensor<4x8xbf16>
}
