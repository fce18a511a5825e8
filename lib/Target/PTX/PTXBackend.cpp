// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The TargetBackendInterface of #fp8.chip.

#include "fp8/Target/PTX/PTXTarget.h"
#include "fp8/Target/TargetBackend.h"

using namespace mlir;
using namespace fp8;

namespace {
struct PTXBackend : TargetBackendInterface::ExternalModel<PTXBackend, ChipAttr> {
  void buildKernelsPipeline(Attribute, OpPassManager &manager) const {
    buildGPUKernelsPipeline(manager, GPUKernelsOptions());
  }

  void buildCodePipeline(Attribute, OpPassManager &manager, const HostCodeOptions &) const {
    buildGPUCodePipeline(manager, GPUCodeOptions());
  }

  SmallVector<StringRef> getOutputs(Attribute) const { return {"lib", "ptx"}; }

  LogicalResult emit(Attribute target, ModuleOp module, StringRef, StringRef, const HostCodeOptions &,
                     llvm::raw_pwrite_stream &) const {
    return module.emitError() << "code for " << cast<ChipAttr>(target).getName() << " is not generated yet";
  }
};
} // namespace

void fp8::registerPTXBackend(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, FP8Dialect *) { ChipAttr::attachInterface<PTXBackend>(*context); });
}
