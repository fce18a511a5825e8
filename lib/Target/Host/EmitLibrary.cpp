// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits LLVM IR, an object, or a linked shared library, as bytes.

#include "HostModule.h"
#include "LinkLibrary.h"
#include "fp8/Target/Host/HostCode.h"

using namespace mlir;
using namespace fp8;

LogicalResult fp8::emitLLVMIR(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              llvm::raw_pwrite_stream &out) {
  FailureOr<HostModule> code = buildHostModule(module, manifest, options);
  if (failed(code))
    return failure();
  code->module->print(out, nullptr);
  return success();
}

LogicalResult fp8::emitObject(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              llvm::raw_pwrite_stream &out) {
  FailureOr<HostModule> code = buildHostModule(module, manifest, options);
  return failed(code) ? failure() : writeObject(module, *code, out);
}

LogicalResult fp8::emitSharedLibrary(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                                     llvm::raw_pwrite_stream &out) {
  FailureOr<HostModule> code = buildHostModule(module, manifest, options);
  if (failed(code))
    return failure();
  SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  if (failed(writeObject(module, *code, stream)))
    return failure();
  return linkLibrary(module, code->machine->getTargetTriple().str(), object, out);
}
