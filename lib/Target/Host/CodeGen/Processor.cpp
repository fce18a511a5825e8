// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The processors that LLVM knows, and the features that code for one of them needs.

#include "Processor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace mlir;
using namespace fp8;

/// Returns the processor's name and features.
static std::pair<std::string, std::string> describeProcessor(const HostCodeOptions &options) {
  if (!options.processor.empty())
    return {options.processor, ""};
  std::string features;
  llvm::raw_string_ostream stream(features);
  for (auto &feature : llvm::sys::getHostCPUFeatures())
    stream << (feature.second ? '+' : '-') << feature.first() << ',';
  return {llvm::sys::getHostCPUName().str(), features};
}

/// The processor's features, without bf16 conversion instructions: these flush denormals, which our
/// numerics keep. (HostModule.cpp adds AVX512_BF16 to functions that multiply with it.)
static std::string selectFeatures(const HostCodeOptions &options) {
  std::string features = describeProcessor(options).second;
  llvm::raw_string_ostream stream(features);
  stream << "-avx512bf16,-avxneconvert";
  if (!options.features.empty())
    stream << ',' << options.features;
  return features;
}

/// Registers the target once: LLVM's list of targets belongs to the process, and two threads must not
/// change it at the same time.
static void initializeNativeTarget() {
  static const bool isInitialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)isInitialized;
}

/// The code generator for machines like this one.
static llvm::Expected<const llvm::Target *> findTarget(const llvm::Triple &triple) {
  initializeNativeTarget();
  std::string error;
  if (const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error))
    return target;
  return llvm::createStringError("no code generator for this machine: " + error);
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> fp8::createTargetMachine(const HostCodeOptions &options,
                                                                              unsigned level) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  llvm::Expected<const llvm::Target *> target = findTarget(triple);
  if (!target)
    return target.takeError();
  std::string processor = describeProcessor(options).first;
  std::unique_ptr<llvm::TargetMachine> machine((*target)->createTargetMachine(
      triple, processor, selectFeatures(options), llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOpt::getLevel(level).value_or(llvm::CodeGenOptLevel::Aggressive)));
  if (!machine)
    return llvm::createStringError("no code generator for processor '" + processor + "'");
  return machine;
}

/// Features that LLVM uses only for intrinsics which a program calls, and that virtual machines often
/// hide.
static constexpr llvm::StringLiteral kNotUsed[] = {
    "64bit",  "aes",       "cldemote", "clflushopt", "clwb",   "clzero", "enqcmd",    "fsgsbase", "fxsr",
    "hreset", "invpcid",   "kl",       "lwp",        "movrs",  "mwaitx", "movdir64b", "movdiri",  "pconfig",
    "pku",    "prefetchi", "prfchw",   "ptwrite",    "raoint", "rdpid",  "rdpru",     "rdrnd",    "rdseed",
    "rtm",    "serialize", "sgx",      "sha",        "sha512", "shstk",  "sm3",       "sm4",      "tsxldtrk",
    "uintr",  "usermsr",   "waitpkg",  "wbnoinvd",   "widekl", "xsave",  "xsavec",    "xsaveopt", "xsaves"};

/// Returns whether the kernel lends this process tile registers: it asks, once a process.
static bool mayUseTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool isGranted = syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
  return isGranted;
#else
  return false;
#endif
}

/// Returns whether the processor of `options` has `features`, as "+avx512f,+avx512bf16".
static bool hasFeatures(const HostCodeOptions &options, StringRef features) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  llvm::Expected<const llvm::Target *> target = findTarget(triple);
  if (!target) {
    llvm::consumeError(target.takeError());
    return false;
  }
  auto [processor, own] = describeProcessor(options);
  std::unique_ptr<llvm::MCSubtargetInfo> info((*target)->createMCSubtargetInfo(triple, processor, own));
  return triple.getArch() == llvm::Triple::x86_64 && info && info->checkFeatures(features.str());
}

/// Processors, by LLVM's names, whose dot products of bf16 are twice as fast as their multiply-adds of f32.
/// On Intel's with AVX512_BF16 both take the same time (tools/fp8-bench/FIGURES.md).
static constexpr StringLiteral kFastBF16Dots[] = {"znver4", "znver5"};

