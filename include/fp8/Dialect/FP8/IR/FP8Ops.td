// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All operations of the dialect, for TableGen.

#ifndef FP8_DIALECT_FP8_IR_FP8OPS_TD
#define FP8_DIALECT_FP8_IR_FP8OPS_TD

include "fp8/Dialect/FP8/IR/FP8AttentionOps.td"
include "fp8/Dialect/FP8/IR/FP8CollectiveOps.td"
include "fp8/Dialect/FP8/IR/FP8GroupedMatmulOps.td"
include "fp8/Dialect/FP8/IR/FP8MatmulOps.td"
include "fp8/Dialect/FP8/IR/FP8OnlineAttentionOps.td"
include "fp8/Dialect/FP8/IR/FP8RegionOps.td"
include "fp8/Dialect/FP8/IR/FP8ScalingOps.td"
include "fp8/Dialect/FP8/IR/FP8StateOps.td"

#endif // FP8_DIALECT_FP8_IR_FP8OPS_TD
