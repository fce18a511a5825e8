// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the PTX text of all kernels, in this process and without a toolkit: translation to LLVM IR, LLVM's
// passes, code generation. No option of LLVM lets an operation lose exactness: nothing is contracted,
// reassociated or approximated that the kernels do not ask for.

#include "../../Host/CodeGen/ObjectCache.h"
#include "DeviceCode.h"
#include "JoinPTX.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/ConstraintElimination.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/InferAlignment.h"
#include "llvm/Transforms/Scalar/Reassociate.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace fp8 {
#define GEN_PASS_DEF_SERIALIZEKERNELS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Registers the target once: LLVM's list of targets belongs to the process, and two threads must not
/// change it at the same time.
static void initializeTarget() {
  static const bool isInitialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)isInitialized;
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const Chip &chip,
                                                                          unsigned ptxVersion) {
  initializeTarget();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("no code generator for GPUs: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::string features = "+ptx" + std::to_string(ptxVersion);
  // The next level numbers values once more than EarlyCSE does; ptxas makes the same instructions of both
  // texts.
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip.name, features, options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
}

/// Reports LLVM's errors at `op` and sets `hasErrors`; its remarks and warnings are nothing that a user can
/// act on.
static void reportDiagnostics(llvm::LLVMContext &context, Operation *op, bool &hasErrors) {
  struct Handler : llvm::DiagnosticHandler {
    Handler(Operation *op, bool &hasErrors) : op(op), hasErrors(hasErrors) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
      if (info.getSeverity() != llvm::DS_Error)
        return true;
      std::string text;
      llvm::raw_string_ostream stream(text);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
      op->emitError() << "code generation for GPUs: " << text;
      hasErrors = true;
      return true;
    }
    Operation *op;
    bool &hasErrors;
  };
  context.setDiagnosticHandler(std::make_unique<Handler>(op, hasErrors));
}

/// Simplifies a kernel: each pass runs once, since builders of kernels leave little to simplify. Loops stay
/// loops, and what they repeat stays in them: ptxas unrolls them itself and moves out what registers are left
/// for, while values that are moved out here would take registers from blocks (LICM: 74 of 64 in casts).
static void addSimplification(llvm::FunctionPassManager &passes) {
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  // Addresses of one row share what is the same for its threads.
  passes.addPass(llvm::ReassociatePass());
  passes.addPass(llvm::InstCombinePass());
  // Guards that hold for every thread of a block disappear; indices that never are negative need no sign.
  passes.addPass(llvm::ConstraintEliminationPass());
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::ADCEPass());
  // Code generation joins accesses whose alignment it knows.
  passes.addPass(llvm::InferAlignmentPass());
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::FunctionPassManager simplification;
  addSimplification(simplification);
  llvm::ModulePassManager passes;
  // The target's own passes: the ranges of thread and block indices.
  builder.invokePipelineStartEPCallbacks(passes, llvm::OptimizationLevel::O2);
  passes.addPass(llvm::ModuleInlinerWrapperPass(llvm::getInlineParams(/*OptLevel=*/2, /*SizeOptLevel=*/0)));
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(simplification)));
  passes.run(module, modules);
}

static void writePTX(llvm::Module &module, llvm::TargetMachine &machine, SmallVectorImpl<char> &text) {
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  passes.run(module);
}

/// Optimizes and writes `module`. Where LLVM gives up, this ends in an error, provided that the program has
/// enabled CrashRecoveryContext; the module is then in no state to be freed.
static LogicalResult generate(gpu::GPUModuleOp kernels, std::unique_ptr<llvm::Module> module,
                              llvm::TargetMachine &machine, SmallVectorImpl<char> &text) {
  llvm::CrashRecoveryContext recovery;
  bool isDone = recovery.RunSafely([&] {
    optimize(*module, machine);
    writePTX(*module, machine, text);
  });
  if (isDone)
    return success();
  (void)module.release();
  return kernels.emitError("LLVM has no code for an operation of these kernels");
}

/// Changes where this file generates other text from the same LLVM IR.
static constexpr StringLiteral kTextVersion = "PTX text 12";

