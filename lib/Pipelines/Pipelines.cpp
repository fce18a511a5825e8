// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stages as pass pipelines. Each ends in fp8-verify-stage, which checks its contract.

#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/TargetNames.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/PipelineSteps.h"
#include "fp8/Target/ModulePipeline.h"
#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fp8;

void fp8::buildIngestPipeline(OpPassManager &manager, const IngestOptions &options) {
  manager.addPass(createScopeMixedPrecision()); // before inlining
  manager.addPass(createConvertShard());
  manager.addPass(createMakeSignless());
  // No canonicalization while inlining, which could remove contractions before they are counted.
  manager.addPass(createInlinerPass(llvm::StringMap<OpPassManager>(), [](OpPassManager &) {}));
  manager.addPass(createSymbolDCEPass());
  manager.addPass(createLiftControlFlowToSCFPass()); // blocks and branches
  manager.addPass(createCropPads());                 // before any pass folds
  manager.addNestedPass<func::FuncOp>(createCountLoops());
  manager.addPass(createGlobalsToState());
  manager.addNestedPass<func::FuncOp>(createCheckSizes());
  manager.addPass(createHoistAsserts());
  manager.addPass(createExpandPacks());
  // Join the pair here, so that folding and inference see forward and backward as one function.
  JoinPairOptions join;
  join.pair = options.pair;
  manager.addPass(createJoinPair(join));
  manager.addPass(createRaiseConvolutions());
  manager.addPass(createJoinProducts());
  manager.addPass(createRaiseContractions());
  manager.addPass(createFoldIntoMatmul());
  manager.addPass(createWidenSums());
  manager.addPass(createRaiseRowGroups());
  manager.addPass(createInferSites());
  MixedPrecisionOptions precision;
  precision.dtype = options.mixedPrecision;
  manager.addPass(createMixedPrecision(precision));
  AverageGradientsOptions averages;
  averages.loss = options.loss.value_or(-1);
  averages.average = options.average;
  manager.addPass(createAverageGradients(averages));
  if (options.lossScaling) {
    ScaleLossOptions scaling;
    scaling.initialScale = *options.lossScaling;
    scaling.loss = options.loss.value_or(-1);
    manager.addPass(createScaleLoss(scaling));
  }
  manager.addPass(createSplitPair());
  addStageVerifier(manager, "ingest");
}

/// Returns the type in which the matmuls of a role stay, or none, from the value of its option; empty for
/// FP8.
static std::string getKeptType(StringRef word) {
  return llvm::is_contained({"bf16", "f16", "f32", "f64", "none"}, word) ? word.str() : "";
}

namespace {
/// A pass that reports an error in the options, because the builder of a pipeline cannot fail.
struct ReportError : PassWrapper<ReportError, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReportError)
  explicit ReportError(llvm::Error error) : message(llvm::toString(std::move(error))) {}
  StringRef getArgument() const final { return "fp8-report-error"; }
  void runOnOperation() final {
    getOperation()->emitError() << message;
    signalPassFailure();
  }
  std::string message;
};
} // namespace

/// Returns whether the options make FP8 of any matmul.
static bool makesFP8(StringRef recipe, const RecipeOptions &options) {
  return !recipe.empty() || !options.siteRecipes.empty();
}

void fp8::buildSelectionPipeline(OpPassManager &manager, StringRef recipe, const RecipeOptions &options) {
  llvm::Expected<std::string> siteRecipes = getSiteRecipesAttribute(options);
  if (!siteRecipes) {
    manager.addPass(std::make_unique<ReportError>(siteRecipes.takeError()));
    return;
  }
  SelectSitesOptions select;
  select.siteRecipes = std::move(*siteRecipes);
  select.recipe = recipe.str();
  select.sites = options.sites;
  select.attention = options.attention;
  select.keep = options.keep;
  select.first = options.first;
  select.last = options.last;
  select.require = options.require;
  select.fprop = getKeptType(options.fprop);
  select.dgrad = getKeptType(options.dgrad);
  select.wgrad = getKeptType(options.wgrad);
  select.allowUnsupported = options.allowUnsupported;
  select.allowUnused = options.allowUnused;
  manager.addPass(createSelectSites(select));
  if (makesFP8(recipe, options))
    manager.addPass(createRaiseDequantization());
}

