// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipelines of stages 1 to 5 by name, with their options.

#include "PipelineErrors.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/TargetNames.h"
#include "fp8/Dialect/FP8/Transforms/PipelineSteps.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Target/ModulePipeline.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace fp8;

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

/// An option of a pipeline for a field of RecipeOptions.
template <typename T>
struct FieldOption : mlir::detail::PassOptions::Option<T> {
  FieldOption(mlir::detail::PassOptions &options, StringRef name, StringRef help, const T &initial)
      : mlir::detail::PassOptions::Option<T>(options, name, llvm::cl::desc(help), llvm::cl::init(initial)) {}
  T get() const { return this->getValue(); }
};
template <>
struct FieldOption<std::vector<std::string>> : mlir::detail::PassOptions::ListOption<std::string> {
  FieldOption(mlir::detail::PassOptions &options, StringRef name, StringRef help,
              const std::vector<std::string> & /*empty*/)
      : ListOption(options, name, llvm::cl::desc(help)) {}
  std::vector<std::string> get() const { return {begin(), end()}; }
};

/// The RecipeOptions as options of a pipeline.
struct RecipePipelineOptions : PassPipelineOptions<RecipePipelineOptions> {
#define FP8_RECIPE_OPTION(Kind, field, name, initial, values, help)                                          \
  FieldOption<option_kinds::Kind> field{*this, name, help, initial};
#include "fp8/Pipelines/RecipeOptions.def"
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
#define FP8_RECIPE_OPTION(Kind, field, name, initial, values, help) options.field = field.get();
#include "fp8/Pipelines/RecipeOptions.def"
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
  bool dependsOnTarget = options.recipe == "auto" || pipelineOptions.target.hasValue();
  if (llvm::Error error = chooseByName(options))
    return addError(manager, std::move(error));
  llvm::Expected<std::string> recipe = getRecipeAttribute(options);
  if (!recipe)
    return addError(manager, recipe.takeError());
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
