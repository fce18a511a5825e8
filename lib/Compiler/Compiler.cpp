// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes a program through the stages:
//
//   ingest -> selection -> recipe -> fusion -> batching -> bufferize -> kernels -> code
//
// Decisions are read off the IR between selection and recipe, the manifest after recipe, and
// which code computes each matmul off that code.

#include "fp8/Compiler/Compiler.h"
#include "Request.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/TargetNames.h"
#include "fp8/InitAll.h"
#include "fp8/Report/RankMemory.h"
#include "fp8/Target/TargetBackend.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace fp8;

void fp8::registerCompiler(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  fp8::registerAllDialects(registry);
}

void fp8::addMissingRegistrations(MLIRContext &context) {
  DialectRegistry registry;
  registerCompiler(registry);
  context.appendDialectRegistry(registry); // does nothing if all is registered
}

//===----------------------------------------------------------------------===//
// One compilation
//===----------------------------------------------------------------------===//

namespace {
/// One compilation, from a program to its artifact, report and manifest.
class Compilation {
public:
  /// `recipe` is null and `recipeText` empty where every matmul stays as it is.
  Compilation(ModuleOp module, const CompilerOptions &options, RecipeAttrInterface recipe,
              StringRef recipeText, TargetBackendInterface backend)
      : module(module), options(options), recipe(recipe), recipeText(recipeText), backend(backend) {}
  LogicalResult run();

  Compiled result;

private:
  LogicalResult runStage(function_ref<void(OpPassManager &)> build);
  LogicalResult runFront();
  LogicalResult describeAttention();
  void describeParameters();
  LogicalResult runToStage(StringRef last);
  LogicalResult buildCode();
  LogicalResult writeArtifact();

  ModuleOp module;
  const CompilerOptions &options;
  RecipeAttrInterface recipe;
  StringRef recipeText;
  TargetBackendInterface backend;
};
} // namespace

/// Runs the passes of a stage. The IR is verified after the stage, not after each of about ten passes,
/// which took 40% of the time of the first five stages.
LogicalResult Compilation::runStage(function_ref<void(OpPassManager &)> build) {
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  build(manager);
  if (failed(manager.run(module)))
    return failure();
  return verify(module);
}

/// Describes in the report what became of attention. A site that must be fused has to be one of attention.
LogicalResult Compilation::describeAttention() {
  Report &report = result.report;
  report.attention = takeAttentionSites(module);
  const std::string &required = options.recipe.requireAttention;
  llvm::Regex regex(required);
  if (required.empty() ||
      llvm::any_of(report.attention, [&](const AttentionRecord &record) { return regex.match(record.site); }))
    return success();
  return checkUnused(
      module, options.recipe.allowUnused,
      {"require-attention", {}, "no attention is at a site that matches --require-attention=" + required},
      "; the report lists the places of attention");
}

/// Describes the weights that are kept in FP8 in the report.
void Compilation::describeParameters() {
  Report &report = result.report;
  report.parameters = collectParameters(module);
  int64_t bytes = 0, saved = 0;
  for (const ParameterRecord &record : report.parameters) {
    bytes += record.bytes;
    saved += record.copyBytes;
  }
  report.memory.push_back({"fp8_parameter_bytes", "weights kept in FP8, with their scales", bytes});
  report.memory.push_back(
      {"weight_copy_bytes_saved", "copies of weights that a step no longer makes", saved});
}