void fp8::buildApplicationPipeline(OpPassManager &manager, StringRef recipe, const RecipeOptions &options) {
  if (makesFP8(recipe, options)) {
    // Loop-invariant casts and equal tensors become one value, so that they are cast once and share
    // a column. Equal products become one as well; the report has read the decisions about them.
    // The pair is joined after CSE, so that forward code that backward computes again stays separate.
    manager.addNestedPass<func::FuncOp>(createHoistCasts());
    manager.addPass(createCSEPass());
    manager.addPass(createJoinPair());
    manager.addPass(createCollapseMatmuls());
    ApplyRecipeOptions apply;
    if (!recipe.empty())
      apply.recipe = recipe.str();
    apply.calibrate = options.calibrate;
    apply.measureErrors = options.measureErrors;
    apply.stochasticRounding = options.stochasticRounding;
    apply.markWeights = options.keepParameters;
    apply.allowUnused = options.allowUnused;
    manager.addPass(createApplyRecipe(apply));
    manager.addNestedPass<func::FuncOp>(createQuantizeBeforeGather());
    manager.addPass(createStackCasts());
    manager.addPass(createSplitPair());
    if (options.keepParameters) {
      // Weights are kept in the layouts that matmuls read.
      SelectLayoutsOptions layouts;
      layouts.weightsOnly = true;
      manager.addNestedPass<func::FuncOp>(createFoldTransposes());
      manager.addNestedPass<func::FuncOp>(createSelectLayouts(layouts));
      KeepParametersOptions parameters;
      parameters.allowUnused = options.allowUnused;
      manager.addPass(createKeepParameters(parameters));
    }
  }
  manager.addPass(createFormGroupedMatmuls());
  manager.addPass(createPrepareRecipeFunctions());
  manager.addNestedPass<func::FuncOp>(createExpandCollectives());
  addStageVerifier(manager, "recipe");
}

static void addCleanUp(OpPassManager &manager) {
  addCanonicalizer(manager);
  manager.addPass(createCSEPass());
}

void fp8::buildFusionPipeline(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createExpandLossScaling());
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createMergeQuantizes());
  // Operations that only one branch reads, such as casts, run only if that branch does.
  manager.addNestedPass<func::FuncOp>(createSinkIntoBranches());
  addCanonicalizer(manager);
  manager.addNestedPass<func::FuncOp>(createConvertBitcasts());
  manager.addNestedPass<func::FuncOp>(createFoldTransposes());
  manager.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  // Fuse chains without other readers into one operation each, which then moves as a whole. A tensor
  // with other readers is left for casts to store; it is computed again only after they are fused.
  FuseElementwiseOptions chains;
  chains.recompute = false;
  manager.addNestedPass<func::FuncOp>(createFuseElementwise(chains));
  addCleanUp(manager);
  manager.addNestedPass<func::FuncOp>(createFuseEpilogues());
  manager.addNestedPass<func::FuncOp>(createFuseProducers());
  manager.addNestedPass<func::FuncOp>(createFuseRows());
  manager.addNestedPass<func::FuncOp>(createFoldUnitReductions());
  manager.addNestedPass<func::FuncOp>(createFuseElementwise());
  addCleanUp(manager);
  // Tensors that were written in two ways, or in two branches, may have become one by now.
  manager.addNestedPass<func::FuncOp>(createMergeQuantizes());
  manager.addNestedPass<func::FuncOp>(createExplainFusion());
  addStageVerifier(manager, "fusion");
}

void fp8::buildBatchingPipeline(OpPassManager &manager, const BatchingOptions &options) {
  manager.addNestedPass<func::FuncOp>(createBatchAmaxUpdates());
  BucketReductionsOptions buckets;
  buckets.bytes = options.bucketBytes;
  manager.addNestedPass<func::FuncOp>(createBucketReductions(buckets));
  manager.addNestedPass<func::FuncOp>(createSelectLayouts());
  manager.addNestedPass<func::FuncOp>(createPackScales());
  manager.addPass(createCSEPass());
  addStageVerifier(manager, "batching");
}

void fp8::buildBufferizePipeline(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createVectorizeRows());
  manager.addNestedPass<func::FuncOp>(createExpandRows());
  manager.addNestedPass<func::FuncOp>(createFoldEmptyReshapes());
  addCleanUp(manager);
  manager.addNestedPass<func::FuncOp>(createCollectElements());
  manager.addNestedPass<func::FuncOp>(createSeparateDestinations());
  manager.addNestedPass<func::FuncOp>(createBindResults());
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
  options.allowReturnAllocsFromLoops = true; // fp8-pin-loop-buffers deals with them
  manager.addPass(bufferization::createOneShotBufferizePass(options));
  manager.addNestedPass<func::FuncOp>(createDropBoundResults());
  manager.addNestedPass<func::FuncOp>(createPinLoopBuffers());
  manager.addNestedPass<func::FuncOp>(createReinterpretReshapes());
  addCleanUp(manager);
  addStageVerifier(manager, "bufferize");
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

