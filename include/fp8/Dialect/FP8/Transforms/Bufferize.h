// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 5 for those who build pipelines.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZE_H
#define FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZE_H

#include "mlir/Pass/PassManager.h"

namespace fp8 {

/// Stage 5. In: functions on tensors. Out: functions on memrefs, public ones without
/// results: state and carried arguments are updated in place, other results are written to
/// arguments appended for them, all other arguments are only read.
void buildBufferizePipeline(mlir::OpPassManager &manager);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZE_H
