// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In-process LLVM: translation, the exported symbols, LLVM's own optimization pipeline, and
// code generation for the processor that was asked for (Processor.cpp).

#include "HostModule.h"
#include "Processor.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/OpenMP/OpenMPToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"

using namespace mlir;
using namespace fp8;

/// Adds the function `const char *fp8_manifest(void)`, which returns `manifest`.
static void addManifest(llvm::Module &module, StringRef manifest) {
  llvm::LLVMContext &context = module.getContext();
  auto *type = llvm::FunctionType::get(llvm::PointerType::get(context, 0), false);
  auto *function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "fp8_manifest", module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", function));
  builder.CreateRet(builder.CreateGlobalString(manifest, "fp8_manifest_text"));
}

static bool isExported(StringRef name) {
  return name == "fp8_manifest" || name == "fp8_kernels" || name.starts_with("fp8_call_");
}

/// Exports the C ABI only, and sets the processor of all functions. Kernels are not inlined: LLVM would
/// optimize an entry point with all of its kernels as one huge function.
static void setAttributes(llvm::Module &module, const llvm::TargetMachine &machine,
                          const HostCodeOptions &options) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (!isExported(function.getName())) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
      function.addFnAttr(llvm::Attribute::NoInline);
    }
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    if (options.vectorWidth != 0)
      function.addFnAttr("prefer-vector-width", std::to_string(options.vectorWidth));
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned level) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = level > 1;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                            llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel chosen = levels[std::min(level, 3u)];
  llvm::ModulePassManager passes = chosen == llvm::OptimizationLevel::O0
                                       ? builder.buildO0DefaultPipeline(chosen)
                                       : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, modules);
}

/// Reports the first cast between types that is left: a lowering of its operation or type is missing.
static LogicalResult verifyLowered(ModuleOp module) {
  WalkResult walked = module.walk([](UnrealizedConversionCastOp op) {
    op.emitError() << "code for the CPU cannot be made of values of type "
                   << (LLVM::isCompatibleType(op.getOperand(0).getType()) ? op.getResult(0).getType()
                                                                          : op.getOperand(0).getType());
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

FailureOr<HostModule> fp8::buildHostModule(ModuleOp module, StringRef manifest,
                                           const HostCodeOptions &options) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerOpenMPDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);

  HostModule code;
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(options);
  if (!machine)
    return module.emitError(llvm::toString(machine.takeError()));
  code.machine = std::move(*machine);
  code.context = std::make_unique<llvm::LLVMContext>();
  if (failed(verifyLowered(module)))
    return failure();
  code.module = translateModuleToLLVMIR(module, *code.context, "fp8");
  if (!code.module)
    return module.emitError("cannot be translated to LLVM IR");
  code.module->setTargetTriple(code.machine->getTargetTriple());
  code.module->setDataLayout(code.machine->createDataLayout());
  addManifest(*code.module, manifest);
  setAttributes(*code.module, *code.machine, options);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*code.module, &stream))
    return module.emitError("translates to invalid LLVM IR: ") << problem;
  optimize(*code.module, *code.machine, options.optimizationLevel);
  return code;
}

LogicalResult fp8::writeObject(ModuleOp module, HostModule &code, llvm::raw_pwrite_stream &stream) {
  llvm::legacy::PassManager passes;
  if (code.machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return module.emitError("this machine's code generator cannot write object files");
  passes.run(*code.module);
  return success();
}
