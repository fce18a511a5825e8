// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Static buffers of kernels in shared memory.

#ifndef FP8_CONVERSION_FP8TOGPU_SHAREDMEMORY_H
#define FP8_CONVERSION_FP8TOGPU_SHAREDMEMORY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// Returns a buffer of `kernel`, which is in its gpu.module; `number` tells apart several of one type. `type`
/// has no memory space: the result is memref<…, 3>. Kernels share the symbols, not the memory.
mlir::Value buildStaticShared(mlir::OpBuilder &builder, mlir::func::FuncOp kernel, mlir::MemRefType type,
                              unsigned number);

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOGPU_SHAREDMEMORY_H
