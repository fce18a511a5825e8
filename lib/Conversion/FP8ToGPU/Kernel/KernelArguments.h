// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Used by everything that launches a kernel: its arguments, with the operands of the launch. Private to the
// library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELARGUMENTS_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELARGUMENTS_H

#include "mlir/IR/Builders.h"

namespace fp8 {

/// The arguments of a kernel together with the operands of its launch.
class KernelArguments {
public:
  explicit KernelArguments(mlir::OpBuilder &host, mlir::Location loc) : host(host), loc(loc) {}

  /// Each adds an argument and returns its number.
  unsigned addPointer(mlir::Value memref);
  unsigned addI32(mlir::Value index);
  unsigned addI64(mlir::Value index);

  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::Value> operands;

private:
  unsigned add(mlir::Type type, mlir::Value operand);

  mlir::OpBuilder &host;
  mlir::Location loc;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELARGUMENTS_H
