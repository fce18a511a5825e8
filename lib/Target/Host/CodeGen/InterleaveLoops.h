// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass of LLVM IR that has long loops computed for several vectors at a time.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_INTERLEAVELOOPS_H
#define FP8_LIB_TARGET_HOST_CODEGEN_INTERLEAVELOOPS_H

#include "llvm/IR/PassManager.h"

namespace fp8 {

/// Asks the loop vectorizer, by metadata, to interleave innermost loops with long bodies: one element's
/// operations wait for each other (ten roundings to bf16 of a GELU), and a processor looks ahead no further
/// than an iteration or two. The vectorizer by itself interleaves short bodies only. Loops whose trip count
/// is unknown, or leaves a rest of scalar iterations, stay as they are; so does everything on processors with
/// more than 16 vector registers, where no gain has been measured. Run it before the vectorizer.
struct InterleaveLoopsPass : llvm::PassInfoMixin<InterleaveLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_INTERLEAVELOOPS_H
