// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts at compile time about indices, such as sizes, that are computed at run time.

#ifndef FP8_CONVERSION_INDEXFACTS_H
#define FP8_CONVERSION_INDEXFACTS_H

#include "mlir/IR/OpDefinition.h"

namespace fp8 {

/// Returns the most that `index` can be; ShapedType::kDynamic if that is not known.
int64_t findMost(mlir::OpFoldResult index);

/// Returns a number that divides `index`, the largest one that is known; at least 1.
int64_t findDivisor(mlir::OpFoldResult index);

} // namespace fp8

#endif // FP8_CONVERSION_INDEXFACTS_H
