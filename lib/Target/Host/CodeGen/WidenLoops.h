// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass of LLVM IR that has loops vectorized to the whole width of registers.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_WIDENLOOPS_H
#define FP8_LIB_TARGET_HOST_CODEGEN_WIDENLOOPS_H

#include "llvm/IR/PassManager.h"
#include "llvm/Target/TargetMachine.h"

namespace fp8 {

/// Lets the loop vectorizer use 512 bits on processors with AVX512-FP16 (Sapphire Rapids and later). LLVM
/// prefers 256 bits there, as on the processors before, whose clock falls when they compute with 512. A
/// function keeps LLVM's choice if an innermost loop is short and wider vectors would leave a rest of it to
/// scalar code. So does one whose width the user has set. Run it before the vectorizer.
class WidenLoopsPass : public llvm::PassInfoMixin<WidenLoopsPass> {
public:
  explicit WidenLoopsPass(const llvm::TargetMachine &machine) : machine(machine) {}
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);

private:
  const llvm::TargetMachine &machine;
};

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_WIDENLOOPS_H
