// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors in the options of a pipeline. Private to the library.

#ifndef FP8_LIB_PIPELINES_PIPELINEERRORS_H
#define FP8_LIB_PIPELINES_PIPELINEERRORS_H

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace fp8 {

/// Adds a pass that reports `error`, because the builder of a pipeline cannot fail.
void addError(mlir::OpPassManager &manager, llvm::Error error);

} // namespace fp8

#endif // FP8_LIB_PIPELINES_PIPELINEERRORS_H
