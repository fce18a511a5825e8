// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The elements that a map or a copy reads, as sums of loops (WindowLoops.h). Private to the library.

#ifndef FP8_LIB_ANALYSIS_WINDOWREADS_H
#define FP8_LIB_ANALYSIS_WINDOWREADS_H

#include "fp8/Analysis/WindowLoops.h"

namespace fp8::detail {

/// Returns the results of `map` as sums of its dimensions; unset if one is something else.
std::optional<llvm::SmallVector<LoopSum>> flatten(mlir::AffineMap map);

/// Returns the tensor that a generic operation copies element by element, and where it reads each: by its
/// map, or by code that computes indices.
std::optional<WindowRead> matchCopy(mlir::linalg::GenericOp op);

/// Returns whether a copy has the elements of its tensor, each once, in another order.
bool isReordering(const WindowRead &copy, unsigned rank);

} // namespace fp8::detail

#endif // FP8_LIB_ANALYSIS_WINDOWREADS_H
