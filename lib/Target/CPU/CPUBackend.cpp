// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The TargetBackendInterface of #fp8.cpu.

#include "fp8/Target/CPU/CPUTarget.h"
#include "fp8/Target/TargetBackend.h"

using namespace mlir;
using namespace fp8;

namespace {
struct CPUBackend : TargetBackendInterface::ExternalModel<CPUBackend, CPUAttr> {
  Attribute getTargetFor(Attribute target, const HostCodeOptions &options) const {
    VectorRegisterFile registers = getVectorRegisters(options);
    return CPUAttr::get(target.getContext(), registers.bits, registers.count);
  }

  void buildKernelsPipeline(Attribute, OpPassManager &manager) const { buildCPUKernelsPipeline(manager); }

  void buildCodePipeline(Attribute, OpPassManager &manager, const HostCodeOptions &hostCode) const {
    CPUCodeOptions options;
    options.math = hostCode.math;
    options.separateTemporaries = hostCode.separateTemporaries;
    buildCPUCodePipeline(manager, options);
  }

  SmallVector<StringRef> getOutputs(Attribute) const { return {"lib", "obj", "llvm"}; }

  LogicalResult emit(Attribute, ModuleOp module, StringRef output, StringRef manifest,
                     const HostCodeOptions &options, llvm::raw_pwrite_stream &stream) const {
    if (output == "llvm")
      return emitLLVMIR(module, manifest, options, stream);
    return output == "obj" ? emitObject(module, manifest, options, stream)
                           : emitSharedLibrary(module, manifest, options, stream);
  }
};
} // namespace

void fp8::registerCPUBackend(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, FP8Dialect *) { CPUAttr::attachInterface<CPUBackend>(*context); });
}
