// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed operands. Values: test/python/ingest/test_forms.py.
// RUN: fp8-opt %s --split-input-file --fp8-expand-packs -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @padded
// CHECK: tensor.pad
// CHECK: tensor.expand_shape
// CHECK: linalg.transpose
// CHECK-NOT: linalg.pack
// CHECK: tensor.collapse_shape
// CHECK: tensor.extract_slice
// CHECK-NOT: linalg.unpack
func.func @padded(%x: tensor<6x5xf32>, %e: tensor<2x2x4x3xf32>) -> tensor<6x5xf32> {
  %z = arith.constant 0.0 : f32
  %p = linalg.pack %x padding_value(%z : f32) inner_dims_pos = [0, 1] inner_tiles = [4, 3] into %e : tensor<6x5xf32> -> tensor<2x2x4x3xf32>
  %u = linalg.unpack %p inner_dims_pos = [0, 1] inner_tiles = [4, 3] into %x : tensor<2x2x4x3xf32> -> tensor<6x5xf32>
  return %u : tensor<6x5xf32>
}
