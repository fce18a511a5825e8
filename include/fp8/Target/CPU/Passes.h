// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes between bufferized linalg and the LLVM dialect for the CPU.

#ifndef FP8_TARGET_CPU_PASSES_H
#define FP8_TARGET_CPU_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace fp8 {
#define GEN_PASS_DECL
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

#endif // FP8_TARGET_CPU_PASSES_H