/// Ingest and recipe, with the decisions read off in between.
LogicalResult Compilation::runFront() {
  std::optional<int64_t> savedBefore = countResidualBytes(module);
  IngestOptions ingest; // the pair is marked already
  ingest.mixedPrecision = options.mixedPrecision;
  ingest.lossScaling = options.lossScaling;
  ingest.loss = options.loss;
  ingest.average = options.average;
  if (failed(runStage([&](OpPassManager &manager) { buildIngestPipeline(manager, ingest); })))
    return failure();
  if (options.emit == "ingest")
    return success();
  RecipeOptions selection = options.recipe;
  selection.allowUnsupported = !options.makesCode() && options.emit != "kernels";
  if (failed(
          runStage([&](OpPassManager &manager) { buildSelectionPipeline(manager, recipeText, selection); })))
    return failure();
  Report &report = result.report;
  report.sites = collectSites(module);
  report.others = collectLookAlikes(module);
  if (failed(runStage(
          [&](OpPassManager &manager) { buildApplicationPipeline(manager, recipeText, options.recipe); })))
    return failure();
  Manifest &manifest = result.manifest;
  manifest = describeModule(module, getChosenRecipe(options.recipe), getTarget(module).getTargetName());
  manifest.options = report.options = describeOptions(options, recipe);
  report.weighedRecipes = options.recipe.weighedRecipes;
  if (failed(describeAttention()))
    return failure();
  report.unusedOptions = takeUnusedOptions(module);
  report.memory.push_back({"state_bytes", "FP8 state: scales and amax histories", manifest.stateBytes});
  if (options.recipe.keepParameters)
    describeParameters();
  llvm::append_range(report.memory, describeRankMemory(manifest));
  if (options.pair) {
    report.memory.push_back({"residual_bytes_before", "saved for backward by the program", savedBefore});
    report.memory.push_back(
        {"residual_bytes_after", "saved for backward as compiled", countResidualBytes(module)});
  }
  return success();
}

/// The stages between recipe and code, up to `last`.
LogicalResult Compilation::runToStage(StringRef last) {
  std::pair<StringRef, std::function<void(OpPassManager &)>> stages[] = {
      {"fusion", buildFusionPipeline},
      {"batching", [&](OpPassManager &manager) { buildBatchingPipeline(manager, options.batching); }},
      {"bufferize", buildBufferizePipeline},
      {"kernels", [&](OpPassManager &manager) { backend.buildKernelsPipeline(manager); }}};
  result.report.traffic = collectTrafficBefore(module);
  for (const auto &[name, build] : stages) {
    if (failed(runStage(build)))
      return failure();
    if (name == "fusion")
      collectTrafficAfter(module, result.report.traffic);
    if (name == "batching") {
      result.report.collectives = collectCollectives(module);
      describeCollectives(result.manifest, module, result.report.collectives);
    }
    if (name == "kernels")
      result.report.steps = collectKernels(module);
    if (name == last)
      break;
  }
  return success();
}

/// Lowers kernels to LLVM code, and describes the code in the manifest and the report.
LogicalResult Compilation::buildCode() {
  auto build = [&](OpPassManager &manager) { backend.buildCodePipeline(manager, options.hostCode); };
  if (failed(runStage(build)))
    return failure();
  describeCode(result.manifest, module);
  result.manifest.processor = getRequiredProcessor(options.hostCode);
  int64_t workspace = 0;
  for (const ManifestEntry &entry : result.manifest.entries)
    workspace = std::max(workspace, entry.workspaceBytes);
  result.report.memory.push_back({"workspace_bytes", "workspace: temporaries of a step", workspace});
  return success();
}

LogicalResult Compilation::writeArtifact() {
  llvm::raw_svector_ostream os(result.artifact);
  if (!options.makesCode()) {
    module.print(os, OpPrintingFlags().enableDebugInfo(true, /*prettyForm=*/false));
    os << "\n";
    return success();
  }
  std::string manifest;
  llvm::raw_string_ostream(manifest) << llvm::json::Value(
      manifestToJSON(result.manifest, result.report.sites));
  return backend.emit(module, options.emit, manifest, options.hostCode, os);
}

LogicalResult Compilation::run() {
  if (failed(runFront()))
    return failure();
  if (options.emit != "ingest" && options.emit != "recipe" && failed(runToStage(options.emit)))
    return failure();
  if (options.makesCode() && failed(buildCode()))
    return failure();
  if (options.makesCode() || options.emit == "kernels")
    readEmittedCode(module, result.report.sites);
  return writeArtifact();
}

//===----------------------------------------------------------------------===//
// The compiler
//===----------------------------------------------------------------------===//

