// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes ops that only rearrange and cast elements: transposes, broadcasts and casts, in
// any form in which an exporter writes them.

#ifndef FP8_ANALYSIS_REARRANGEMENT_H
#define FP8_ANALYSIS_REARRANGEMENT_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace fp8 {

/// result[i] = cast(input[map(i)]). The results of `map` are distinct dimensions, or 0 for
/// input dimensions of size 1 that are broadcast.
struct Rearrangement {
  mlir::Value input;
  mlir::AffineMap map;
  mlir::Operation *cast = nullptr; ///< arith.extf or arith.truncf, if any
};

/// Matches arith.extf and arith.truncf on tensors, and linalg ops (generic or named) on tensors
/// that rearrange one input and do nothing else, except for one such cast.
std::optional<Rearrangement> matchRearrangement(mlir::Operation *op);

} // namespace fp8

#endif // FP8_ANALYSIS_REARRANGEMENT_H
