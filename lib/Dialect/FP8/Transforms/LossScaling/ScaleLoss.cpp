// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dynamic loss scaling of a training step: the gradient of the loss is scaled, the gradients of parameters
// are divided by the scale, and a step with an overflow changes nothing but the scale.

#include "CotangentPaths.h"
#include "Loss.h"
#include "ScaledReads.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_SCALELOSS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Names of the state tensors: f32 and i32 of rank 0.
constexpr StringLiteral kScaleName = "loss_scale", kTrackerName = "loss_scale_tracker";

/// The part of the pass that works on one function.
class LossScaling {
public:
  LossScaling(func::FuncOp function, const ScaleLossOptions &options)
      : function(function), options(options), rewriter(function.getContext()) {}
  LogicalResult run();

private:
  LogicalResult verifyEnds(const CotangentPaths &paths);
  FailureOr<Value> addState(StringRef name, DenseElementsAttr initial);
  void unscale(ArrayRef<OpOperand *> ends);
  Value combineOverRanks(Value noted);
  void keepCarried();
  void update();
  Operation *getReturn() { return function.getBody().front().getTerminator(); }
  Value buildEmpty(Value like);

  func::FuncOp function;
  const ScaleLossOptions &options;
  IRRewriter rewriter;
  unsigned loss = 0;
  Value scale, tracker, found;
};

LogicalResult LossScaling::verifyEnds(const CotangentPaths &paths) {
  if (paths.getSeeds().empty())
    return function.emitError() << "loss scaling finds no place where the gradient of result " << loss
                                << " enters the backward pass: pass the gradient of the loss as an argument";
  for (OpOperand *end : paths.getEnds())
    if (end->getOwner()->getBlock() != &function.getBody().front() ||
        end->get().getParentBlock() != &function.getBody().front())
      return end->getOwner()->emitError() << "reads a scaled gradient inside a loop or branch, and is not "
                                             "linear in it: loss scaling needs "
                                             "the optimizer, and the clipping of gradients, outside";
  return success();
}

/// Adds a state tensor of rank 0 as the last argument and the last result before residuals.
FailureOr<Value> LossScaling::addState(StringRef name, DenseElementsAttr initial) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto other = function.getArgAttrOfType<StringAttr>(i, kProgramStateAttrName); other && other == name)
      return function.emitError() << "global '" << name
                                  << "' has the name of a state tensor of loss scaling: "
                                  << "rename it";
  unsigned index = function.getNumArguments(), result = function.getNumResults();
  NamedAttribute mark(rewriter.getStringAttr(kProgramStateAttrName), rewriter.getStringAttr(name));
  SmallVector<NamedAttribute> attributes{
      mark,
      {rewriter.getStringAttr(kInitialAttrName), initial},
      {rewriter.getStringAttr(kCarriedAttrName), rewriter.getI32IntegerAttr(result)}};
  if (failed(function.insertArgument(index, initial.getType(), rewriter.getDictionaryAttr(attributes),
                                     NameLoc::get(rewriter.getStringAttr(name), function.getLoc()))) ||
      failed(function.insertResult(result, initial.getType(), rewriter.getDictionaryAttr(mark))))
    return failure();
  Value argument = function.getArgument(index);
  getReturn()->insertOperands(result, argument);
  return argument;
}

Value LossScaling::buildEmpty(Value like) {
  return tensor::EmptyOp::create(rewriter, like.getLoc(),
                                 tensor::getMixedSizes(rewriter, like.getLoc(), like),
                                 getElementTypeOrSelf(like));
}

/// Inserts the f16 gradients of outputs that matmuls outside of loops read. A cast to FP8 saturates, so
/// their overflow need not reach the gradient of a weight.
static void insertOutputGradients(func::FuncOp function, llvm::SetVector<Value> &gradients) {
  auto insert = [&](Value value, std::optional<TensorKind> kind) {
    if (kind == TensorKind::grad_output && getElementTypeOrSelf(value).isF16() &&
        value.getParentBlock() == &function.getBody().front())
      gradients.insert(value);
  };
  function.walk([&](MatmulOp op) {
    insert(op.getLhs(), op.getLhsKind());
    insert(op.getRhs(), op.getRhsKind());
  });
}

/// Combines over all ranks whether a gradient overflows: each rank may have other gradients, of its rows or
/// of its part of a weight, and all have to skip the same steps.
Value LossScaling::combineOverRanks(Value noted) {
  auto grid = function->getParentOfType<ModuleOp>()->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName);
  if (!grid)
    return noted;
  auto axes = rewriter.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, grid.size())));
  return AllReduceOp::create(rewriter, noted.getLoc(), TypeRange(noted.getType()), noted, buildEmpty(noted),
                             ReduceKindAttr::get(rewriter.getContext(), ReduceKind::max), grid, axes,
                             rewriter.getStringAttr("overflow"))
      .getResult(0);
}

