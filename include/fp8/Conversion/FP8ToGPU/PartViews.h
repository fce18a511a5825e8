// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memrefs divided into parts, which blocks of a GPU take side by side.

#ifndef FP8_CONVERSION_FP8TOGPU_PARTVIEWS_H
#define FP8_CONVERSION_FP8TOGPU_PARTVIEWS_H

#include "mlir/IR/Builders.h"

namespace fp8 {

/// Returns whether all memrefs among `values` have strides: others have no views.
bool haveStrides(mlir::ValueRange values);

/// Returns a view of `memref`, which has strides, with two dimensions in place of dimension `position`:
/// `count` parts, and the elements of a part. `count` divides the dimension's size.
mlir::Value buildPartView(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memref, unsigned position,
                          int64_t count);

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOGPU_PARTVIEWS_H
