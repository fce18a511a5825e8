// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of kernels: what a kernel computes, and the site that it works for.

#ifndef FP8_LIB_TARGET_HOST_KERNELNAMES_H
#define FP8_LIB_TARGET_HOST_KERNELNAMES_H

#include "mlir/IR/Operation.h"
#include <string>

namespace fp8 {

/// The symbols of all kernels start with this, so that none is the name of a library function.
inline constexpr llvm::StringLiteral kKernelPrefix = "kernel_";

struct KernelName {
  /// The computation of the kernel, as in "quantize", "reduce_sum" or "elementwise_tanh".
  std::string computes;
  /// The site, or the carried argument that the kernel updates; empty if the program names neither.
  std::string site;
  /// The group of a profile's summary: products, attention, epilogues, casts, history, rows,
  /// reductions, elementwise or copies.
  llvm::StringRef kind;

  /// Returns `kernel_<computes>_<site>` in letters, digits and `_`, at most 54 characters.
  std::string getSymbol() const;
};

/// Names the kernel that `op`, a linalg op, a copy or a loop, becomes.
KernelName nameKernel(mlir::Operation *op);

/// Returns `name`, or `name` with the first suffix _2, _3, … for which `isTaken` is false.
std::string makeUnique(llvm::StringRef name, llvm::function_ref<bool(llvm::StringRef)> isTaken);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_KERNELNAMES_H
