// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes that mark an operation as one kernel, and say how kernels sum.

#ifndef FP8_CONVERSION_KERNEL_H
#define FP8_CONVERSION_KERNEL_H

#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// Returns whether the module of `op` has the unit attribute `name`.
inline bool hasModuleAttr(mlir::Operation *op, llvm::StringRef name) {
  auto module = op->getParentOfType<mlir::ModuleOp>();
  return module && module->hasAttr(name);
}

} // namespace fp8

#endif // FP8_CONVERSION_KERNEL_H
