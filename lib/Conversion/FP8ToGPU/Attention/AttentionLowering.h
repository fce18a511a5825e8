// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the lowering of attention. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONLOWERING_H
#define FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONLOWERING_H

#include "../Kernel/LoweringContext.h"

namespace fp8 {

/// Replaces an operation by launches: one for the output, or one for the gradient of the query and one or two
/// for those of key and value.
bool lowerOnlineAttention(mlir::OpBuilder &builder, OnlineAttentionOp op, LoweringContext &context);
bool lowerOnlineAttentionGrad(mlir::OpBuilder &builder, OnlineAttentionGradOp op, LoweringContext &context);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONLOWERING_H
