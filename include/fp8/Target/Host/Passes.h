// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on the host code of every target.

#ifndef FP8_TARGET_HOST_PASSES_H
#define FP8_TARGET_HOST_PASSES_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace fp8 {
#define GEN_PASS_DECL
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

#endif // FP8_TARGET_HOST_PASSES_H