namespace {

struct IngestPipelineOptions : PassPipelineOptions<IngestPipelineOptions> {
  Option<std::string> pair{*this, "pair",
                           llvm::cl::desc("FORWARD:BACKWARD[:K]: results K… (default 1) of the first "
                                          "function are arguments 0… of the second")};
  Option<std::string> mixedPrecision{
      *this, "mixed-precision",
      llvm::cl::desc("off, bf16, f16 or tf32: the precision in which a program in f32 runs"),
      llvm::cl::init("off")};
  Option<double> lossScaling{*this, "loss-scaling",
                             llvm::cl::desc("the initial loss scale of dynamic loss scaling; 0 for none"),
                             llvm::cl::init(0)};
  Option<int64_t> loss{
      *this, "loss", llvm::cl::desc("the result that is the loss; -1 for the only scalar of floating point"),
      llvm::cl::init(-1)};
  ListOption<int64_t> average{
      *this, "average",
      llvm::cl::desc("results whose mean over the ranks is wanted, of a program with fp8.batch arguments")};

  IngestOptions parse() const {
    IngestOptions options;
    options.pair = pair;
    options.mixedPrecision = mixedPrecision;
    if (lossScaling != 0)
      options.lossScaling = lossScaling;
    if (loss >= 0)
      options.loss = loss;
    options.average.assign(average.begin(), average.end());
    return options;
  }
};

/// The RecipeOptions as options of a pipeline.
struct RecipePipelineOptions : PassPipelineOptions<RecipePipelineOptions> {
  Option<std::string> recipe{
      *this, "recipe",
      llvm::cl::desc("delayed, current, block, row, mxfp8, auto, none or a recipe attribute"),
      llvm::cl::init("delayed")};
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc(
          "the target of the module, where it names none; of a module that names another, an error")};
  Option<std::string> fprop{*this, "fprop", llvm::cl::desc("precision, format or recipe of forward matmuls"),
                            llvm::cl::init("fp8")};
  Option<std::string> dgrad{*this, "dgrad", llvm::cl::desc("precision, format or recipe of input gradients"),
                            llvm::cl::init("fp8")};
  Option<std::string> wgrad{*this, "wgrad", llvm::cl::desc("precision, format or recipe of weight gradients"),
                            llvm::cl::init("fp8")};
  ListOption<std::string> siteRecipes{
      *this, "site-recipe", llvm::cl::desc("REGEX=RECIPE,...: recipes, none or types of sites that match")};
  Option<std::string> sites{*this, "sites", llvm::cl::desc("linear, all or a regex"),
                            llvm::cl::init("linear")};
  Option<bool> attention{*this, "fp8-attention",
                         llvm::cl::desc("with sites=linear: matmuls of two activations too"),
                         llvm::cl::init(false)};
  Option<bool> stochasticRounding{*this, "stochastic-rounding",
                                  llvm::cl::desc("casts of gradients round stochastically"),
                                  llvm::cl::init(false)};
  Option<bool> keepParameters{*this, "fp8-parameters",
                              llvm::cl::desc("weights are cast once, and their bytes kept in the state"),
                              llvm::cl::init(false)};
  Option<bool> measureErrors{*this, "measure-errors",
                             llvm::cl::desc("a result per cast: its relative root mean square error"),
                             llvm::cl::init(false)};
  Option<std::string> keep{*this, "keep", llvm::cl::desc("regex of sites that stay in high precision")};
  Option<int64_t> first{*this, "first", llvm::cl::desc("number of first layers that stay in high precision")};
  Option<int64_t> last{*this, "last", llvm::cl::desc("number of last layers that stay in high precision")};
  Option<std::string> require{*this, "require",
                              llvm::cl::desc("all, or a regex of sites that must become FP8")};
  Option<bool> calibrate{*this, "calibrate",
                         llvm::cl::desc("functions without gradients update the state too"),
                         llvm::cl::init(false)};
  Option<bool> allowUnsupported{*this, "allow-unsupported",
                                llvm::cl::desc("allow a recipe that the target has no kernels for"),
                                llvm::cl::init(false)};
  Option<bool> allowUnused{*this, "allow-unused",
                           llvm::cl::desc("list options that no matmul fits on the module; no error"),
                           llvm::cl::init(false)};
  std::vector<std::unique_ptr<Option<std::string>>> parameters;

  RecipePipelineOptions() {
    for (const RecipeParameter &parameter : getRecipeParameters())
      parameters.push_back(
          std::make_unique<Option<std::string>>(*this, parameter.option, llvm::cl::desc(parameter.help)));
  }

