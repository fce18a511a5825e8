// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes that one call of a kernel moves and its operations, counted on linalg, loops and memrefs.

#ifndef FP8_LIB_TARGET_HOST_KERNELCOST_H
#define FP8_LIB_TARGET_HOST_KERNELCOST_H

#include "fp8/Dialect/FP8/IR/KernelCost.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fp8 {

/// Counts `call` of `kernel`, whose operands may tell sizes that the kernel does not know.
KernelCost countKernelCost(mlir::func::CallOp call, mlir::func::FuncOp kernel);

/// Describes an operand of a kernel's call: the type of a buffer before casts to dynamic sizes,
/// a constant, or nothing but its type. Calls of one kernel with equal operands cost the same.
mlir::Attribute describeOperand(mlir::Value operand);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_KERNELCOST_H
