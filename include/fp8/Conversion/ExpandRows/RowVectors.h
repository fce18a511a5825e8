// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of casts and amaxes with `rows` that fp8-vectorize-rows has put on vectors: a value per element of a
// row is a vector of rank 1, and vector.reduction makes one scalar of it.

#ifndef FP8_CONVERSION_EXPANDROWS_ROWVECTORS_H
#define FP8_CONVERSION_EXPANDROWS_ROWVECTORS_H

#include "fp8/Dialect/FP8/IR/ElementRegion.h"

namespace fp8 {

/// Returns the most values per element of a row that the code of `region` keeps at once: those that are used
/// both before and after a reduction is complete, and the sums over rows.
int64_t countKeptValues(const ElementRegion &region);

} // namespace fp8

#endif // FP8_CONVERSION_EXPANDROWS_ROWVECTORS_H
