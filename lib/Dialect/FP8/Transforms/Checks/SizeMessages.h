// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The error messages of a running program about sizes that do not fit together and indices that
// are out of range.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SIZEMESSAGES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SIZEMESSAGES_H

#include "TensorSizes.h"
#include <string>

namespace fp8 {

/// Returns the message that sizes `a` and `b` must be the same. It names the arguments that they are
/// sizes of, or computed from.
std::string describeMismatch(TensorSizes &sizes, mlir::OpFoldResult a, mlir::OpFoldResult b);

/// Returns the message that `what` ("an index") is outside of a dimension of `tensor`. It names the
/// arguments that `causes` are computed from.
std::string describeOutside(llvm::StringRef what, mlir::Value tensor, int64_t dim,
                            llvm::ArrayRef<mlir::OpFoldResult> causes);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SIZEMESSAGES_H
