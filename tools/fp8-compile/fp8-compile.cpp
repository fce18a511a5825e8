// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a step: reads it, takes it through the stages, writes what was asked for.
//
//   ingest -> selection -> recipe -> fusion -> batching -> bufferize -> kernels -> code
//
// Decisions are read off the IR between selection and recipe, the manifest after recipe.

#include "CommandLine.h"
#include "Input.h"
#include "fp8/InitAll.h"
#include "fp8/Pipelines/Manifest.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Target/CPU/CPUTarget.h"
#include "fp8/Target/Host/HostCode.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace {

/// One compilation, from a parsed module to the outputs.
class Compilation {
public:
  /// Without a recipe every product stays as it is.
  Compilation(ModuleOp module, const CommandLine &options, fp8::RecipeAttrInterface recipe)
      : module(module), options(options), recipe(recipe) {}
  LogicalResult run();

private:
  LogicalResult runStage(function_ref<void(OpPassManager &)> build);
  LogicalResult runFront();
  fp8::OptionValues describeOptions() const;
  LogicalResult runToStage(StringRef last);
  LogicalResult buildCode();
  bool makesCode() const { return options.emit == "lib" || options.emit == "obj" || options.emit == "llvm"; }
  LogicalResult writeReports();
  LogicalResult writeText(StringRef file, function_ref<void(raw_ostream &)> print);
  LogicalResult writeOutput();

  ModuleOp module;
  const CommandLine &options;
  fp8::RecipeAttrInterface recipe;
  fp8::Report report;
  fp8::Manifest manifest;
  /// Files that are written and stay only if all goes well.
  std::vector<std::unique_ptr<llvm::ToolOutputFile>> files;
};

LogicalResult Compilation::runStage(function_ref<void(OpPassManager &)> build) {
  PassManager manager(module.getContext());
  build(manager);
  return manager.run(module);
}

/// Ingest and recipe, with the decisions read off in between.
LogicalResult Compilation::runFront() {
  std::optional<int64_t> savedBefore = fp8::countResidualBytes(module);
  if (failed(runStage([](OpPassManager &manager) { fp8::buildIngestPipeline(manager); })))
    return failure();
  if (options.emit == "ingest")
    return success();
  if (failed(runStage([&](OpPassManager &manager) {
        fp8::buildSelectionPipeline(manager, options.recipeAttribute, options.recipe);
      })))
    return failure();
  report.sites = fp8::collectSites(module, recipe);
  report.others = fp8::collectLookAlikes(module);
  if (failed(runStage([&](OpPassManager &manager) {
        fp8::buildApplicationPipeline(manager, options.recipeAttribute, options.recipe);
      })))
    return failure();
  manifest = fp8::describeModule(module, fp8::getChosenRecipe(options.recipe), options.target);
  manifest.options = report.options = describeOptions();
  report.memory.push_back({"state_bytes", "FP8 state: scales and amax histories", manifest.stateBytes});
  if (options.pair) {
    report.memory.push_back({"residual_bytes_before", "saved for backward by the program", savedBefore});
    report.memory.push_back(
        {"residual_bytes_after", "saved for backward as compiled", fp8::countResidualBytes(module)});
  }
  return success();
}

/// The options of the command line that say what is compiled.
fp8::OptionValues Compilation::describeOptions() const {
  fp8::OptionValues values = fp8::describeOptions(options.recipe, recipe);
  llvm::json::Array carry;
  for (const CarryRequest &request : options.carry)
    carry.push_back(request.argument + ":" + std::to_string(request.result));
  values.emplace_back("carry", std::move(carry));
  values.emplace_back("pair", options.pair
                                  ? llvm::json::Value(options.pair->forward + ":" + options.pair->backward +
                                                      ":" + std::to_string(options.pair->firstResidual))
                                  : llvm::json::Value(nullptr));
  return values;
}

/// The stages between recipe and code, up to `last`.
LogicalResult Compilation::runToStage(StringRef last) {
  std::pair<StringRef, void (*)(OpPassManager &)> stages[] = {{"fusion", fp8::buildFusionPipeline},
                                                              {"batching", fp8::buildBatchingPipeline},
                                                              {"bufferize", fp8::buildBufferizePipeline},
                                                              {"kernels", fp8::buildCPUKernelsPipeline}};
  report.traffic = fp8::collectTrafficBefore(module);
  for (auto [name, build] : stages) {
    if (failed(runStage(build)))
      return failure();
    if (name == "fusion")
      fp8::collectTrafficAfter(module, report.traffic);
    if (name == last)
      break;
  }
  return success();
}

/// LLVM code of the module, and what the manifest says of it.
LogicalResult Compilation::buildCode() {
  fp8::CPUCodeOptions code;
  if (failed(runStage([&](OpPassManager &manager) { fp8::buildCPUCodePipeline(manager, code); })))
    return failure();
  fp8::addWorkspaceSizes(manifest, module);
  int64_t workspace = 0;
  for (const fp8::ManifestEntry &entry : manifest.entries)
    workspace = std::max(workspace, entry.workspaceBytes);
  report.memory.push_back({"workspace_bytes", "workspace: temporaries of a step", workspace});
  return success();
}

LogicalResult Compilation::writeOutput() {
  if (!makesCode())
    return writeText(options.output, [&](raw_ostream &os) {
      module.print(os, OpPrintingFlags().enableDebugInfo(true, /*prettyForm=*/false));
      os << "\n";
    });
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(fp8::manifestToJSON(manifest, report.sites));
  fp8::HostCodeOptions target;
  if (options.emit == "llvm")
    return fp8::emitLLVMIR(module, text, target, options.output);
  if (options.emit == "obj")
    return fp8::emitObject(module, text, target, options.output);
  return fp8::emitSharedLibrary(module, text, target, options.output);
}

