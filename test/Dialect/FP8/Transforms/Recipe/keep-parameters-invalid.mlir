// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// RUN: fp8-opt %s --fp8-keep-parameters -verify-diagnostics

func.func @main(%w: tensor<?x16xbf16>, %s: tensor<f32>) -> tensor<?x16xf8E4M3FN> {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %w, %c0 : tensor<?x16xbf16>
  %d = tensor.empty(%size) : tensor<?x16xf8E4M3FN>
  %f = tensor.empty() : tensor<f32>
  // expected-error @below {{--fp8-parameters keeps no weight in FP8; that of site 'fc': its size is not known}}
  %q:2 = fp8.quantize ins(%w : tensor<?x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %f : tensor<?x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "fc"} -> tensor<?x16xf8E4M3FN>, tensor<f32>
  return %q#0 : tensor<?x16xf8E4M3FN>
}
