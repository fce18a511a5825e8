// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data parallelism: finds the loss and the gradients of the parameters in one rank's step, and replaces
// them by their means over the ranks.

#include "Loss.h"
#include "LossScaling/CotangentPaths.h"
#include "RankDependence.h"
#include "fp8/Analysis/Sites/SiteNames.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_AVERAGEGRADIENTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// The part of the pass that works on one function.
class Averager {
public:
  Averager(func::FuncOp function, ArrayRef<int64_t> grid, int64_t axis, int64_t loss,
           ArrayRef<int64_t> averaged)
      : function(function), body(function.getBody().front()), grid(grid), axis(axis), givenLoss(loss),
        averaged(averaged), builder(function.getContext()), dependence(function, axis) {}

  LogicalResult run();

private:
  LogicalResult averageGradients(unsigned loss);
  FailureOr<bool> isGradientResult(unsigned result);
  FailureOr<SmallVector<Value>> findNeeded(const CotangentPaths &paths);
  Value findSource(Value gradient) const;
  Value average(Value value, StringRef label);
  void averageResult(unsigned result, const Twine &label);
  LogicalResult verifyCarried();
  bool isAveraged(unsigned result) const { return llvm::is_contained(averaged, int64_t(result)); }
  Operation *getReturn() { return body.getTerminator(); }

  func::FuncOp function;
  Block &body;
  ArrayRef<int64_t> grid;
  int64_t axis, givenLoss;
  ArrayRef<int64_t> averaged;
  OpBuilder builder;
  RankDependence dependence;
};

/// Builds the mean of `value` right behind it.
Value Averager::average(Value value, StringRef label) {
  builder.setInsertionPointAfterValue(value);
  return AllReduceOp::create(builder, value.getLoc(), TypeRange(value.getType()), value, value,
                             ReduceKindAttr::get(builder.getContext(), ReduceKind::mean),
                             builder.getDenseI64ArrayAttr(grid), builder.getDenseI64ArrayAttr(axis),
                             builder.getStringAttr(label))
      .getResult(0);
}

/// Makes the mean of a result the result; other code reads what it read.
void Averager::averageResult(unsigned result, const Twine &label) {
  Value value = getReturn()->getOperand(result);
  if (dependence.varies(value))
    getReturn()->setOperand(result, average(value, label.str()));
}

/// Returns whether `result`, which is linear in the gradient of the loss, is the gradient of a parameter. Its
/// shape tells: that of an argument that is equal on all ranks, or that of the batch.
FailureOr<bool> Averager::isGradientResult(unsigned result) {
  auto type = dyn_cast<RankedTensorType>(getReturn()->getOperand(result).getType());
  if (!type || findCarried(function, result) || isAveraged(result))
    return false; // looked at elsewhere
  std::optional<unsigned> parameter, batch;
  for (BlockArgument argument : function.getArguments()) {
    auto other = dyn_cast<RankedTensorType>(argument.getType());
    if (!other || !isa<FloatType>(other.getElementType()) || other.getShape() != type.getShape())
      continue;
    (dependence.varies(argument) ? batch : parameter) = argument.getArgNumber();
  }
  if (!parameter || !batch)
    return parameter.has_value();
  return emitError(getReturn()->getOperand(result).getLoc())
         << "result " << result << " is a gradient with the shape of the parameter '"
         << getArgumentName(function.getArgument(*parameter)) << "' and of the batch '"
         << getArgumentName(function.getArgument(*batch))
         << "', so data parallelism cannot tell whose it is: name it with --average=" << result
         << " if it is the parameter's, else do not return it";
}

/// Returns the gradients that carried results or gradients among the results are computed from, in the order
/// of the program.
FailureOr<SmallVector<Value>> Averager::findNeeded(const CotangentPaths &paths) {
  SmallVector<Value> worklist;
  llvm::DenseSet<Value> reached; // what must be equal on all ranks, and what that is computed from
  for (OpOperand &result : getReturn()->getOpOperands()) {
    bool isWanted = findCarried(function, result.getOperandNumber()).has_value();
    if (!isWanted && paths.getEnds().contains(&result)) {
      FailureOr<bool> isGradient = isGradientResult(result.getOperandNumber());
      if (failed(isGradient))
        return failure();
      isWanted = *isGradient;
    }
    if (isWanted)
      worklist.push_back(result.get());
  }
  llvm::DenseSet<Value> returned(worklist.begin(), worklist.end());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (reached.insert(value).second && op)
      llvm::append_range(worklist, dependence.getReads(op));
  }
  llvm::SetVector<Value> needed;
  for (OpOperand *end : paths.getEnds()) {
    Operation *reader = body.findAncestorOpInBlock(*end->getOwner());
    bool isNeeded =
        reader == getReturn()
            ? returned.contains(end->get())
            : llvm::any_of(reader->getResults(), [&](Value result) { return reached.contains(result); });
    if (isNeeded && end->get().getParentBlock() == &body)
      needed.insert(end->get());
  }
  SmallVector<Value> ordered = needed.takeVector();
  llvm::sort(ordered, [](Value a, Value b) {
    Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
    return first && second ? first->isBeforeInBlock(second) : !first && second;
  });
  return ordered;
}

