// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SHAREDHEADS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SHAREDHEADS_H

#include "mlir/IR/PatternMatch.h"

namespace fp8::detail {

/// Lets attention, forward or backward, read key and value as they are before the program repeats them for
/// the heads of a group: its maps lack the group then. A dimension of all heads becomes two, of groups and of
/// the heads of one, in views of all other operands. Results keep their bits.
void shareHeads(mlir::RewriterBase &rewriter, mlir::Operation *attention);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SHAREDHEADS_H
