// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dependences between launches, and an order in which equal launches without such a dependence follow
// each other.

#ifndef FP8_LIB_TARGET_PTX_KERNELS_LAUNCHORDER_H
#define FP8_LIB_TARGET_PTX_KERNELS_LAUNCHORDER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"

namespace fp8 {

/// Reorders the launches of `block`, without a change of results, so that independent ones with the same
/// `key` are next to each other; returns these groups of two or more. Launches with a null key keep their
/// order among each other. `kernels` is the symbol table of the gpu.module. Any other operation that
/// accesses memory stays where it is, and no launch passes it.
llvm::SmallVector<llvm::SmallVector<mlir::gpu::LaunchFuncOp>>
groupLaunches(mlir::Block &block, const mlir::SymbolTable &kernels,
              llvm::function_ref<mlir::Attribute(mlir::gpu::LaunchFuncOp)> key);

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_KERNELS_LAUNCHORDER_H
