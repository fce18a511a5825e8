// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of elements on two neighbours at once, as vector<2xT>: one instruction computes a pair of bf16, from
// sm_100a on also of f32, and converts a pair of f32. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_ELEMENTPAIRS_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_ELEMENTPAIRS_H

#include "KernelBuilder.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/IR/IRMapping.h"

namespace fp8 {

/// Returns whether every operation of `region` computes the elements of vectors as it computes scalars.
bool worksOnPairs(const ElementRegion &region);

/// Returns a pair of `low` and `high` as a vector.
mlir::Value joinPair(KernelBuilder &b, mlir::Value low, mlir::Value high);
/// Returns the values 2i and 2i + 1 of `elements`, whose number is even, as a vector, for each i.
llvm::SmallVector<mlir::Value> joinPairs(KernelBuilder &b, llvm::ArrayRef<mlir::Value> elements);
/// The reverse of joinPairs().
llvm::SmallVector<mlir::Value> splitPairs(KernelBuilder &b, llvm::ArrayRef<mlir::Value> pairs);

/// Copies the code of `region`, for which worksOnPairs() holds. `mapping` has the pairs of the region's
/// arguments; values from outside of the region that it maps to scalars stand for pairs of equal elements.
void cloneCodeOnPairs(KernelBuilder &b, const ElementRegion &region, mlir::IRMapping &mapping);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_ELEMENTPAIRS_H
