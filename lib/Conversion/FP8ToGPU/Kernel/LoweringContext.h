// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Used by all lowerings: the chip and the kernels that they share. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_LOWERINGCONTEXT_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_LOWERINGCONTEXT_H

#include "AmaxBuffers.h"
#include "KernelBuilder.h"
#include "fp8/Dialect/FP8/IR/Chips.h"

namespace fp8 {

/// The chip and the kernels of the module, which every lowering uses.
struct LoweringContext {
  const Chip &chip;
  KernelTable &kernels;
  AmaxBuffers &amaxes;
  bool hasErrors = false; ///< whether an error has been reported
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_LOWERINGCONTEXT_H
