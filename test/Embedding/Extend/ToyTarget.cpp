// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A target of another project: the CPU with larger cache lines, no kernels for current scaling,
// and an output of its own, a list of the kernels. Its attribute is the target to stages 1
// to 5 (TargetAttrInterface) and makes the code (TargetBackendInterface).

#include "Extend.h"
#include "fp8/Dialect/FP8/IR/TargetNames.h"
#include "fp8/Target/CPU/CPUTarget.h"
#include "fp8/Target/TargetBackend.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace {

class ToyTargetAttr
    : public Attribute::AttrBase<ToyTargetAttr, Attribute, AttributeStorage, fp8::TargetAttrInterface::Trait,
                                 fp8::TargetBackendInterface::Trait> {
public:
  using Base::Base;
  static constexpr StringLiteral name = "toy.target";

  StringRef getTargetName() const { return "toy"; }
  std::string getUnsupportedReason(fp8::RecipeAttrInterface recipe) const {
    return recipe.isStateful() ? "" : "scales of the step itself have no kernel on toy; use --recipe=delayed";
  }
  int64_t getMaxRowBytes() const { return 4096; }
  unsigned getMaxFusedInputs() const { return 4; }
  int64_t getRowChunkElements() const { return 1024; }
  int64_t getBufferAlignment() const { return 128; }

  void buildKernelsPipeline(OpPassManager &manager) const { fp8::buildCPUKernelsPipeline(manager); }
  void buildCodePipeline(OpPassManager &manager, const fp8::HostCodeOptions &) const {
    fp8::buildCPUCodePipeline(manager, fp8::CPUCodeOptions());
  }
  SmallVector<StringRef> getOutputs() const { return {"lib", "kernel-list"}; }
  LogicalResult emit(ModuleOp module, StringRef output, StringRef manifest,
                     const fp8::HostCodeOptions &options, llvm::raw_pwrite_stream &stream) const {
    if (output == "lib")
      return fp8::emitSharedLibrary(module, manifest, options, stream);
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (function.getName().starts_with("kernel_"))
        stream << function.getName() << "\n";
    return success();
  }
};

struct ToyTargets : fp8::TargetDialectInterface {
  using TargetDialectInterface::TargetDialectInterface;
  SmallVector<fp8::TargetAttrInterface> getTargets() const final {
    return {ToyTargetAttr::get(getContext())};
  }
};

class ToyDialect : public Dialect {
public:
  explicit ToyDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<ToyDialect>()) {
    context->loadDialect<fp8::FP8Dialect>();
    addAttributes<ToyTargetAttr>();
    addInterfaces<ToyTargets>();
  }
  static StringRef getDialectNamespace() { return "toy"; }

  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    if (failed(parser.parseKeyword("target")))
      return {};
    return ToyTargetAttr::get(getContext());
  }
  void printAttribute(Attribute, DialectAsmPrinter &printer) const override { printer << "target"; }
};

} // namespace

void registerToyTarget(DialectRegistry &registry) { registry.insert<ToyDialect>(); }