/// Returns the key of the text of `module` in the cache.
static std::string getTextKey(const llvm::Module &module, const llvm::TargetMachine &machine) {
  std::string bitcode;
  llvm::raw_string_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(module, stream);
  return ObjectCache::getKey(
      {kTextVersion, LLVM_VERSION_STRING, machine.getTargetCPU(), machine.getTargetFeatureString(), bitcode});
}

static FailureOr<std::string> serializeAlone(gpu::GPUModuleOp kernels, const Chip &chip, unsigned ptxVersion,
                                             const ObjectCache &cache) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createMachine(chip, ptxVersion);
  if (!machine)
    return kernels.emitError(llvm::toString(machine.takeError()));
  // Kept where LLVM gave up: the remains refer to the context.
  auto context = std::make_unique<llvm::LLVMContext>();
  // The translation gives accesses the alignment of their types; LLVM's default halves that of i64.
  llvm::DataLayout layout = (*machine)->createDataLayout();
  StringRef layoutName = LLVM::LLVMDialect::getDataLayoutAttrName();
  kernels->setAttr(layoutName, StringAttr::get(kernels.getContext(), layout.getStringRepresentation()));
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, *context, kKernelModuleName);
  kernels->removeAttr(layoutName);
  if (!module)
    return kernels.emitError("cannot be translated to LLVM IR");
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout(layout);
  SmallString<0> text;
  std::string key = cache.isEnabled() ? getTextKey(*module, **machine) : "";
  if (cache.find(key, text))
    return text.str().str();
  bool hasErrors = false;
  reportDiagnostics(*context, kernels, hasErrors);
  if (failed(generate(kernels, std::move(module), **machine, text))) {
    (void)context.release();
    (void)machine->release();
    return failure();
  }
  if (hasErrors)
    return failure();
  cache.add(key, text);
  return text.str().str();
}

static bool isVisible(LLVM::GlobalOp global) {
  return global.getLinkage() == LLVM::Linkage::External &&
         (global.getValueAttr() || global.getInitializerBlock());
}

/// Returns an empty gpu.module like `kernels`.
static OwningOpRef<gpu::GPUModuleOp> createPart(gpu::GPUModuleOp kernels, OpBuilder &builder) {
  OwningOpRef<gpu::GPUModuleOp> part = cast<gpu::GPUModuleOp>(kernels->cloneWithoutRegions());
  builder.createBlock(&(*part)->getRegion(0));
  return part;
}

/// Returns the variables whose addresses host code asks for. They are defined once, beside the kernels.
static OwningOpRef<gpu::GPUModuleOp> cloneVisibleVariables(gpu::GPUModuleOp kernels) {
  OpBuilder builder(kernels.getContext());
  OwningOpRef<gpu::GPUModuleOp> part = createPart(kernels, builder);
  for (auto global : kernels.getOps<LLVM::GlobalOp>())
    if (isVisible(global))
      builder.clone(*global);
  return part;
}

/// Returns `kernel` and the variables that it uses; those of host code are declared.
static OwningOpRef<gpu::GPUModuleOp> cloneKernel(const SymbolTable &symbols, LLVM::LLVMFuncOp kernel) {
  OpBuilder builder(kernel.getContext());
  OwningOpRef<gpu::GPUModuleOp> part = createPart(cast<gpu::GPUModuleOp>(symbols.getOp()), builder);
  llvm::SmallPtrSet<Operation *, 8> known;
  if (std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(kernel.getOperation()))
    for (const SymbolTable::SymbolUse &use : *uses) {
      Operation *used = symbols.lookup(use.getSymbolRef().getRootReference());
      if (!used || !known.insert(used).second)
        continue;
      auto global = dyn_cast<LLVM::GlobalOp>(used);
      bool isDeclared = global && isVisible(global);
      Operation *copy = builder.insert(isDeclared ? used->cloneWithoutRegions() : used->clone());
      if (isDeclared)
        cast<LLVM::GlobalOp>(copy).removeValueAttr();
    }
  builder.clone(*kernel);
  return part;
}