LogicalResult Compilation::writeText(StringRef file, function_ref<void(raw_ostream &)> print) {
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(file, &message);
  if (!output)
    return module.emitError() << message;
  print(output->os());
  output->os().flush();
  if (output->os().has_error()) {
    std::string reason = output->os().error().message();
    output->os().clear_error();
    return module.emitError() << "cannot write " << file << ": " << reason;
  }
  files.push_back(std::move(output));
  return success();
}

LogicalResult Compilation::writeReports() {
  for (const ReportRequest &request : options.reports)
    if (failed(writeText(request.file.empty() ? "-" : StringRef(request.file), [&](raw_ostream &os) {
          if (request.json)
            os << llvm::formatv("{0:2}", llvm::json::Value(fp8::reportToJSON(report))) << "\n";
          else
            fp8::printReport(report, os);
        })))
      return failure();
  if (options.manifestFile.empty())
    return success();
  return writeText(options.manifestFile, [&](raw_ostream &os) {
    os << llvm::formatv("{0:2}", llvm::json::Value(fp8::manifestToJSON(manifest, report.sites))) << "\n";
  });
}

LogicalResult Compilation::run() {
  if (failed(runFront()))
    return failure();
  if (options.emit != "ingest" && options.emit != "recipe" && failed(runToStage(options.emit)))
    return failure();
  if (makesCode() && failed(buildCode()))
    return failure();
  // The output last: once it is there, all went well.
  if (failed(writeReports()) || failed(writeOutput()))
    return failure();
  for (auto &file : files)
    file->keep();
  return success();
}

/// Prints one line: the first place in a file that the location has (`fallback` where it
/// has none), and what is wrong there.
void printDiagnostic(Diagnostic &diagnostic, StringRef fallback) {
  FileLineColLoc place;
  diagnostic.getLocation()->walk([&](Location inner) {
    place = dyn_cast<FileLineColLoc>(inner);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  std::string message = diagnostic.str();
  std::replace(message.begin(), message.end(), '\n', ' ');
  StringRef kind = diagnostic.getSeverity() == DiagnosticSeverity::Error     ? "error"
                   : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning"
                                                                             : "remark";
  // Of bytecode that is not well formed MLIR knows the file alone, and says line 0.
  if (place)
    llvm::errs() << place.getFilename().getValue() << ":" << std::max(place.getLine(), 1u) << ":"
                 << std::max(place.getColumn(), 1u);
  else
    llvm::errs() << fallback << ":1:1";
  llvm::errs() << ": " << kind << ": " << message << "\n";
}

/// The recipe of the command line. False after an error, which is the command line's.
bool parseRecipe(const CommandLine &options, MLIRContext &context, fp8::RecipeAttrInterface &recipe) {
  if (options.recipeAttribute.empty())
    return true;
  std::string reason;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (reason.empty())
      reason = ": " + diagnostic.str();
  });
  recipe = dyn_cast_or_null<fp8::RecipeAttrInterface>(parseAttribute(options.recipeAttribute, &context));
  if (!recipe)
    llvm::errs() << "fp8-compile: error: --recipe=" << options.recipe.recipe << " is not a recipe attribute"
                 << reason << "\n";
  return recipe != nullptr;
}

/// The functions that the recipe names are used by nothing yet: public ones outlive ingest, and
/// fp8-apply-recipe, which checks them, makes them private.
void keepRecipeFunctions(ModuleOp module, fp8::RecipeAttrInterface recipe) {
  for (FlatSymbolRefAttr name : {recipe.getScaleFunction(), recipe.getAmaxFunction()})
    if (auto function = name ? module.lookupSymbol<func::FuncOp>(name.getAttr()) : func::FuncOp())
      if (!function.isExternal())
        function.setPublic();
}

LogicalResult checkRequest(ModuleOp module, const CommandLine &options) {
  if (!options.unavailable.empty())
    return module.emitError() << options.unavailable;
  for (auto inner : module.getOps<ModuleOp>())
    return inner.emitError() << "a module inside a module cannot be compiled; move its functions out";
  if (llvm::none_of(module.getOps<func::FuncOp>(),
                    [](func::FuncOp function) { return function.isPublic() && !function.isExternal(); }))
    return module.emitError() << "there is no public function to compile";
  if (failed(refuseOwnAttributes(module)))
    return failure();
  if (failed(applyCarry(module, options.carry)))
    return failure();
  return options.pair ? fp8::markPair(module, *options.pair) : success();
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  CommandLine options;
  if (!parseCommandLine(argc, argv, options))
    return 2;

  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  fp8::registerAllDialects(registry);
  MLIRContext context(registry);
  // Errors say what is wrong in a line of their own; the operation after our passes would not help.
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler diagnostics(
      &context, [&](Diagnostic &diagnostic) { printDiagnostic(diagnostic, options.input); });
  fp8::RecipeAttrInterface recipe;
  if (!parseRecipe(options, context, recipe))
    return 2;
  llvm::SourceMgr sources;
  OwningOpRef<ModuleOp> module = readModule(options.input, sources, context);
  if (!module || failed(checkRequest(*module, options)))
    return 1;
  if (recipe)
    keepRecipeFunctions(*module, recipe);
  return failed(Compilation(*module, options, recipe).run()) ? 1 : 0;
}
