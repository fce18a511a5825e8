// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The TargetBackendInterface of #fp8.chip.

#include "Code/DeviceCode.h"
#include "fp8/Target/PTX/PTXTarget.h"
#include "fp8/Target/TargetBackend.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace fp8;

/// Writes the text that fp8-emit-device-code has put into the library.
static LogicalResult emitPTX(ModuleOp module, llvm::raw_ostream &stream) {
  auto global = module.lookupSymbol<LLVM::GlobalOp>(kPTXGlobalName);
  if (!global)
    return module.emitError("has no PTX");
  stream << cast<StringAttr>(global.getValueAttr()).getValue().drop_back(); // the NUL
  return success();
}

namespace {
struct PTXBackend : TargetBackendInterface::ExternalModel<PTXBackend, ChipAttr> {
  void buildKernelsPipeline(Attribute, OpPassManager &manager) const {
    buildGPUKernelsPipeline(manager, GPUKernelsOptions());
  }

  void buildCodePipeline(Attribute, OpPassManager &manager, const HostCodeOptions &hostCode) const {
    GPUCodeOptions options;
    options.ptxas = hostCode.ptxas;
    options.cache = hostCode.cacheFolder;
    options.separateTemporaries = hostCode.separateTemporaries;
    buildGPUCodePipeline(manager, options);
  }

  SmallVector<StringRef> getOutputs(Attribute) const { return {"lib", "obj", "llvm", "ptx"}; }

  LogicalResult emit(Attribute, ModuleOp module, StringRef output, StringRef manifest,
                     const HostCodeOptions &options, llvm::raw_pwrite_stream &stream) const {
    if (output == "ptx")
      return emitPTX(module, stream);
    if (output == "llvm")
      return emitLLVMIR(module, manifest, options, stream);
    return output == "obj" ? emitObject(module, manifest, options, stream)
                           : emitSharedLibrary(module, manifest, options, stream);
  }
};
} // namespace

void fp8::registerPTXBackend(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, FP8Dialect *) { ChipAttr::attachInterface<PTXBackend>(*context); });
}
