// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes tensors that are filled with zeros.

#ifndef FP8_ANALYSIS_ZEROS_H
#define FP8_ANALYSIS_ZEROS_H

#include "mlir/IR/Value.h"

namespace fp8 {

/// Returns whether `value` is a scalar zero, or a tensor that is filled with zeros.
bool isFilledWithZeros(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_ZEROS_H
