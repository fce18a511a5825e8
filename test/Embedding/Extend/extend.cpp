// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// extend MODEL.mlir OUTPUT NAME=VALUE…: compiles a program with options of fp8-compile, among
// them --recipe and --target of this project's own.

#include "Extend.h"
#include "fp8/Compiler/Compiler.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  fp8::registerCompiler(registry);
  registerMeanScaling(registry);
  registerToyTarget(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects(); // targets are named by the dialects that are loaded
  context.printOpOnDiagnostic(false);

  fp8::CompilerOptions options;
  for (int i = 3; i < argc; ++i) {
    auto [name, value] = llvm::StringRef(argv[i]).split('=');
    if (llvm::Error error = fp8::setOption(options, name, value)) {
      llvm::errs() << llvm::toString(std::move(error)) << "\n";
      return 2;
    }
  }
  llvm::Expected<fp8::Compiler> compiler = fp8::Compiler::create(context, options);
  if (!compiler) {
    llvm::errs() << llvm::toString(compiler.takeError()) << "\n";
    return 2;
  }
  mlir::OwningOpRef<mlir::ModuleOp> program = fp8::readProgramFile(argv[1], context);
  if (!program)
    return 1;
  mlir::FailureOr<fp8::Compiled> compiled = compiler->compile(*program);
  if (mlir::failed(compiled))
    return 1;
  std::error_code error;
  llvm::raw_fd_ostream output(argv[2], error);
  output << compiled->artifact;
  return 0;
}