/// Divides all values that `ends` read by the scale, in one operation, which also looks for overflows.
void LossScaling::unscale(ArrayRef<OpOperand *> ends) {
  llvm::SetVector<Value> gradients;
  for (OpOperand *end : ends)
    gradients.insert(end->get());
  insertOutputGradients(function, gradients);
  rewriter.setInsertionPoint(getReturn());
  SmallVector<Value> outs;
  for (Value gradient : gradients)
    outs.push_back(buildEmpty(gradient));
  outs.push_back(buildEmpty(scale));
  auto op = UnscaleOp::create(rewriter, getReturn()->getLoc(), TypeRange(ValueRange(outs)),
                              gradients.getArrayRef(), scale, outs);
  for (OpOperand *end : ends) {
    auto place = llvm::find(gradients, end->get()) - gradients.begin();
    end->set(op->getResult(place));
  }
  found = combineOverRanks(op->getResults().back());
}

/// After an overflow, every carried argument keeps its value. The program's own state, such as that of
/// random numbers, moves on.
void LossScaling::keepCarried() {
  rewriter.setInsertionPoint(getReturn());
  for (OpOperand &result : getReturn()->getOpOperands()) {
    std::optional<unsigned> carried = findCarried(function, result.getOperandNumber());
    if (!carried || function.getArgAttr(*carried, kProgramStateAttrName))
      continue;
    BlockArgument old = function.getArgument(*carried);
    if (old != result.get() && isa<RankedTensorType>(old.getType()))
      result.set(buildChoice(rewriter, found, old, result.get()));
  }
}

void LossScaling::update() {
  rewriter.setInsertionPoint(getReturn());
  SmallVector<Value> outs{scale, tracker};
  auto op = UpdateLossScaleOp::create(rewriter, getReturn()->getLoc(), TypeRange(ValueRange(outs)), found,
                                      scale, tracker, rewriter.getF32FloatAttr(options.growth),
                                      rewriter.getF32FloatAttr(options.backoff),
                                      rewriter.getI64IntegerAttr(options.interval));
  for (auto [old, value] : llvm::zip(outs, op->getResults())) {
    auto argument = cast<BlockArgument>(old).getArgNumber();
    auto result = function.getArgAttrOfType<IntegerAttr>(argument, kCarriedAttrName).getInt();
    getReturn()->setOperand(result, value);
  }
}

LogicalResult LossScaling::run() {
  if (!hasGradientMatmuls(function))
    return success(); // evaluation
  FailureOr<unsigned> result = findLoss(function, options.loss, "loss scaling");
  if (failed(result))
    return failure();
  loss = *result;
  // The state first: a new result moves the operands of return, which may be ends.
  auto f32 = RankedTensorType::get({}, rewriter.getF32Type());
  auto i32 = RankedTensorType::get({}, rewriter.getI32Type());
  FailureOr<Value> scaleState =
      addState(kScaleName, DenseElementsAttr::get(f32, static_cast<float>(options.initialScale)));
  FailureOr<Value> trackerState = addState(kTrackerName, DenseElementsAttr::get(i32, int32_t(0)));
  if (failed(scaleState) || failed(trackerState))
    return failure();
  scale = *scaleState;
  tracker = *trackerState;
  CotangentPaths paths(function, getReturn()->getOperand(loss));
  if (failed(verifyEnds(paths)))
    return failure();
  unscale(paths.getEnds().getArrayRef());
  scaleReads(rewriter, paths.getSeeds().getArrayRef(), scale);
  if (!sortTopologically(&function.getBody().front()))
    return function.emitError() << "a gradient depends on another one that is not linear in the loss: loss "
                                   "scaling cannot divide both at once";
  keepCarried();
  update();
  return success();
}

struct ScaleLoss : impl::ScaleLossBase<ScaleLoss> {
  using ScaleLossBase::ScaleLossBase;

  void runOnOperation() final {
    ScaleLossOptions options{initialScale, growth, backoff, interval, loss};
    bool isTraining = false;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isPublic() || function.isExternal())
        continue;
      if (!function.getOps<EndForwardOp>().empty()) {
        function.emitError() << "loss scaling of forward and backward as two functions is the caller's: "
                                "multiply the gradient of the loss that backward receives";
        return signalPassFailure();
      }
      isTraining |= hasGradientMatmuls(function);
      if (failed(LossScaling(function, options).run()))
        return signalPassFailure();
    }
    if (isTraining)
      return;
    getOperation().emitError()
        << "loss scaling finds no matmul of a backward pass: compile the whole training "
           "step, or drop --loss-scaling";
    signalPassFailure();
  }
};

} // namespace
} // namespace fp8
