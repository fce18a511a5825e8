// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop of a kernel that becomes threads. Private to the library.

#ifndef FP8_LIB_TARGET_PTX_KERNELS_THREADLOOP_H
#define FP8_LIB_TARGET_PTX_KERNELS_THREADLOOP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <optional>

namespace fp8 {

/// Threads of a block: eight warps hide each other's latency, and several blocks fit on a multiprocessor.
inline constexpr int64_t kThreads = 256;

/// Returns the loop whose iterations become threads: the code before it, which every thread runs, computes
/// and loads only, and nothing follows it. Null if there is none.
mlir::scf::ParallelOp findParallelLoop(mlir::func::FuncOp kernel);

/// Returns the number of iterations of `loop` if it is known.
std::optional<int64_t> countIterations(mlir::scf::ParallelOp loop);

/// Returns whether the bounds of a loop are computed from sizes and arguments, so that a launch can compute
/// them. Otherwise one thread runs the loop.
bool hasHostBounds(mlir::scf::ParallelOp loop);

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_KERNELS_THREADLOOP_H
