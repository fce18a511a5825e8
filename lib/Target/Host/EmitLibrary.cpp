// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits LLVM IR, an object, or a linked shared library, as bytes. Code of a library is generated in
// parts, in several threads; its bytes do not depend on their number.

#include "HostModule.h"
#include "LinkLibrary.h"
#include "Parts.h"
#include "fp8/Target/Host/HostCode.h"

#include "mlir/IR/Threading.h"

using namespace mlir;
using namespace fp8;

/// Writes the object code of `module` to `out`.
static LogicalResult generateCode(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                                  HostCodeKind kind, llvm::raw_pwrite_stream &out) {
  FailureOr<HostModule> code = translate(module, manifest, options, kind);
  if (failed(code))
    return failure();
  optimize(*code, kind, options.optimizationLevel);
  if (!writeObject(*code, out))
    return module.emitError("this machine's code generator cannot write object files");
  return success();
}

LogicalResult fp8::emitLLVMIR(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              llvm::raw_pwrite_stream &out) {
  registerTranslations(*module.getContext());
  FailureOr<HostModule> code = translate(module, manifest, options, HostCodeKind::whole);
  if (failed(code))
    return failure();
  optimize(*code, HostCodeKind::whole, options.optimizationLevel);
  code->module->print(out, nullptr);
  return success();
}

LogicalResult fp8::emitObject(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              llvm::raw_pwrite_stream &out) {
  registerTranslations(*module.getContext());
  return generateCode(module, manifest, options, HostCodeKind::whole, out);
}

LogicalResult fp8::emitSharedLibrary(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                                     llvm::raw_pwrite_stream &out) {
  registerTranslations(*module.getContext());
  SymbolTable symbols(module);
  SmallVector<Part> parts = cutIntoParts(module);
  std::vector<SmallString<0>> objects(parts.size());
  auto generate = [&](size_t index) {
    OwningOpRef<ModuleOp> part = clonePart(symbols, parts[index]);
    llvm::raw_svector_ostream stream(objects[index]);
    return generateCode(*part, manifest, options,
                        parts[index].isEntry ? HostCodeKind::entry : HostCodeKind::kernels, stream);
  };
  if (failed(failableParallelForEachN(module.getContext(), 0, parts.size(), generate)))
    return failure();
  return linkLibrary(module, objects, out);
}
