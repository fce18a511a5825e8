// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The texts of a library's errors.

#ifndef FP8_LIB_TARGET_HOST_ENTRYPOINTS_ERRORMESSAGES_H
#define FP8_LIB_TARGET_HOST_ENTRYPOINTS_ERRORMESSAGES_H

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace fp8 {

/// Creates a constant `name` before `func`, and returns its address: the error line of the assertion, which
/// is its message and the location in the user's program, ending in a NUL.
mlir::Value addErrorMessage(mlir::OpBuilder &builder, mlir::func::FuncOp func, mlir::cf::AssertOp assertion,
                            const llvm::Twine &name);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_ENTRYPOINTS_ERRORMESSAGES_H
