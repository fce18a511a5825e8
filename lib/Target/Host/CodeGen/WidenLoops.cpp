// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses which functions are vectorized to the whole width of registers.

#include "WidenLoops.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace fp8;

/// Iterations of a loop from which on few of them are a rest that a wider vector leaves.
static constexpr unsigned kLongLoop = 128;
/// Elements of such a vector, if they have 32 bits.
static constexpr unsigned kElements = 16;

llvm::PreservedAnalyses WidenLoopsPass::run(llvm::Function &function,
                                            llvm::FunctionAnalysisManager &analyses) {
  if (function.hasFnAttribute("prefer-vector-width") ||
      !machine.getSubtargetImpl(function)->checkFeatures("+avx512fp16"))
    return llvm::PreservedAnalyses::all();
  auto &evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  bool hasLoop = false;
  for (llvm::Loop *loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
    if (!loop->isInnermost())
      continue;
    unsigned trips = evolution.getSmallConstantTripCount(loop); // 0 if unknown
    if (trips % kElements != 0 && trips < kLongLoop)
      return llvm::PreservedAnalyses::all();
    hasLoop = true;
  }
  if (!hasLoop)
    return llvm::PreservedAnalyses::all();
  function.addFnAttr("prefer-vector-width", "512");
  analyses.clear(function,
                 function.getName()); // invalidation leaves what the target has said of the function
  return llvm::PreservedAnalyses::none();
}