  RecipeOptions parse() const {
    RecipeOptions options;
    options.recipe = recipe;
    if (!target.empty())
      options.target = target;
    options.fprop = fprop;
    options.dgrad = dgrad;
    options.wgrad = wgrad;
    options.siteRecipes.assign(siteRecipes.begin(), siteRecipes.end());
    options.sites = sites;
    options.attention = attention;
    options.keepParameters = keepParameters;
    options.measureErrors = measureErrors;
    options.stochasticRounding = stochasticRounding;
    options.keep = keep;
    options.first = first;
    options.last = last;
    options.require = require;
    options.calibrate = calibrate;
    options.allowUnsupported = allowUnsupported;
    options.allowUnused = allowUnused;
    for (const auto &parameter : parameters)
      if (!parameter->empty())
        options.parameters[parameter->getArgStr().str()] = *parameter;
    return options;
  }
};

struct BatchingPipelineOptions : PassPipelineOptions<BatchingPipelineOptions> {
  Option<int64_t> bucketBytes{
      *this, "bucket-bytes",
      llvm::cl::desc("the size up to which reductions of small tensors are joined; 0 joins none"),
      llvm::cl::init(BatchingOptions().bucketBytes)};

  BatchingOptions parse() const {
    BatchingOptions options;
    options.bucketBytes = bucketBytes;
    return options;
  }
};

/// Decides what the recipe `auto` is for a target of this project. The context of the program is not known
/// when its pipeline is built.
llvm::Error chooseByName(RecipeOptions &options) {
  if (options.recipe != "auto")
    return llvm::Error::success();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<FP8Dialect>();
  llvm::Expected<TargetAttrInterface> target = findTarget(options.target, context);
  return target ? chooseRecipe(*target, options) : target.takeError();
}

/// A pass that gives the module the target that a pipeline was built for.
struct SetTarget : PassWrapper<SetTarget, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SetTarget)
  explicit SetTarget(StringRef name) : name(name) {}
  StringRef getArgument() const final { return "fp8-set-target"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<FP8Dialect>(); }
  void runOnOperation() final {
    ModuleOp module = getOperation();
    llvm::Expected<TargetAttrInterface> target = findTarget(name, *module.getContext());
    if (!target) {
      module.emitError() << llvm::toString(target.takeError());
      return signalPassFailure();
    }
    auto own = module->getAttrOfType<TargetAttrInterface>(kTargetAttrName);
    if (!own)
      return module->setAttr(kTargetAttrName, *target);
    if (own == *target || own.getTargetName() == name)
      return;
    module.emitError() << "--target=" << name << ", but the module's " << kTargetAttrName << " is " << own;
    signalPassFailure();
  }
  std::string name;
};

void buildRegisteredRecipePipeline(OpPassManager &manager, const RecipePipelineOptions &pipelineOptions) {
  RecipeOptions options = pipelineOptions.parse();
  bool dependsOnTarget = options.recipe == "auto" || !pipelineOptions.target.empty();
  if (llvm::Error error = chooseByName(options)) {
    manager.addPass(std::make_unique<ReportError>(std::move(error)));
    return;
  }
  llvm::Expected<std::string> recipe = getRecipeAttribute(options);
  if (!recipe) {
    manager.addPass(std::make_unique<ReportError>(recipe.takeError()));
    return;
  }
  if (dependsOnTarget)
    manager.addPass(std::make_unique<SetTarget>(options.target));
  addStageVerifier(manager, "ingest");
  buildSelectionPipeline(manager, *recipe, options);
  buildApplicationPipeline(manager, *recipe, options);
}

} // namespace

void fp8::registerPipelines() {
  registerModulePipeline<IngestPipelineOptions>(
      "fp8-ingest-pipeline", "Stage 1: contractions of linalg become fp8.matmul",
      [](OpPassManager &manager, const IngestPipelineOptions &options) {
        buildIngestPipeline(manager, options.parse());
      });
  registerModulePipeline<RecipePipelineOptions>(
      "fp8-recipe-pipeline", "Stage 2: chosen sites become FP8, state becomes arguments and results",
      buildRegisteredRecipePipeline);
  registerModulePipeline("fp8-fusion-pipeline", "Stage 3: one quantize per tensor", buildFusionPipeline);
  registerModulePipeline<BatchingPipelineOptions>(
      "fp8-batching-pipeline", "Stage 4: one history update per update point, small reductions joined",
      [](OpPassManager &manager, const BatchingPipelineOptions &options) {
        buildBatchingPipeline(manager, options.parse());
      });
  registerModulePipeline("fp8-bufferize-pipeline", "Stage 5: memrefs, state updated in place",
                         buildBufferizePipeline);
}
