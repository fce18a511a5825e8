// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of attention that a program has widened to f32 and scaled, as PyTorch's attention in its math form
// does. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_WIDENEDOPERAND_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_WIDENEDOPERAND_H

#include "AttentionParts.h"

namespace fp8::detail {

/// An operand that is `factor` times another tensor.
struct WidenedOperand {
  Operand source;
  double factor = 1;
};

/// Looks through casts to f32, products with constants and permutations of dimensions up to a tensor of bf16
/// or f16. Returns the operand itself if it is not computed from one in this way.
WidenedOperand findSource(const Operand &operand);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_WIDENEDOPERAND_H
