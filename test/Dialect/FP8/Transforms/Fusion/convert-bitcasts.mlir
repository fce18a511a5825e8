// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-convert-bitcasts))' | FileCheck %s

// CHECK-LABEL: func.func @bytes
// CHECK: arith.bitcast %{{.*}} : tensor<4x?xi8> to tensor<4x?xf8E5M2>
// CHECK-NOT: tensor.bitcast
func.func @bytes(%x: tensor<4x?xi8>) -> tensor<4x?xf8E5M2> {
  %y = tensor.bitcast %x : tensor<4x?xi8> to tensor<4x?xf8E5M2>
  return %y : tensor<4x?xf8E5M2>
}
