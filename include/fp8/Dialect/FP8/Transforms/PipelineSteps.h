// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes with the options that the pipelines of all stages give them.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PIPELINESTEPS_H
#define FP8_DIALECT_FP8_TRANSFORMS_PIPELINESTEPS_H

#include "mlir/Pass/PassManager.h"

namespace fp8 {

/// Adds fp8-verify-stage for `stage`, the stage that the passes before it end.
void addStageVerifier(mlir::OpPassManager &manager, llvm::StringRef stage);

/// Adds upstream's canonicalizer without its simplification of regions, which is for blocks and branches.
void addCanonicalizer(mlir::OpPassManager &manager);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_PIPELINESTEPS_H
