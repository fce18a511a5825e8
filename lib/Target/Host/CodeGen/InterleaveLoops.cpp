// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses which loops are computed for several vectors at a time, and for how many.

#include "InterleaveLoops.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace fp8;

/// Operations of an iteration from which on it fills the window in which a processor finds independent work.
static constexpr unsigned kLongBody = 48;
/// Vectors of 32-bit elements that are computed at a time in such a loop.
static constexpr unsigned kVectors = 4;
/// Processors with more vector registers than this look further ahead.
static constexpr unsigned kFewRegisters = 16;

/// Counts operations on values; those on addresses and indices do not become vectors.
static unsigned countOperations(const llvm::Loop &loop) {
  unsigned count = 0;
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &instruction : *block) {
      bool isValue = instruction.getType()->isFloatingPointTy() || instruction.getType()->isIntegerTy(32);
      count += isValue && !llvm::isa<llvm::PHINode, llvm::LoadInst>(instruction);
    }
  return count;
}

/// Returns the bits of the widest element that is loaded, stored or carried, by which the vectorizer chooses
/// the elements of an iteration.
static unsigned findWidest(const llvm::Loop &loop) {
  unsigned widest = 8;
  auto add = [&](llvm::Type *type) {
    if (unsigned bits = type->getScalarSizeInBits(); bits <= 32)
      widest = std::max(widest, bits);
  };
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &instruction : *block) {
      if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
        add(store->getValueOperand()->getType());
      else if (llvm::isa<llvm::LoadInst, llvm::PHINode>(instruction))
        add(instruction.getType());
    }
  return widest;
}

/// Returns how many iterations of a vectorized loop are computed at a time, 1 to leave it alone.
static unsigned chooseInterleaving(const llvm::Loop &loop, llvm::ScalarEvolution &evolution,
                                   unsigned vectorBits) {
  if (countOperations(loop) < kLongBody)
    return 1;
  unsigned widest = findWidest(loop), trips = evolution.getSmallConstantTripMultiple(&loop);
  for (unsigned count = kVectors * widest / 32; count > 1; count /= 2)
    if (trips % (count * vectorBits / widest) == 0)
      return count;
  return 1;
}

llvm::PreservedAnalyses InterleaveLoopsPass::run(llvm::Function &function,
                                                 llvm::FunctionAnalysisManager &analyses) {
  auto &target = analyses.getResult<llvm::TargetIRAnalysis>(function);
  llvm::Type *f32 = llvm::Type::getFloatTy(function.getContext());
  unsigned registers = target.getNumberOfRegisters(target.getRegisterClassForType(/*Vector=*/true, f32));
  unsigned bits = target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue();
  if (registers > kFewRegisters || bits == 0)
    return llvm::PreservedAnalyses::all();
  auto &evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  for (llvm::Loop *loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
    unsigned count = loop->isInnermost() ? chooseInterleaving(*loop, evolution, bits) : 1;
    if (count > 1)
      llvm::addStringMetadataToLoop(loop, "llvm.loop.interleave.count", count);
  }
  return llvm::PreservedAnalyses::all();
}