StringRef fp8::getMatrixInstruction(const HostCodeOptions &options) {
  if (options.sums == MatmulSums::exact || !hasFeatures(options, "+avx512f,+avx512bf16"))
    return "";
  // Thin matmuls have dot products of AVX512_BF16 beside AMX.
  if (hasFeatures(options, "+amx-tile,+amx-bf16") && (!options.processor.empty() || mayUseTiles()))
    return kTileFeature;
  bool isFast = llvm::is_contained(kFastBF16Dots, describeProcessor(options).first);
  if (isFast || options.sums == MatmulSums::hardware)
    return kBF16DotFeature;
  return "";
}

static bool isUsed(StringRef feature) {
  return !llvm::is_contained(kNotUsed, feature) && !feature.starts_with("amx-");
}

RequiredProcessor fp8::getRequiredProcessor(const HostCodeOptions &options) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine =
      createTargetMachine(options, options.optimizationLevel);
  if (!machine) { // code generation reports the reason
    llvm::consumeError(machine.takeError());
    return {};
  }
  const llvm::MCSubtargetInfo &info = *(*machine)->getMCSubtargetInfo();
  // LLVM's list also has tuning flags. These are the features that a program can detect.
  llvm::StringMap<bool> detectable = llvm::sys::getHostCPUFeatures();
  RequiredProcessor required{(*machine)->getTargetCPU().str(), {}};
  for (const llvm::SubtargetFeatureKV &feature : info.getEnabledProcessorFeatures())
    if (detectable.contains(feature.Key) && isUsed(feature.Key))
      required.features.push_back(feature.Key);
  StringRef instruction = getMatrixInstruction(options);
  if (!instruction.empty())
    required.features.push_back(kBF16DotFeature.str());
  if (instruction == kTileFeature)
    required.features.insert(required.features.end(), {"amx-tile", kTileFeature.str()});
  return required;
}

VectorRegisterFile fp8::getVectorRegisters(const HostCodeOptions &options) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine =
      createTargetMachine(options, options.optimizationLevel);
  if (!machine) { // code generation reports the reason
    llvm::consumeError(machine.takeError());
    return {};
  }
  llvm::LLVMContext context;
  llvm::Module module("", context);
  module.setDataLayout((*machine)->createDataLayout());
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  auto *function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module);
  // LLVM tells which width loops should be vectorized to; the registers may be wider.
  function->addFnAttr("prefer-vector-width", "2048");
  llvm::TargetTransformInfo info = (*machine)->getTargetTransformInfo(*function);
  uint64_t bits = info.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue();
  unsigned count = info.getNumberOfRegisters(info.getRegisterClassForType(/*Vector=*/true));
  if (bits < 64 || count < 4) // a processor without vectors
    return {};
  return {static_cast<int64_t>(bits), count};
}

llvm::Error fp8::checkMatmulSums(const HostCodeOptions &options) {
  if (options.sums != MatmulSums::hardware || !getMatrixInstruction(options).empty())
    return llvm::Error::success();
  return llvm::createStringError("needs a processor with AVX512_BF16, which " +
                                 describeProcessor(options).first +
                                 " lacks; leave it out, or name one that has it with --cpu");
}

/// Up to five of `names` that are most like `wanted`.
static SmallVector<StringRef> findClosest(StringRef wanted, ArrayRef<StringRef> names) {
  SmallVector<std::pair<unsigned, StringRef>> ranked;
  for (StringRef name : names)
    ranked.emplace_back(wanted.edit_distance(name), name);
  llvm::sort(ranked);
  SmallVector<StringRef> closest;
  for (auto [distance, name] : ArrayRef(ranked).take_front(5))
    closest.push_back(name);
  return closest;
}

llvm::Error fp8::checkProcessor(StringRef name) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  llvm::Expected<const llvm::Target *> target = findTarget(triple);
  if (!target)
    return target.takeError();
  std::unique_ptr<llvm::MCSubtargetInfo> known((*target)->createMCSubtargetInfo(triple, "", ""));
  SmallVector<StringRef> names;
  for (const llvm::SubtargetSubTypeKV &processor : known->getAllProcessorDescriptions()) {
    // x86-64's list begins with those that run 32-bit programs only.
    std::unique_ptr<llvm::MCSubtargetInfo> info((*target)->createMCSubtargetInfo(triple, processor.Key, ""));
    if (triple.getArch() != llvm::Triple::x86_64 || info->checkFeatures("+64bit"))
      names.push_back(processor.Key);
  }
  if (llvm::is_contained(names, name))
    return llvm::Error::success();
  return llvm::createStringError(
      "is no processor of this machine's kind that LLVM knows; the closest names are " +
      llvm::join(findClosest(name, names), ", "));
}
