// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a program with the compiler as a library, in a context of its own, and again
// through the C API's functions: both give the same LLVM IR. Prints the report's table.

#include "fp8-c/Compiler.h"
#include "fp8/Compiler/Compiler.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "llvm/Support/MemoryBuffer.h"

static std::string compileInC(llvm::StringRef source, mlir::MLIRContext &context) {
  MlirModule program = fp8ReadProgram(wrap(&context), wrap(source), wrap(llvm::StringRef("model.mlir")));
  FP8CompilerOptions options = fp8CompilerOptionsCreate();
  for (auto [name, value] : {std::pair("recipe", "current"), {"emit", "llvm"}})
    fp8CompilerOptionsSet(options, wrap(llvm::StringRef(name)), wrap(llvm::StringRef(value)), nullptr,
                          nullptr);
  FP8Compiled compiled = fp8Compile(program, options);
  std::string artifact = fp8CompiledIsNull(compiled) ? "" : unwrap(fp8CompiledGetArtifact(compiled)).str();
  fp8CompiledDestroy(compiled);
  fp8CompilerOptionsDestroy(options);
  unwrap(program)->destroy();
  return artifact;
}

int main(int argc, char **argv) {
  auto file = llvm::MemoryBuffer::getFile(argv[argc - 1]);
  if (!file)
    return 2;
  mlir::DialectRegistry registry;
  fp8::registerCompiler(registry);
  mlir::MLIRContext context(registry);
  fp8::CompilerOptions options;
  options.recipe.recipe = "current";
  options.emit = "llvm";
  llvm::Expected<fp8::Compiler> compiler = fp8::Compiler::create(context, options);
  if (!compiler) {
    llvm::errs() << llvm::toString(compiler.takeError()) << "\n";
    return 2;
  }
  mlir::OwningOpRef<mlir::ModuleOp> program = fp8::readProgram((*file)->getBuffer(), "model.mlir", context);
  if (!program)
    return 1;
  mlir::FailureOr<fp8::Compiled> compiled = compiler->compile(*program);
  if (mlir::failed(compiled) || compiled->artifact.str() != compileInC((*file)->getBuffer(), context))
    return 1;
  llvm::outs() << compiled->getReportText();
  return 0;
}
