// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits LLVM IR, an object, or a linked shared library, as bytes. Code of a library is generated in
// parts, in several threads; its bytes do not depend on their number.

#include "HostModule.h"
#include "LinkLibrary.h"
#include "ObjectCache.h"
#include "Parts.h"
#include "fp8/Target/Host/HostCode.h"

#include "mlir/IR/Threading.h"

using namespace mlir;
using namespace fp8;

static LogicalResult generateObject(ModuleOp module, HostModule &code, HostCodeKind kind, unsigned level,
                                    llvm::raw_pwrite_stream &out) {
  optimize(code, kind, level);
  if (!writeObject(code, out))
    return module.emitError("this machine's code generator cannot write object files");
  return success();
}

/// Sets `object` to the object code of one part of a library, from the cache if it is there.
static LogicalResult generatePart(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                                  HostCodeKind kind, const ObjectCache &cache, SmallString<0> &object) {
  FailureOr<HostModule> code = translate(module, manifest, options, kind);
  if (failed(code))
    return failure();
  std::string key = cache.isEnabled() ? getObjectKey(*code, kind, options.optimizationLevel) : "";
  if (cache.find(key, object))
    return success();
  llvm::raw_svector_ostream stream(object);
  if (failed(generateObject(module, *code, kind, options.optimizationLevel, stream)))
    return failure();
  cache.add(key, object);
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
  FailureOr<HostModule> code = translate(module, manifest, options, HostCodeKind::whole);
  if (failed(code))
    return failure();
  return generateObject(module, *code, HostCodeKind::whole, options.optimizationLevel, out);
}

LogicalResult fp8::emitSharedLibrary(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                                     llvm::raw_pwrite_stream &out) {
  registerTranslations(*module.getContext());
  SymbolTable symbols(module);
  SmallVector<Part> parts = cutIntoParts(module);
  ObjectCache cache(options.cacheFolder);
  std::vector<SmallString<0>> objects(parts.size());
  auto generate = [&](size_t index) {
    OwningOpRef<ModuleOp> part = clonePart(symbols, parts[index]);
    HostCodeKind kind = parts[index].isEntry ? HostCodeKind::entry : HostCodeKind::kernels;
    return generatePart(*part, manifest, options, kind, cache, objects[index]);
  };
  if (failed(failableParallelForEachN(module.getContext(), 0, parts.size(), generate)))
    return failure();
  cache.prune();
  return linkLibrary(module, objects, out);
}
