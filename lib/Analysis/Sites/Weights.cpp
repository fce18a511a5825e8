// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds parameters by their matched gradients, and weights by what operands are computed from. The rules are
// in the header.

#include "fp8/Analysis/Sites/Weights.h"
#include "fp8/Analysis/Sites/NewValues.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

StringRef fp8::getGivenName(Value argument) {
  if (auto global = argument.getDefiningOp<memref::GetGlobalOp>())
    return global.getName();
  auto name = isa<BlockArgument>(argument) ? argument.getLoc()->findInstanceOf<NameLoc>() : NameLoc();
  return name ? name.getName().getValue() : StringRef();
}

struct Weights::Choice {
  std::optional<unsigned> weight;
  bool bothPlain = false;
};

static bool isOfFloats(Value argument) {
  return isa<ShapedType>(argument.getType()) && isa<FloatType>(getElementTypeOrSelf(argument));
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

Weights::Weights(FunctionOpInterface function, ArrayRef<Contraction> contractions,
                 const Reachability &reachability, const ValueSources &sources)
    : body(function.getFunctionBody()), reachability(reachability), sources(sources),
      hasGradients(llvm::any_of(contractions,
                                [](const Contraction &c) { return c.isBackward() || c.name.backward; })) {
  for (const Contraction &contraction : contractions)
    if (contraction.isBackward() || contraction.name.backward)
      gradients.insert(contraction.op);
  for (const Contraction &contraction : contractions)
    for (unsigned operand : {0, 1})
      if (contraction.gradients[operand] != Contraction::kNone)
        addParametersOf(contraction, operand);
  if (hasGradients)
    for (Value argument : body.getArguments())
      if (isOfFloats(argument) && isCarried(argument))
        parameters.insert(argument);
}

/// Adds the arguments that the gradient of `operand` shows to be parameters. If the operand is a view of an
/// argument, the gradient is the argument's; if it is computed without contractions, the gradients of its
/// arguments are computed from this one, if they are results.
void Weights::addParametersOf(const Contraction &contraction, unsigned operand) {
  Value value = contraction.op->getOperand(operand);
  if (Value argument = getParameter(value)) {
    parameters.insert(argument);
    return;
  }
  if (!sources.getContractions(value).empty())
    return;
  for (Value argument : sources.getFloatArguments(value))
    if (isGradientAResult(contraction.gradients[operand], argument))
      parameters.insert(argument);
}

/// True if a result of the argument's shape is computed from the matmul.
bool Weights::isGradientAResult(unsigned matmul, Value argument) const {
  Operation *terminator = body.back().getTerminator();
  return llvm::any_of(terminator->getOperands(), [&](Value result) {
    auto type = dyn_cast<ShapedType>(result.getType());
    return type && type.getShape() == cast<ShapedType>(argument.getType()).getShape() &&
           reachability.reaches(matmul, result);
  });
}

void Weights::collectTrainedNames(llvm::StringSet<> &names) const {
  for (Value parameter : parameters)
    if (StringRef name = getGivenName(parameter); !name.empty())
      names.insert(name);
}

/// The own word of an argument that is part of a tree; empty for others.
static StringRef getTree(Value argument) {
  StringRef name = getGivenName(argument),
            word = name.take_until([](char c) { return c == '.' || c == '['; });
  return word.size() < name.size() ? word : StringRef();
}

void Weights::addTrainedNames(const llvm::StringSet<> &names, ArrayRef<Contraction> contractions) {
  for (Value argument : body.getArguments())
    if (isOfFloats(argument) && names.contains(getGivenName(argument)))
      parameters.insert(argument);
  for (Contraction contraction : contractions)
    if (Choice choice = choose(contraction.op); !gradients.contains(contraction.op) && choice.weight)
      for (Value argument : sources.getFloatArguments(contraction.op->getOperand(*choice.weight)))
        if (StringRef tree = getTree(argument); !tree.empty())
          trees.insert(tree);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

bool Weights::isOfParametersAlone(Value value) const {
  return llvm::all_of(sources.getArguments(value),
                      [&](Value argument) { return parameters.contains(argument); });
}

bool Weights::readsParameter(Value value) const {
  return llvm::any_of(sources.getArguments(value),
                      [&](Value argument) { return parameters.contains(argument); });
}

/// True in an entry without gradients for a value that reads a carried argument which no entry trains.
bool Weights::readsCache(Value value) const {
  return !hasGradients && llvm::any_of(sources.getArguments(value), [&](Value argument) {
    return isCarried(argument) && !parameters.contains(argument);
  });
}

bool Weights::isPlain(Value value) const {
  return llvm::all_of(sources.getContractions(value), [&](Operation *contraction) {
    return !gradients.contains(contraction) && llvm::all_of(contraction->getOperands(), [&](Value operand) {
      return isOfParametersAlone(operand);
    });
  });
}

/// True if both values are computed from one argument.
bool Weights::shareArgument(Value a, Value b) const {
  SmallVector<Value> arguments = sources.getArguments(a);
  return llvm::any_of(sources.getArguments(b),
                      [&](Value argument) { return llvm::is_contained(arguments, argument); });
}

Weights::Choice Weights::choose(MatmulOp op) const {
  bool alone[2], plain[2], made[2];
  // Where the gradient of an input is a result, the input counts as a parameter, and its matmuls with
  // weights would be plain. Such operands share an input, as q and k do, or are both matmuls of parameters,
  // whereas a merged adapter is one operand only.
  bool share = shareArgument(op.getLhs(), op.getRhs());
  for (unsigned operand : {0, 1}) {
    Value value = op->getOperand(operand);
    made[operand] = !sources.getContractions(value).empty();
    plain[operand] = isPlain(value) && !readsCache(value) && !(made[operand] && share);
    alone[operand] = plain[operand] && isOfParametersAlone(value);
  }
  if (made[0] && plain[0] && made[1] && plain[1])
    return {std::nullopt};
  if (alone[0] != alone[1])
    return {unsigned(alone[1])};
  if (plain[0] != plain[1])
    return {unsigned(plain[1])};
  return {std::nullopt, plain[0]};
}

bool Weights::isOfWeightTree(Value value) const {
  return llvm::any_of(sources.getFloatArguments(value),
                      [&](Value argument) { return trees.contains(getTree(argument)); });
}

std::optional<unsigned> Weights::findWeight(MatmulOp op) const {
  Choice choice = choose(op);
  if (!choice.bothPlain)
    return choice.weight;
  Value lhs = op.getLhs(), rhs = op.getRhs();
  int64_t lhsRank = cast<RankedTensorType>(lhs.getType()).getRank();
  int64_t rhsRank = cast<RankedTensorType>(rhs.getType()).getRank();
  if (lhsRank != rhsRank)
    return rhsRank < lhsRank;
  if (readsParameter(lhs) != readsParameter(rhs))
    return readsParameter(rhs);
  if (readsParameter(lhs))
    return sources.getContractions(rhs).empty() || !sources.getContractions(lhs).empty();
  return isOfWeightTree(rhs) || !isOfWeightTree(lhs);
}