/// Parses a recipe attribute that `option` gives; an error contains the parser's reason.
static llvm::Expected<RecipeAttrInterface> parseRecipe(StringRef text, const Twine &option,
                                                       MLIRContext &context) {
  std::string reason;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (reason.empty())
      reason = ": " + diagnostic.str();
  });
  if (auto recipe = dyn_cast_or_null<RecipeAttrInterface>(parseAttribute(text, &context)))
    return recipe;
  return llvm::createStringError(option + " is not a recipe attribute" + reason);
}

/// Appends the recipes that --site-recipe gives to `recipes`.
static llvm::Error parseSiteRecipes(const RecipeOptions &options, MLIRContext &context,
                                    std::vector<RecipeAttrInterface> &recipes) {
  for (const std::string &option : options.siteRecipes) {
    llvm::Expected<std::string> text = getSiteRecipeText(options, option);
    if (!text)
      return text.takeError();
    if (text->empty())
      continue;
    llvm::Expected<RecipeAttrInterface> recipe = parseRecipe(*text, "--site-recipe=" + option, context);
    if (!recipe)
      return recipe.takeError();
    recipes.push_back(*recipe);
  }
  return llvm::Error::success();
}

/// Returns an error where options about ranks contradict each other.
static llvm::Error checkRanks(const CompilerOptions &options) {
  if (!options.average.empty() && !options.dataParallel)
    return llvm::createStringError("--average without --data-parallel: nothing differs from rank to rank");
  if (options.loss && !options.dataParallel && !options.lossScaling)
    return llvm::createStringError(
        "--loss belongs to --loss-scaling and --data-parallel; give one of them, or drop it");
  if (options.reduceAmaxAxes.empty())
    return llvm::Error::success();
  auto reduce = options.recipe.parameters.find("reduce-amax");
  if (reduce != options.recipe.parameters.end() && reduce->second == "false")
    return llvm::createStringError("--reduce-amax-axes with --reduce-amax=false: nothing is combined");
  if (options.recipe.recipe != "none" && !combinesAmaxes(options.recipe))
    return llvm::createStringError("--reduce-amax-axes belongs to --recipe=delayed and current, not to "
                                   "--recipe=" +
                                   options.recipe.recipe + "; drop one of the two");
  return llvm::Error::success();
}

/// Returns an error where options about sums and functions contradict the target or each other.
static llvm::Error checkCode(const CompilerOptions &options, TargetBackendInterface backend) {
  bool isGPU = llvm::is_contained(backend.getOutputs(), "ptx");
  StringRef ownedByCPU = options.hostCode.math == MathFunctions::libm    ? "--math=libm"
                         : options.hostCode.sums == MatmulSums::hardware ? "--sums=hardware"
                         : options.hostCode.sums == MatmulSums::fastest  ? "--sums=auto"
                                                                         : "";
  if (isGPU && !ownedByCPU.empty())
    return llvm::createStringError(ownedByCPU + " belongs to --target=cpu, not to --target=" +
                                   options.recipe.target + "; drop one of the two");
  auto is = [&](StringRef option, StringRef value) {
    auto given = options.recipe.parameters.find(option.str());
    return given != options.recipe.parameters.end() && given->second == value;
  };
  if (options.strictAccumulation && is("accumulation", "fast") && !is("dgrad-accumulation", "split") &&
      !is("wgrad-accumulation", "split"))
    return llvm::createStringError("--strict-accumulation sums gradients in parts of 128, and "
                                   "--accumulation=fast none; drop one of the two");
  return llvm::Error::success();
}

/// Returns an error unless the target can emit the output that --emit asks for.
static llvm::Error checkOutput(const CompilerOptions &options, TargetBackendInterface backend,
                               MLIRContext &context) {
  if (!options.makesCode() || llvm::is_contained(backend.getOutputs(), options.emit))
    return llvm::Error::success();
  llvm::SmallVector<StringRef> others;
  for (TargetAttrInterface target : listTargets(context))
    if (auto other = dyn_cast<TargetBackendInterface>(target))
      if (llvm::is_contained(other.getOutputs(), options.emit))
        others.push_back(target.getTargetName());
  if (!others.empty())
    return llvm::createStringError("--emit=" + options.emit +
                                   " belongs to --target=" + llvm::join(others, ", ") +
                                   ", not to --target=" + options.recipe.target + "; drop one of the two");
  return llvm::createStringError("--emit=" + options.emit + " is none of " +
                                 llvm::join(backend.getOutputs(), ", ") + ", " +
                                 llvm::join(CompilerOptions::getStages(), ", "));
}

