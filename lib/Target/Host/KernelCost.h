// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes that one call of a kernel moves and its operations, counted on linalg, loops and memrefs.

#ifndef FP8_LIB_TARGET_HOST_KERNELCOST_H
#define FP8_LIB_TARGET_HOST_KERNELCOST_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace fp8 {

/// Unset where it depends on dynamic sizes.
struct KernelCost {
  /// Bytes of the buffers from outside, each distinct byte once.
  std::optional<int64_t> read, written;
  /// Floating-point operations: two for a fused multiply-add, one for any other operation or
  /// function; none for constants, casts, comparisons and selections.
  std::optional<int64_t> operations;
};

/// Counts `call` of `kernel`, whose operands may tell sizes that the kernel does not know.
KernelCost countKernelCost(mlir::func::CallOp call, mlir::func::FuncOp kernel);

/// Describes an operand of a kernel's call: the type of a buffer before casts to dynamic sizes,
/// a constant, or nothing but its type. Calls of one kernel with equal operands cost the same.
mlir::Attribute describeOperand(mlir::Value operand);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_KERNELCOST_H
