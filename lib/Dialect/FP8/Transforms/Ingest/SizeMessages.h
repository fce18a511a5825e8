// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a running program says of sizes that do not fit together and indices out of range.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SIZEMESSAGES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SIZEMESSAGES_H

#include "TensorSizes.h"
#include <string>

namespace fp8 {

/// That sizes `a` and `b` must be the same, naming the arguments they are sizes of, or follow from.
std::string describeMismatch(TensorSizes &sizes, mlir::OpFoldResult a, mlir::OpFoldResult b);

/// That `what` ("an index") is outside of a tensor's dimension, and from which arguments it follows.
std::string describeOutside(llvm::StringRef what, mlir::Value tensor, int64_t dim,
                            llvm::ArrayRef<mlir::OpFoldResult> causes);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SIZEMESSAGES_H