llvm::Expected<Compiler> Compiler::create(MLIRContext &context, CompilerOptions options) {
  addMissingRegistrations(context);
  Compiler compiler;
  compiler.options = std::move(options);
  context.loadDialect<FP8Dialect>();
  llvm::Expected<TargetAttrInterface> target = findTarget(compiler.options.recipe.target, context);
  if (!target)
    return target.takeError();
  compiler.target = *target;
  auto backend = dyn_cast<TargetBackendInterface>(compiler.target);
  if (!backend)
    return llvm::createStringError("--target=" + compiler.options.recipe.target +
                                   " has no backend: this program cannot make code for it");
  if (llvm::Error error = checkCode(compiler.options, backend))
    return std::move(error);
  if (llvm::Error error = checkOutput(compiler.options, backend, context))
    return std::move(error);
  if (llvm::Error error = checkMatmulSums(compiler.options.hostCode))
    return llvm::createStringError("--sums=hardware " + llvm::toString(std::move(error)));
  compiler.target = cast<TargetAttrInterface>(backend.getTargetFor(compiler.options.hostCode));
  if (llvm::Error error = chooseRecipe(compiler.target, compiler.options.recipe))
    return std::move(error);
  if (llvm::Error error = checkRanks(compiler.options))
    return std::move(error);
  llvm::Expected<std::string> text = getRecipeAttribute(compiler.options.recipe);
  if (!text)
    return text.takeError();
  compiler.recipeText = std::move(*text);
  if (llvm::Error error = parseSiteRecipes(compiler.options.recipe, context, compiler.siteRecipes))
    return std::move(error);
  if (compiler.recipeText.empty())
    return compiler;
  llvm::Expected<RecipeAttrInterface> recipe =
      parseRecipe(compiler.recipeText, "--recipe=" + compiler.options.recipe.recipe, context);
  if (!recipe)
    return recipe.takeError();
  compiler.recipe = *recipe;
  return compiler;
}

/// Tells the passes of stages 6 and 7 how sums are to be taken.
static void setSumAttributes(ModuleOp module, const CompilerOptions &options) {
  auto set = [&](bool condition, StringRef name) {
    if (condition)
      module->setAttr(name, UnitAttr::get(module.getContext()));
  };
  if (StringRef instruction = getMatrixInstruction(options.hostCode); !instruction.empty())
    module->setAttr(kHardwareSumsAttrName, StringAttr::get(module.getContext(), instruction));
  set(options.order == SumOrder::program, kProgramOrderAttrName);
  set(options.strictAccumulation, kStrictAccumulationAttrName);
}

FailureOr<Compiled> Compiler::compile(ModuleOp module) const {
  if (failed(applyRequest(module, options)))
    return failure();
  module->setAttr(kTargetAttrName, target);
  setSumAttributes(module, options);
  if (recipe)
    keepRecipeFunctions(module, recipe);
  for (RecipeAttrInterface own : siteRecipes)
    keepRecipeFunctions(module, own);
  Compilation compilation(module, options, recipe, recipeText, cast<TargetBackendInterface>(target));
  if (failed(compilation.run()))
    return failure();
  return std::move(compilation.result);
}

//===----------------------------------------------------------------------===//
// The result
//===----------------------------------------------------------------------===//

static std::string printJSON(llvm::json::Object object) {
  return llvm::formatv("{0:2}", llvm::json::Value(std::move(object))).str() + "\n";
}

std::string Compiled::getReportJSON() const { return printJSON(reportToJSON(report)); }

std::string Compiled::getReportText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  printReport(report, os);
  return text;
}

std::string Compiled::getManifestJSON() const { return printJSON(manifestToJSON(manifest, report.sites)); }
