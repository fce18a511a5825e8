// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In-process LLVM: translation, and the symbols that a module exports.

#include "HostModule.h"
#include "ExpandHalfs.h"
#include "Parts.h"
#include "Processor.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/OpenMP/OpenMPToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Verifier.h"

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

/// How much effort LLVM's code generator makes for entry points, which only call kernels: of clang's -O.
static constexpr unsigned kEntryLevel = 0;

/// Features of functions that call an intrinsic of these names. Other functions must not have them: LLVM
/// would convert to bf16 by instructions that flush denormals.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kFeaturesOfIntrinsics[] = {
    {"llvm.x86.avx512bf16.", "+avx512bf16"},
    {"llvm.x86.tdpbf16ps.", "+amx-tile,+amx-bf16"},
};

/// Returns whether `function` calls an intrinsic whose name begins with `prefix`.
static bool callsIntrinsic(const llvm::Function &function, StringRef prefix) {
  return llvm::any_of(llvm::instructions(function), [&](const llvm::Instruction &instruction) {
    auto *call = dyn_cast<llvm::CallInst>(&instruction);
    return call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with(prefix);
  });
}

/// Exports the C ABI only, and sets the processor of all functions. Kernels are not inlined: LLVM would
/// optimize an entry point with all of its kernels as one huge function.
static void setAttributes(llvm::Module &module, const llvm::TargetMachine &machine,
                          const HostCodeOptions &options, HostCodeKind kind) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (!isExported(function.getName())) {
      if (kind == HostCodeKind::whole)
        function.setLinkage(llvm::GlobalValue::InternalLinkage);
      else if (!function.hasLocalLinkage())
        function.setVisibility(llvm::GlobalValue::HiddenVisibility);
      function.addFnAttr(llvm::Attribute::NoInline);
    }
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    std::string features = machine.getTargetFeatureString().str();
    for (auto [prefix, added] : kFeaturesOfIntrinsics)
      if (callsIntrinsic(function, prefix))
        features += "," + added.str();
    function.addFnAttr("target-features", features);
    if (options.vectorWidth != 0)
      function.addFnAttr("prefer-vector-width", std::to_string(options.vectorWidth));
  }
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

void fp8::registerTranslations(MLIRContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerOpenMPDialectTranslation(registry);
  context.appendDialectRegistry(registry);
}

FailureOr<HostModule> fp8::translate(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                                     HostCodeKind kind) {
  HostModule code;
  unsigned level = kind == HostCodeKind::entry ? std::min(options.optimizationLevel, kEntryLevel)
                                               : options.optimizationLevel;
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(options, level);
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
  expandHalfs(*code.module, *code.machine);
  if (kind != HostCodeKind::kernels)
    addManifest(*code.module, manifest);
  setAttributes(*code.module, *code.machine, options, kind);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*code.module, &stream))
    return module.emitError("translates to invalid LLVM IR: ") << problem;
  return code;
}
