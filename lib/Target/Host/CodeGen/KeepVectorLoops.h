// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass of LLVM IR that keeps loops over vectors from being unrolled.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_KEEPVECTORLOOPS_H
#define FP8_LIB_TARGET_HOST_CODEGEN_KEEPVECTORLOOPS_H

#include "llvm/IR/PassManager.h"

namespace fp8 {

/// Forbids, by metadata, to unroll innermost loops that the loop vectorizer can make one vector or more of:
/// as many iterations as a vector has f32 lanes at least, without a floating-point value that passes from one
/// to the next. Of the 16 columns of a register tile, unrolled, the vectorizer would make vectors along the
/// rows, whose elements it loads and stores one by one. Run it before loops are unrolled.
struct KeepVectorLoopsPass : llvm::PassInfoMixin<KeepVectorLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_KEEPVECTORLOOPS_H
