// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The alignment of the buffers of a kernel, which all its calls share. Private to the library.

#ifndef FP8_LIB_TARGET_PTX_KERNELS_KERNELALIGNMENT_H
#define FP8_LIB_TARGET_PTX_KERNELS_KERNELALIGNMENT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fp8 {

class KernelAlignment {
public:
  /// `calls` are all calls of `kernel`.
  KernelAlignment(mlir::func::FuncOp kernel, llvm::ArrayRef<mlir::func::CallOp> calls)
      : kernel(kernel), calls(calls) {}

  /// Returns a power of two, at most kAccessBytes, that divides the address of the first element of `memref`,
  /// a value of the kernel, at every call.
  int64_t find(mlir::Value memref) const;

private:
  int64_t findOfOffset(mlir::OpFoldResult offset, int64_t bytes) const;
  mlir::Operation *kernel;
  llvm::ArrayRef<mlir::func::CallOp> calls;
};

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_KERNELS_KERNELALIGNMENT_H
