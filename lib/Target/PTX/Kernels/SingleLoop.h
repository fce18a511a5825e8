// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a parallel loop of a kernel that has none, so that lanes can share its loops, and
// one loop of nests of loops.

#ifndef FP8_LIB_TARGET_PTX_KERNELS_SINGLELOOP_H
#define FP8_LIB_TARGET_PTX_KERNELS_SINGLELOOP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace fp8 {

/// Per loop that was a nest: the indices of its loops.
using NestIndices = llvm::DenseMap<mlir::Operation *, mlir::SmallVector<mlir::Value>>;

/// Makes one loop of each nest of loops in `block`; `nests` gets the indices of their loops.
void joinNests(mlir::Block &block, NestIndices &nests);

/// Moves the code of a kernel of one thread into a parallel loop of one iteration, where nests of loops are
/// one loop each; `nests` gets the indices of their loops.
mlir::scf::ParallelOp wrapInLoop(mlir::func::FuncOp func, NestIndices &nests);

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_KERNELS_SINGLELOOP_H