/// Returns the text of all kernels, for which code is generated in several threads, kernel by kernel.
static FailureOr<std::string> serialize(gpu::GPUModuleOp kernels, const Chip &chip,
                                        const ObjectCache &cache) {
  unsigned ptxVersion = getPTXVersion(kernels, chip);
  SmallVector<LLVM::LLVMFuncOp> functions(kernels.getOps<LLVM::LLVMFuncOp>());
  // A function that kernels call would stand in the text once for each of them.
  auto isKernel = [](LLVM::LLVMFuncOp function) {
    return !function.isExternal() && function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName());
  };
  if (!llvm::all_of(functions, isKernel))
    return serializeAlone(kernels, chip, ptxVersion, cache);
  initializeTarget();
  SymbolTable symbols(kernels);
  std::vector<std::string> texts(functions.size() + 1);
  auto generate = [&](size_t index) -> LogicalResult {
    OwningOpRef<gpu::GPUModuleOp> part =
        index == 0 ? cloneVisibleVariables(kernels) : cloneKernel(symbols, functions[index - 1]);
    FailureOr<std::string> text = serializeAlone(*part, chip, ptxVersion, cache);
    if (succeeded(text))
      texts[index] = std::move(*text);
    return text;
  };
  if (failed(failableParallelForEachN(kernels.getContext(), 0, texts.size(), generate)))
    return failure();
  return joinPTX(texts);
}

namespace {
struct SerializeKernelsPass : public fp8::impl::SerializeKernelsBase<SerializeKernelsPass> {
  explicit SerializeKernelsPass(const SerializeKernelsOptions &options = {})
      : SerializeKernelsBase(options), lines(ModuleOp::getOperationName()) {
    addLinePass();
  }
  SerializeKernelsPass(const SerializeKernelsPass &other)
      : SerializeKernelsBase(other), lines(ModuleOp::getOperationName()) {
    addLinePass();
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    SerializeKernelsBase::getDependentDialects(registry);
    lines.getDependentDialects(registry);
    registerBuiltinDialectTranslation(registry);
    registerGPUDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    registerNVVMDialectTranslation(registry);
  }

  void runOnOperation() override {
    gpu::GPUModuleOp kernels = getKernelModule(getOperation());
    FailureOr<ChipAttr> chip = getChipOf(getOperation());
    if (failed(chip))
      return signalPassFailure();
    if (!kernels)
      return;
    FailureOr<std::string> text = serializeWithLines(kernels, getChip(*chip));
    if (failed(text))
      return signalPassFailure();
    ObjectCache(cache).prune();
    kernels->setAttr(kPTXAttrName, StringAttr::get(&getContext(), *text));
  }

private:
  /// Lines of the user's program, without the word "debug" that turns off the optimization of ptxas.
  void addLinePass() {
    LLVM::DIScopeForLLVMFuncOpPassOptions options;
    options.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
    lines.addPass(LLVM::createDIScopeForLLVMFuncOpPass(options));
  }

  /// Removes the locations outside of functions, where upstream's pass expects none from inlined code.
  static void forgetLinesOfData(gpu::GPUModuleOp kernels) {
    for (auto global : kernels.getOps<LLVM::GlobalOp>())
      global->walk([](Operation *op) { op->setLoc(UnknownLoc::get(op->getContext())); });
  }

  /// Serializes a copy of the kernels in a module of its own: upstream's pass for lines takes nothing else,
  /// and host code stays without them.
  FailureOr<std::string> serializeWithLines(gpu::GPUModuleOp kernels, const Chip &chip) {
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    auto module = ModuleOp::create(builder, kernels.getLoc());
    builder.setInsertionPointToStart(module.getBody());
    auto copy = cast<gpu::GPUModuleOp>(builder.clone(*kernels));
    forgetLinesOfData(copy);
    FailureOr<std::string> text = failure();
    if (succeeded(runPipeline(lines, module)))
      text = serialize(copy, chip, ObjectCache(cache));
    module.erase();
    return text;
  }

  OpPassManager lines;
};
} // namespace
