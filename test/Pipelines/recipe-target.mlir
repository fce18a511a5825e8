// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The option target of the recipe pipeline is the module's target, and contractions that were not ingested are
// an error: neither is silently ignored.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline{recipe=current target=sm_90a})' -o %t
// RUN: FileCheck %s < %t
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-ingest-pipeline)' -o %t.ingest
// RUN: sed -e 's/^module {/module attributes {fp8.target = #fp8.chip<"sm_89">} {/' %t.ingest > %t.chip
// RUN: fp8-opt %t.chip --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=current target=sm_89})' | FileCheck %s --check-prefix=SAME
// RUN: not fp8-opt %t.chip --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=current target=sm_90a})' 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not fp8-opt %t.chip --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=auto})' 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline{recipe=mxfp8 target=sm_90a})' 2>&1 | FileCheck %s --check-prefix=NO-KERNEL
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=current})' 2>&1 | FileCheck %s --check-prefix=INGEST

// CHECK: module attributes {fp8.target = #fp8.chip<"sm_90a">}
// CHECK: fp8.scaled_matmul
// SAME: module attributes {fp8.target = #fp8.chip<"sm_89">}
// SAME: fp8.scaled_matmul
// OTHER: error: --target=sm_90a, but the module's fp8.target is #fp8.chip<"sm_89">
// AUTO: error: --target=cpu, but the module's fp8.target is #fp8.chip<"sm_89">
// NO-KERNEL: error: site 'matmul0': mxfp8 scales have no kernel on sm_90a
// INGEST: error: after ingest: this contraction is not an fp8.matmul; fp8-ingest-pipeline goes before fp8-recipe-pipeline
func.func @main(%x: tensor<8x16xbf16>, %w: tensor<16x8xbf16>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x16xbf16>, tensor<16x8xbf16>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
