// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's passes for host code: those that make kernels faster, in place of LLVM's default
// pipelines, and code generation.

#include "HostModule.h"
#include "InterleaveLoops.h"
#include "KeepVectorLoops.h"
#include "ObjectCache.h"
#include "WidenLoops.h"

#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/InferAlignment.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/LoopIdiomRecognize.h"
#include "llvm/Transforms/Scalar/LoopInstSimplify.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Vectorize/LoopVectorize.h"

using namespace fp8;

/// Part of the keys in the cache of objects. Count it up where code generation (CodeGenPasses,
/// createTargetMachine) gives other objects than before; passes are part of the keys themselves.
static constexpr llvm::StringLiteral kCodeGenVersion = "2";

namespace {
/// The analyses that LLVM's passes use.
struct Analyses {
  explicit Analyses(llvm::PassBuilder &builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(sccs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, sccs, modules);
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
};

/// LLVM's code generation without loop strength reduction: it takes half of the time, and kernels are no
/// faster with it.
class CodeGenPasses : public llvm::legacy::PassManager {
public:
  void add(llvm::Pass *pass) override {
    if (pass->getPassName() == "Loop Strength Reduction")
      delete pass;
    else
      PassManager::add(pass);
  }
};
} // namespace

/// Simplifies the loops of kernels, which mostly have fixed trip counts.
static void addSimplification(llvm::FunctionPassManager &passes, bool isVectorized) {
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager rotation;
  rotation.addPass(llvm::LoopInstSimplifyPass());
  rotation.addPass(llvm::LoopRotatePass());
  rotation.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(rotation), /*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  if (isVectorized)
    passes.addPass(KeepVectorLoopsPass());
  llvm::LoopPassManager loops;
  loops.addPass(llvm::LoopIdiomRecognizePass());
  loops.addPass(llvm::IndVarSimplifyPass());
  loops.addPass(llvm::LoopDeletionPass());
  loops.addPass(llvm::LoopFullUnrollPass(/*OptLevel=*/3));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops)));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::InstCombinePass());
}

/// Vectorizes and interleaves loops. Nothing is unrolled afterwards: LLVM would unroll up to
/// a processor's buffer for loops, 512 instructions on some, which doubles the code and the time to compile
/// it.
static void addVectorization(llvm::FunctionPassManager &passes, const llvm::TargetMachine &machine) {
  passes.addPass(WidenLoopsPass(machine));
  passes.addPass(InterleaveLoopsPass());
  passes.addPass(llvm::LoopVectorizePass());
  passes.addPass(llvm::InferAlignmentPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::LoopPassManager motion;
  motion.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(motion), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::SimplifyCFGPass());
}

/// Adds the passes for `kind`: code of entry points runs once per call, kernels take the time.
static void addPasses(llvm::FunctionPassManager &passes, const llvm::TargetMachine &machine,
                      HostCodeKind kind, unsigned level) {
  if (kind == HostCodeKind::entry || level == 0) {
    passes.addPass(llvm::EarlyCSEPass()); // descriptors of buffers disappear
    return;
  }
  addSimplification(passes, /*isVectorized=*/level > 1);
  if (level > 1)
    addVectorization(passes, machine);
}

void fp8::optimize(HostModule &code, HostCodeKind kind, unsigned level) {
  llvm::PassBuilder builder(code.machine.get());
  Analyses analyses(builder);
  llvm::FunctionPassManager functions;
  addPasses(functions, *code.machine, kind, level);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(functions)));
  passes.run(*code.module, analyses.modules);
}

std::string fp8::getObjectKey(const HostModule &code, HostCodeKind kind, unsigned level) {
  llvm::FunctionPassManager functions;
  addPasses(functions, *code.machine, kind, level);
  std::string passes, bitcode;
  llvm::raw_string_ostream passesStream(passes), bitcodeStream(bitcode);
  functions.printPipeline(passesStream, [](llvm::StringRef name) { return name; });
  llvm::WriteBitcodeToFile(*code.module, bitcodeStream);
  // The processor and its features are attributes of the functions.
  std::string effort = std::to_string(static_cast<int>(code.machine->getOptLevel()));
  return ObjectCache::getKey({kCodeGenVersion, LLVM_VERSION_STRING, effort, passes, bitcode});
}

bool fp8::writeObject(HostModule &code, llvm::raw_pwrite_stream &stream) {
  CodeGenPasses passes;
  if (code.machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return false;
  passes.run(*code.module);
  return true;
}
