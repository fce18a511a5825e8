// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data parallelism: finds the loss and the gradients of the parameters in one rank's step, and replaces
// them by their means over the ranks.

#include "GradientReads.h"
#include "Loss.h"
#include "RankDependence.h"
#include "fp8/Analysis/Sites/SiteNames.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/IR/Builders.h"

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
  /// Arguments with the shape of a result; null where there is none.
  struct SameShape {
    BlockArgument parameter, batch;
  };

  LogicalResult averageGradients(unsigned loss);
  SameShape findSameShape(OpOperand &result) const;
  FailureOr<bool> isOfParameters(OpOperand &result, bool isGradient) const;
  FailureOr<llvm::SetVector<OpOperand *>> findWanted(const GradientReads &gradients) const;
  bool isOfNamedGradient(OpOperand &result) const;
  bool mayBeOfParameters(OpOperand &result) const;
  void warn(OpOperand &result) const;
  void warnOfOthers(const GradientReads &gradients, unsigned loss) const;
  void warnOfNamedGradients() const;
  Value average(Value value, StringRef label);
  void averageResult(unsigned result, const Twine &label);
  LogicalResult verifyCarried();
  bool isAveraged(unsigned result) const { return llvm::is_contained(averaged, int64_t(result)); }
  Operation *getReturn() const { return body.getTerminator(); }

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

/// Finds arguments of floating point with the shape of `result`: one that is equal on all ranks, and one of
/// the batch.
Averager::SameShape Averager::findSameShape(OpOperand &result) const {
  SameShape found;
  auto type = dyn_cast<RankedTensorType>(result.get().getType());
  for (BlockArgument argument : body.getArguments()) {
    auto other = dyn_cast<RankedTensorType>(argument.getType());
    if (type && other && isa<FloatType>(other.getElementType()) && other.getShape() == type.getShape())
      (dependence.varies(argument) ? found.batch : found.parameter) = argument;
  }
  return found;
}

/// Returns whether `result`, which is a gradient or computed from some, is of parameters, as its shape tells.
FailureOr<bool> Averager::isOfParameters(OpOperand &result, bool isGradient) const {
  SameShape same = findSameShape(result);
  if (!same.parameter == !same.batch && (same.parameter || isGradient)) {
    InFlightDiagnostic error = emitError(result.get().getLoc()) << "result " << result.getOperandNumber()
                                                                << " is a gradient with the shape of ";
    if (same.parameter)
      error << "the parameter '" << getArgumentName(same.parameter) << "' and of the batch '"
            << getArgumentName(same.batch) << "'";
    else
      error << "no argument";
    return error << ", so data parallelism cannot tell whose it is: name it with --average="
                 << result.getOperandNumber() << " if it is the parameter's, else do not return it";
  }
  return !same.batch;
}

/// Returns the results that means of gradients make equal on all ranks: the carried ones, gradients of
/// parameters, and tensors that are computed from them. A scalar is a norm, which reads what others read.
FailureOr<llvm::SetVector<OpOperand *>> Averager::findWanted(const GradientReads &gradients) const {
  llvm::SetVector<OpOperand *> wanted;
  for (OpOperand &result : getReturn()->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(result.get().getType());
    bool isGradient = gradients.isGradient(result),
         isCarried = !!findCarried(function, result.getOperandNumber());
    bool isCandidate = type && isa<FloatType>(type.getElementType()) &&
                       !isAveraged(result.getOperandNumber()) &&
                       (isGradient || (type.getRank() > 0 && gradients.isOfGradients(result)));
    FailureOr<bool> isWanted = isCarried;
    if (!isCarried && isCandidate)
      isWanted = isOfParameters(result, isGradient);
    if (failed(isWanted))
      return failure();
    if (*isWanted)
      wanted.insert(&result);
  }
  return wanted;
}

/// Returns whether `result` stays each rank's own, though it has the shape of a parameter.
bool Averager::mayBeOfParameters(OpOperand &result) const {
  unsigned index = result.getOperandNumber();
  auto type = dyn_cast<RankedTensorType>(result.get().getType());
  if (!type || !isa<FloatType>(type.getElementType()) || isAveraged(index) || findCarried(function, index) ||
      !dependence.varies(result.get()))
    return false;
  SameShape same = findSameShape(result);
  return same.parameter && !same.batch;
}

void Averager::warn(OpOperand &result) const {
  unsigned index = result.getOperandNumber();
  emitWarning(result.get().getLoc()) << "result " << index << " has the shape of the parameter '"
                                     << getArgumentName(findSameShape(result).parameter)
                                     << "', and differs from rank to rank: --average=" << index
                                     << " takes its mean";
}

/// Warns of results that may be the gradient of a parameter: one that no matmul's gradient leads to, or a
/// new value of a scalar parameter.
void Averager::warnOfOthers(const GradientReads &gradients, unsigned loss) const {
  for (OpOperand &result : getReturn()->getOpOperands()) {
    if (result.getOperandNumber() == loss || !mayBeOfParameters(result))
      continue;
    bool isScalar = cast<RankedTensorType>(result.get().getType()).getRank() == 0;
    if (isScalar ? gradients.isOfGradients(result) : !gradients.isForward(result.get()))
      warn(result);
  }
}

/// Returns whether `result` is computed from a value of the batch that its exporter names a gradient.
bool Averager::isOfNamedGradient(OpOperand &result) const {
  llvm::SetVector<Value> sources;
  sources.insert(result.get());
  for (size_t i = 0; i < sources.size(); ++i) {
    Operation *op = sources[i].getDefiningOp();
    if (op && dependence.varies(sources[i]) && parseNameStack(op->getLoc()).backward)
      return true;
    if (op)
      sources.insert_range(dependence.getReads(op));
  }
  return false;
}

/// The same for a function without matmuls of gradients, such as that of a normalization alone. Most are
/// evaluations, whose statistics of a batch may have the shape of a parameter: only names tell.
void Averager::warnOfNamedGradients() const {
  for (OpOperand &result : getReturn()->getOpOperands())
    if (mayBeOfParameters(result) && isOfNamedGradient(result))
      warn(result);
}

/// The words for a gradient in messages: its site, or where it is computed.
std::string describe(Value gradient) {
  std::string name = parseNameStack(gradient.getLoc()).site;
  if (auto matmul = gradient.getDefiningOp<MatmulOp>(); matmul && matmul.getSite())
    name = matmul.getSite()->str();
  return name.empty() ? "gradient" : "gradient of " + name;
}

LogicalResult Averager::averageGradients(unsigned loss) {
  GradientReads gradients(function, getReturn()->getOperand(loss), dependence);
  if (!gradients.hasGradients())
    return success();
  FailureOr<llvm::SetVector<OpOperand *>> wanted = findWanted(gradients);
  if (failed(wanted))
    return failure();
  for (auto &[gradient, reads] : gradients.find(*wanted)) {
    Value mean = average(gradient, describe(gradient));
    for (OpOperand *read : reads)
      read->set(mean);
  }
  dependence = RankDependence(function, axis);
  warnOfOthers(gradients, loss);
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
  bool hasGradients = hasGradientMatmuls(function),
       hasLoss = hasGradients || givenLoss >= 0 || findScalarResults(function).size() == 1;
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
  if (!hasGradients)
    warnOfNamedGradients();
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
