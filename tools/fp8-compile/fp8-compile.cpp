// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8-compile: compiles a program, and writes the output with its report and manifest.

#include "CommandLine.h"
#include "OutputFiles.h"
#include "fp8/Compiler/Compiler.h"
#include "fp8/Compiler/Support.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;

namespace {

/// Prints one line: the first place in a file that the location has (`fallback` if it has
/// none), and the message.
void printDiagnostic(Diagnostic &diagnostic, StringRef fallback) {
  FileLineColLoc place = fp8::findFilePosition(diagnostic.getLocation());
  std::string message = diagnostic.str();
  llvm::replace(message, '\n', ' ');
  StringRef kind = diagnostic.getSeverity() == DiagnosticSeverity::Error     ? "error"
                   : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning"
                                                                             : "remark";
  // For malformed bytecode MLIR knows only the file, and gives line 0.
  if (place)
    llvm::errs() << place.getFilename().getValue() << ":" << std::max(place.getLine(), 1u) << ":"
                 << std::max(place.getColumn(), 1u);
  else
    llvm::errs() << fallback << ":1:1";
  llvm::errs() << ": " << kind << ": " << message << "\n";
}

/// Makes diagnostics of all optimization remarks.
void enableRemarks(MLIRContext &context) {
  // A kind of remarks without a filter of its own is left out, whatever the filter of all says.
  std::string every = ".*";
  remark::RemarkCategories categories{every, every, every, every, every};
  LogicalResult enabled = remark::enableOptimizationRemarks(
      context, /*streamer=*/nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(), categories,
      /*printAsEmitRemarks=*/true);
  assert(succeeded(enabled) && "the context has no engine yet");
  (void)enabled;
}

/// Writes reports and manifest, then the output: if the output exists, everything succeeded.
llvm::Error writeOutputs(const CommandLine &line, const fp8::Compiled &compiled) {
  OutputFiles files;
  for (const ReportRequest &request : line.reports)
    if (llvm::Error error = files.write(request.file.empty() ? "-" : request.file,
                                        request.json ? compiled.getReportJSON() : compiled.getReportText()))
      return error;
  if (!line.manifestFile.empty())
    if (llvm::Error error = files.write(line.manifestFile, compiled.getManifestJSON()))
      return error;
  if (llvm::Error error = files.write(line.output, compiled.artifact, line.options.emit == "lib"))
    return error;
  return files.keep();
}

/// Prints what every target supports; returns the exit code.
int printSupport(MLIRContext &context, bool json) {
  context.loadDialect<fp8::FP8Dialect>();
  std::vector<fp8::SupportRecord> records = fp8::listSupport(context);
  llvm::outs() << (json ? fp8::printSupportJSON(records) : fp8::printSupportText(records));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // A fatal error of LLVM's code generator for GPUs becomes an error of the compiler.
  llvm::CrashRecoveryContext::Enable();
  CommandLine line;
  if (!parseCommandLine(argc, argv, line))
    return 2;

  DialectRegistry registry;
  fp8::registerCompiler(registry);
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency(line.threads));
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  if (line.threads != 1)
    context.setThreadPool(threads);
  // An error is one line; the operation as our passes have changed it would not help the user.
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler diagnostics(
      &context, [&](Diagnostic &diagnostic) { printDiagnostic(diagnostic, line.input); });

  if (!line.printSupport.empty())
    return printSupport(context, line.printSupport == "json");
  if (line.remarks)
    enableRemarks(context);

  llvm::Expected<fp8::Compiler> compiler = fp8::Compiler::create(context, line.options);
  if (!compiler) {
    rejectCommandLine(llvm::toString(compiler.takeError()));
    return 2;
  }
  OwningOpRef<ModuleOp> module = fp8::readProgramFile(line.input, context);
  if (!module)
    return 1;
  FailureOr<fp8::Compiled> compiled = compiler->compile(*module);
  if (failed(compiled))
    return 1;
  if (llvm::Error error = writeOutputs(line, *compiled)) {
    module->emitError() << llvm::toString(std::move(error));
    return 1;
  }
  return 0;
}
