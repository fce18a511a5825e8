// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma.mma_async as decoded, between Wgmma.cpp and WgmmaProduct.cpp.

#ifndef FP8EMU_ISA_MATRIX_WGMMA_H
#define FP8EMU_ISA_MATRIX_WGMMA_H

#include "Products.h"

namespace fp8emu {

/// The op's payload. Its list holds the accumulators, then A's registers where it has
/// any; op.a and op.b are the descriptors, op.c is scale-d, negated with op.flags.
struct WgmmaProduct {
  /// The 16 of the 64 rows that one warp computes.
  Product product;
  bool aInRegisters = false;
  bool transposeA = false, transposeB = false;
};

/// Starts the product of a warp, or, without checks, computes it at once.
void startProduct(Warp &warp, const Op &op, Mask mask);

} // namespace fp8emu

#endif // FP8EMU_ISA_MATRIX_WGMMA_H
