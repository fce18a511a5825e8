// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stages as pass pipelines. Each ends in fp8-verify-stage, which checks its contract.

#include "fp8/Pipelines/Pipelines.h"
#include "PipelineErrors.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/PipelineSteps.h"
#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
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
  manager.addPass(createDivideConcatenations());
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

void fp8::addError(OpPassManager &manager, llvm::Error error) {
  manager.addPass(std::make_unique<ReportError>(std::move(error)));
}

/// Returns whether the options make FP8 of any matmul.
static bool makesFP8(StringRef recipe, const RecipeOptions &options) {
  return !recipe.empty() || !options.siteRecipes.empty();
}

void fp8::buildSelectionPipeline(OpPassManager &manager, StringRef recipe, const RecipeOptions &options) {
  llvm::Expected<std::string> siteRecipes = getSiteRecipesAttribute(options);
  if (!siteRecipes)
    return addError(manager, siteRecipes.takeError());
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

/// Fuses attention. A pair is one function then, so that it hands over queries, keys, values and statistics
/// of rows, and no scores.
static void addAttention(OpPassManager &manager, const RecipeOptions &options) {
  FuseAttentionOptions attention;
  attention.require = options.requireAttention;
  if (options.attentionForm == "fused")
    manager.addNestedPass<func::FuncOp>(createFuseAttention(attention));
}

void fp8::buildApplicationPipeline(OpPassManager &manager, StringRef recipe, const RecipeOptions &options) {
  if (makesFP8(recipe, options)) {
    // Loop-invariant casts and equal tensors become one value, so that they are cast once and share
    // a column. Equal matmuls become one as well; the report has read the decisions about them.
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
    addAttention(manager, options);
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
  } else if (options.attentionForm == "fused") {
    manager.addPass(createJoinPair());
    addAttention(manager, options);
    manager.addPass(createSplitPair());
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
  // Before code that only backward reads is fused with code that forward reads, too.
  manager.addNestedPass<func::FuncOp>(createRecomputeElements());
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
  RecomputeElementsOptions operands;
  operands.attention = true;
  manager.addNestedPass<func::FuncOp>(createRecomputeElements(operands));
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
  manager.addNestedPass<func::FuncOp>(createDecomposeAttention());
  manager.addNestedPass<func::FuncOp>(createVectorizeRows());
  manager.addNestedPass<func::FuncOp>(createExpandRows());
  manager.addNestedPass<func::FuncOp>(createFoldEmptyReshapes());
  addCleanUp(manager);
  manager.addNestedPass<func::FuncOp>(createExpandSwitches());
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
