// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KeepVectorLoops.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace fp8;

/// Returns whether integers alone, such as counters and maxima of bits, pass from one iteration to the next:
/// the vectorizer does not reorder sums of floating-point numbers.
static bool carriesOnlyIntegers(const llvm::Loop &loop) {
  return llvm::all_of(loop.getHeader()->phis(),
                      [](const llvm::PHINode &phi) { return phi.getType()->isIntegerTy(); });
}

llvm::PreservedAnalyses KeepVectorLoopsPass::run(llvm::Function &function,
                                                 llvm::FunctionAnalysisManager &analyses) {
  auto &target = analyses.getResult<llvm::TargetIRAnalysis>(function);
  unsigned bits = target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue();
  unsigned lanes = std::max(bits / 32, 2u);
  auto &evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  for (llvm::Loop *loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
    if (loop->isInnermost() && evolution.getSmallConstantTripCount(loop) >= lanes &&
        carriesOnlyIntegers(*loop))
      llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.disable", 1);
  return llvm::PreservedAnalyses::all();
}
