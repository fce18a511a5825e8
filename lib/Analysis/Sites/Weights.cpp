// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameters from matched gradients, and weights from what operands are made of. The rules are in the header.

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

/// The operand has a gradient. Where it is a view of an argument, that is the argument's; where it is
/// computed without contractions, the gradients of the arguments are computed from it, if they are results.
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

/// True if a result of the argument's shape is computed from the product.
bool Weights::isGradientAResult(unsigned product, Value argument) const {
  Operation *terminator = body.back().getTerminator();
  return llvm::any_of(terminator->getOperands(), [&](Value result) {
    auto type = dyn_cast<ShapedType>(result.getType());
    return type && type.getShape() == cast<ShapedType>(argument.getType()).getShape() &&
           reachability.reaches(product, result);
  });
}

void Weights::collectTrainedNames(llvm::StringSet<> &names) const {
  for (Value parameter : parameters)
    if (StringRef name = getGivenName(parameter); !name.empty())
      names.insert(name);
}

void Weights::addTrainedNames(const llvm::StringSet<> &names) {
  for (Value argument : body.getArguments())
    if (isOfFloats(argument) && names.contains(getGivenName(argument)))
      parameters.insert(argument);
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

/// True for what is kept from step to step though no entry trains it, in an entry without gradients.
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

std::optional<unsigned> Weights::findWeight(MatmulOp op) const {
  bool alone[2], plain[2], trained[2], multiplied[2];
  int64_t rank[2];
  for (unsigned operand : {0, 1}) {
    Value value = op->getOperand(operand);
    plain[operand] = isPlain(value) && !readsCache(value);
    alone[operand] = plain[operand] && isOfParametersAlone(value);
    trained[operand] = readsParameter(value);
    multiplied[operand] = !sources.getContractions(value).empty();
    rank[operand] = cast<RankedTensorType>(value.getType()).getRank();
  }
  // Where the gradient of an input is a result, the input counts as a parameter, and what is computed from it
  // is plain: two such operands are q and k rather than two merged adapters.
  if (multiplied[0] && multiplied[1] && trained[0] && trained[1] && alone[0] == alone[1])
    return std::nullopt;
  if (alone[0] != alone[1])
    return alone[1];
  if (plain[0] != plain[1])
    return plain[1];
  if (!plain[0])
    return std::nullopt;
  if (rank[0] != rank[1])
    return rank[1] < rank[0];
  if (trained[0] != trained[1])
    return trained[1];
  return trained[0] && multiplied[1] && !multiplied[0] ? 0 : 1;
}
