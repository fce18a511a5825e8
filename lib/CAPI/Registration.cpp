// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C API: registration, pipelines, file positions of locations.

#include "fp8-c/Registration.h"
#include "fp8/Compiler/Compiler.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/InitAll.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(FP8, fp8, fp8::FP8Dialect)

void fp8RegisterAllDialects(MlirDialectRegistry registry) { fp8::registerAllDialects(*unwrap(registry)); }

void fp8RegisterCompiler(MlirDialectRegistry registry) { fp8::registerCompiler(*unwrap(registry)); }

void fp8RegisterAllPasses(void) {
  static const bool isRegistered = [] {
    fp8::registerAllPasses();
    return true;
  }();
  (void)isRegistered;
}

MlirLogicalResult fp8RunPipeline(MlirModule module, MlirStringRef pipeline) {
  ModuleOp op = unwrap(module);
  std::string reason;
  llvm::raw_string_ostream os(reason);
  FailureOr<OpPassManager> parsed = parsePassPipeline(unwrap(pipeline), os);
  if (failed(parsed)) {
    op.emitError() << "pipeline '" << unwrap(pipeline) << "': " << StringRef(reason).trim();
    return wrap(failure());
  }
  if (parsed->getOpAnchorName() != ModuleOp::getOperationName()) {
    op.emitError() << "pipeline '" << unwrap(pipeline) << "' must be builtin.module(…)";
    return wrap(failure());
  }
  PassManager manager(op.getContext());
  static_cast<OpPassManager &>(manager) = std::move(*parsed);
  return wrap(manager.run(op));
}

bool fp8LocationGetFilePosition(MlirLocation location, MlirStringRef *file, unsigned *line,
                                unsigned *column) {
  FileLineColLoc place = fp8::findFilePosition(unwrap(location));
  if (!place)
    return false;
  if (file)
    *file = wrap(place.getFilename().getValue());
  if (line)
    *line = place.getLine();
  if (column)
    *column = place.getColumn();
  return true;
}
