// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constructors and options of the passes of stages 1 to 5.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PASSES_H
#define FP8_DIALECT_FP8_TRANSFORMS_PASSES_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Pass/Pass.h"

namespace fp8 {

#define GEN_PASS_DECL
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_PASSES_H
