// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C API: the compiler.

#include "fp8-c/Compiler.h"
#include "fp8/Compiler/Compiler.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;

namespace {
/// The result of a compilation, and the texts that the C API returns of it.
struct CompiledTexts {
  fp8::Compiled compiled;
  std::string reportJSON, reportText, manifestJSON;
};
} // namespace

DEFINE_C_API_PTR_METHODS(FP8CompilerOptions, fp8::CompilerOptions)
DEFINE_C_API_PTR_METHODS(FP8Compiled, const CompiledTexts)

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

FP8CompilerOptions fp8CompilerOptionsCreate(void) { return wrap(new fp8::CompilerOptions()); }

void fp8CompilerOptionsDestroy(FP8CompilerOptions options) { delete unwrap(options); }

MlirLogicalResult fp8CompilerOptionsSet(FP8CompilerOptions options, MlirStringRef name, MlirStringRef value,
                                        MlirStringCallback onError, void *userData) {
  llvm::Error error = fp8::setOption(*unwrap(options), unwrap(name), unwrap(value));
  if (!error)
    return wrap(success());
  std::string message = llvm::toString(std::move(error));
  if (onError)
    onError(wrap(StringRef(message)), userData);
  return wrap(failure());
}

void fp8CompilerOptionsDescribe(FP8OptionCallback callback, void *userData) {
  for (const fp8::OptionDescription &option : fp8::getOptionDescriptions())
    callback(wrap(option.name), wrap(option.values), wrap(option.help), userData);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

MlirModule fp8ReadProgram(MlirContext context, MlirStringRef source, MlirStringRef name) {
  return wrap(fp8::readProgram(unwrap(source), unwrap(name), *unwrap(context)).release());
}

FP8Compiled fp8Compile(MlirModule program, FP8CompilerOptions options) {
  ModuleOp module = unwrap(program);
  llvm::Expected<fp8::Compiler> compiler = fp8::Compiler::create(*module.getContext(), *unwrap(options));
  if (!compiler) {
    module.emitError() << llvm::toString(compiler.takeError());
    return {nullptr};
  }
  FailureOr<fp8::Compiled> compiled = compiler->compile(module);
  if (failed(compiled))
    return {nullptr};
  auto texts = std::make_unique<CompiledTexts>();
  texts->reportJSON = compiled->getReportJSON();
  texts->reportText = compiled->getReportText();
  texts->manifestJSON = compiled->getManifestJSON();
  texts->compiled = std::move(*compiled);
  return wrap(texts.release());
}

void fp8CompiledDestroy(FP8Compiled compiled) { delete unwrap(compiled); }

MlirStringRef fp8CompiledGetArtifact(FP8Compiled compiled) {
  return wrap(unwrap(compiled)->compiled.artifact.str());
}

MlirStringRef fp8CompiledGetReportJSON(FP8Compiled compiled) {
  return wrap(StringRef(unwrap(compiled)->reportJSON));
}

MlirStringRef fp8CompiledGetReportText(FP8Compiled compiled) {
  return wrap(StringRef(unwrap(compiled)->reportText));
}

MlirStringRef fp8CompiledGetManifestJSON(FP8Compiled compiled) {
  return wrap(StringRef(unwrap(compiled)->manifestJSON));
}