/// Returns the value that `gradient` is an elementwise function of, with values that are equal on all ranks,
/// and that has as many elements of the same type: W - rate · g needs the mean of g.
Value Averager::findSource(Value gradient) const {
  while (Operation *op = gradient.getDefiningOp()) {
    auto type = dyn_cast<RankedTensorType>(gradient.getType());
    SmallVector<Value> varying;
    for (Value read : dependence.getReads(op))
      if (dependence.varies(read))
        varying.push_back(read);
    auto from = varying.size() == 1 ? dyn_cast<RankedTensorType>(varying[0].getType()) : RankedTensorType();
    if (!type || !from || op->getNumResults() != 1 || from.getElementType() != type.getElementType() ||
        !from.hasStaticShape() || !type.hasStaticShape() || from.getNumElements() != type.getNumElements() ||
        !isLinear(op))
      break;
    gradient = varying[0];
  }
  return gradient;
}

/// The words for a gradient in messages: its site, or where it is computed.
std::string describe(Value gradient) {
  std::string name = parseNameStack(gradient.getLoc()).site;
  if (auto product = gradient.getDefiningOp<MatmulOp>(); product && product.getSite())
    name = product.getSite()->str();
  return name.empty() ? "gradient" : "gradient of " + name;
}

LogicalResult Averager::averageGradients(unsigned loss) {
  CotangentPaths paths(function, getReturn()->getOperand(loss),
                       [&](Value value) { return dependence.varies(value); });
  if (!paths.hasGradients())
    return success();
  FailureOr<SmallVector<Value>> needed = findNeeded(paths);
  if (failed(needed))
    return failure();
  for (Value gradient : *needed) {
    if (!dependence.varies(gradient))
      continue;
    Value source = findSource(gradient);
    dependence.makeEqual(source);
    Value mean = average(source, describe(source));
    source.replaceUsesWithIf(mean, [&](OpOperand &use) {
      return use.getOwner() != mean.getDefiningOp() && !isa<tensor::DimOp>(use.getOwner());
    });
  }
  return success();
}

/// Reports a carried result that still differs from rank to rank.
LogicalResult Averager::verifyCarried() {
  for (OpOperand &result : getReturn()->getOpOperands()) {
    unsigned index = result.getOperandNumber();
    std::optional<unsigned> argument = findCarried(function, index);
    if (!argument || !dependence.varies(result.get()) || isAveraged(index))
      continue;
    InFlightDiagnostic error = emitError(result.get().getLoc())
                               << "result " << index << ", the next value of '"
                               << getArgumentName(function.getArgument(*argument))
                               << "', depends on the batch other than through a gradient, so it would differ "
                                  "from rank to rank";
    if (isa<FloatType>(getElementTypeOrSelf(result.get())))
      error << ": --average=" << index << " takes its mean";
    return error;
  }
  return success();
}

LogicalResult Averager::run() {
  bool hasLoss = hasGradientProducts(function) || givenLoss >= 0 || findScalarResults(function).size() == 1;
  if (hasLoss) {
    FailureOr<unsigned> loss = findLoss(function, givenLoss, "data parallelism");
    if (failed(loss) || failed(averageGradients(*loss)) || failed(verifyCarried()))
      return failure();
    averageResult(*loss, "loss");
  } else if (failed(verifyCarried())) {
    return failure();
  }
  for (int64_t result : averaged) {
    if (result < 0 || result >= static_cast<int64_t>(function.getNumResults()) ||
        !isa<FloatType>(getElementTypeOrSelf(function.getResultTypes()[result])))
      return function.emitError() << "--average=" << result << ": '" << function.getName()
                                  << "' has no tensor of floating point as result " << result;
    averageResult(result, "result " + Twine(result));
  }
  return success();
}

class AverageGradients : public impl::AverageGradientsBase<AverageGradients> {
public:
  using AverageGradientsBase::AverageGradientsBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto grid = module->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName);
    auto axis = module->getAttrOfType<IntegerAttr>(kBatchAxisAttrName);
    if (!grid || !axis)
      return;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || llvm::none_of(function.getArguments(), [&](BlockArgument argument) {
            return function.getArgAttr(argument.getArgNumber(), kBatchAttrName);
          }))
        continue;
      if (!function.getBody().hasOneBlock() ||
          failed(Averager(function, grid, axis.getInt(), loss, average).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace fp8
