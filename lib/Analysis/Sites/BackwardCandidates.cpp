// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects the candidates from the readers of tensors, and answers questions about them from dataflow and
// names.

#include "BackwardCandidates.h"
#include "fp8/Analysis/Sites/NewValues.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

bool fp8::detail::mayHaveEqualSize(Value a, Value b) {
  auto typeA = cast<RankedTensorType>(a.getType()), typeB = cast<RankedTensorType>(b.getType());
  return !typeA.hasStaticShape() || !typeB.hasStaticShape() ||
         typeA.getNumElements() == typeB.getNumElements();
}

BackwardCandidates::BackwardCandidates(FunctionOpInterface function, const Reachability &reachability,
                                       const Reachability &direct, const ValueSources &values,
                                       ArrayRef<Contraction> contractions)
    : function(function), reachability(reachability), direct(direct), values(values),
      contractions(contractions), marked(findWhetherNamesMarkBackward()) {
  for (auto [i, contraction] : llvm::enumerate(contractions))
    for (unsigned operand : {0, 1})
      readers[contraction.operands[operand].tensor].push_back({unsigned(i), operand});
  collect();
  dropForeign();
  countContradictions();
}

//===----------------------------------------------------------------------===//
// Collecting
//===----------------------------------------------------------------------===//

bool BackwardCandidates::isCandidate(const Candidate &candidate) const {
  const Contraction &forward = contractions[candidate.forward], &backward = contractions[candidate.backward];
  if (!haveOppositeUses(forward.operands[candidate.shared], backward.operands[1 - candidate.gradientOperand]))
    return isGroupedCandidate(candidate);
  return mayHaveEqualSize(getGradient(candidate), forward.op->getResult(0)) &&
         mayHaveEqualSize(backward.result, forward.op->getOperand(1 - candidate.shared));
}

/// The gradients of a grouped matmul: it sums over groups (experts), of which a mask selects one for each
/// row. dy is repeated for every group, and masked; the gradient of the activation is summed over the groups.
bool BackwardCandidates::isGroupedCandidate(const Candidate &candidate) const {
  const Contraction &forward = contractions[candidate.forward], &backward = contractions[candidate.backward];
  std::optional<GroupUse> use =
      matchGroupedUses(forward.operands[candidate.shared], backward.operands[1 - candidate.gradientOperand]);
  if (!use)
    return false;
  auto getType = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  RankedTensorType dy = getType(getGradient(candidate)), y = getType(forward.op->getResult(0)),
                   made = getType(backward.result),
                   operand = getType(forward.op->getOperand(1 - candidate.shared));
  if (!llvm::all_of(ArrayRef{dy, y, made, operand}, [](RankedTensorType t) { return t.hasStaticShape(); }) ||
      y.getNumElements() == 0)
    return false;
  int64_t groups = dy.getNumElements() / y.getNumElements();
  return groups > 1 && dy.getNumElements() == groups * y.getNumElements() &&
         operand.getNumElements() == made.getNumElements() * (*use == GroupUse::summed ? groups : 1);
}

void BackwardCandidates::collect() {
  for (unsigned f = 0; f < contractions.size(); ++f)
    for (unsigned shared : {0, 1})
      for (auto [b, position] : readers[contractions[f].operands[shared].tensor])
        if (Candidate candidate{f, b, shared, 1 - position}; b != f && isCandidate(candidate)) {
          bool isReached = reachability.reaches(f, contractions[b].op->getOperand(1 - position));
          if (isReached || f < b)
            (isReached ? reached : unreached).push_back(candidate);
        }
}

/// Drops candidates that are gradients of other arguments. The gradients of a carried weight go into its new
/// value, and those of the arguments that a weight is computed from into theirs: a matmul that goes into the
/// new value of another argument instead is no gradient of this one.
void BackwardCandidates::dropForeign() {
  llvm::SmallDenseMap<Value, llvm::SmallPtrSet<Operation *, 4>> made;
  auto getCarried = [&](const Candidate &candidate) {
    SmallVector<Value> arguments = getDifferentiatedArguments(candidate.forward, 1 - candidate.shared);
    return llvm::all_of(arguments, isCarried) ? arguments : SmallVector<Value>();
  };
  auto goesInto = [&](const Candidate &candidate, Value argument) {
    auto [it, isNew] = made.try_emplace(argument);
    if (isNew)
      it->second = findMatmulsOfNewValue(cast<BlockArgument>(argument));
    return it->second.contains(contractions[candidate.backward].op);
  };
  llvm::SmallDenseSet<Value> withGradient;
  llvm::SmallPtrSet<Operation *, 16> owned;
  for (const Candidate &candidate : reached)
    for (Value argument : getCarried(candidate))
      if (goesInto(candidate, argument)) {
        withGradient.insert(argument);
        owned.insert(contractions[candidate.backward].op);
      }
  llvm::erase_if(reached, [&](const Candidate &candidate) {
    SmallVector<Value> arguments = getCarried(candidate);
    bool isOwned = owned.contains(contractions[candidate.backward].op);
    return llvm::any_of(arguments,
                        [&](Value argument) { return isOwned || withGradient.contains(argument); }) &&
           llvm::none_of(arguments, [&](Value argument) { return goesInto(candidate, argument); });
  });
}

/// Counts the gradients that dy is made of though the forward result is no operand that they differentiate.
/// An example is s = q · k with k = x · wk: the gradient dq has the form that dk has, and so dq · x has the
/// form of a gradient of wk, but dq differentiates q, which k does not reach.
void BackwardCandidates::countContradictions() {
  DenseMap<unsigned, SmallVector<Value>> differentiated; // operands, by their gradients
  for (const Candidate &candidate : reached)
    differentiated[candidate.backward].push_back(
        contractions[candidate.forward].op->getOperand(1 - candidate.shared));
  for (Candidate &candidate : reached) {
    for (unsigned source : direct.getSources(getGradient(candidate)).set_bits()) {
      auto operands = differentiated.find(source);
      candidate.contradictions += source != candidate.forward && operands != differentiated.end() &&
                                  llvm::none_of(operands->second, [&](Value operand) {
                                    return direct.reaches(candidate.forward, operand);
                                  });
    }
  }
}

//===----------------------------------------------------------------------===//
// Questions about a candidate
//===----------------------------------------------------------------------===//

ArrayRef<std::pair<unsigned, unsigned>> BackwardCandidates::getReaders(unsigned tensor) const {
  auto it = readers.find(tensor);
  return it == readers.end() ? ArrayRef<std::pair<unsigned, unsigned>>() : it->second;
}

Value BackwardCandidates::getGradient(const Candidate &candidate) const {
  return contractions[candidate.backward].op->getOperand(candidate.gradientOperand);
}

SmallVector<Value> BackwardCandidates::getDifferentiatedArguments(unsigned forward, unsigned operand) const {
  Value value = contractions[forward].op->getOperand(operand);
  if (Value argument = getParameter(value))
    return {argument};
  if (!values.getContractions(value).empty())
    return {};
  // Gathered or masked rows differ in form from the tensor that they are taken from.
  SmallVector<Value> arguments = values.getFloatArguments(value);
  if (arguments.size() != values.getArguments(value).size())
    return {};
  // A single argument beside a parameter may as well be an input that a weight multiplies in two ways.
  if (arguments.size() < 2 && getParameter(contractions[forward].op->getOperand(1 - operand)))
    return {};
  return arguments;
}

bool BackwardCandidates::findWhetherNamesMarkBackward() const {
  if (llvm::any_of(contractions, [](const Contraction &c) { return c.name.backward; }))
    return true;
  if (llvm::any_of(contractions, [](const Contraction &c) { return c.name.site.empty(); }))
    return false;
  auto module = function->getParentOfType<ModuleOp>();
  return module && module
                       .walk([](MatmulOp matmul) {
                         return parseNameStack(matmul.getLoc()).backward ? WalkResult::interrupt()
                                                                         : WalkResult::advance();
                       })
                       .wasInterrupted();
}

bool BackwardCandidates::haveOneName(const Candidate &candidate) const {
  const NameStack &forward = contractions[candidate.forward].name;
  const NameStack &backward = contractions[candidate.backward].name;
  return !forward.site.empty() && forward.site == backward.site && backward.backward;
}

llvm::BitVector BackwardCandidates::findGradients() const {
  llvm::BitVector gradients(contractions.size());
  for (unsigned i = 0; i < contractions.size(); ++i)
    gradients[i] = contractions[i].isBackward();
  return gradients;
}

bool BackwardCandidates::isOuterCotangent(const Candidate &candidate) const {
  return !reachability.reachesAny(findGradients().flip(), getGradient(candidate));
}

bool BackwardCandidates::isGradientOfGradient(const Candidate &candidate) const {
  return reachability.reachesAny(findGradients(), getGradient(candidate));
}

bool BackwardCandidates::isGradientAResult(const Candidate &candidate) const {
  Operation *terminator = function->getRegion(0).back().getTerminator();
  return llvm::any_of(
      getDifferentiatedArguments(candidate.forward, 1 - candidate.shared), [&](Value argument) {
        return isa<BlockArgument>(argument) && llvm::any_of(terminator->getOperands(), [&](Value result) {
                 return result.getType() == argument.getType() &&
                        reachability.reaches(candidate.backward, result);
               });
      });
}

/// True if a forward matmul, before or behind `matmul`, computes the same: one of the two is a
/// recomputation.
bool BackwardCandidates::repeatsForward(const Contraction &matmul) const {
  return llvm::any_of(contractions, [&](const Contraction &other) {
    return other.first == matmul.first && other.isForward();
  });
}

bool BackwardCandidates::isPlausiblePair(const Candidate &candidate) const {
  const Contraction &forward = contractions[candidate.forward], &backward = contractions[candidate.backward];
  if (forward.isBackward() || backward.isMatched() || repeatsForward(backward))
    return false;
  return !marked || (backward.name.backward && !forward.name.backward);
}

/// True if both values are computed from the same matmuls, with no other one between, or from none.
bool BackwardCandidates::haveSameSources(Value a, Value b) const {
  auto getFirsts = [&](Value value) {
    llvm::BitVector firsts(contractions.size());
    for (unsigned source : direct.getSources(value).set_bits())
      firsts.set(contractions[source].first);
    return firsts;
  };
  return getFirsts(a) == getFirsts(b);
}

bool BackwardCandidates::readsRecomputed(const Candidate &candidate) const {
  const Contraction &forward = contractions[candidate.forward], &backward = contractions[candidate.backward];
  Value activation = forward.op->getOperand(candidate.shared);
  Value again = backward.op->getOperand(1 - candidate.gradientOperand);
  return reachability.reaches(candidate.forward, getGradient(candidate)) &&
         !reachability.reaches(candidate.forward, again) && !getParameter(activation) &&
         !getParameter(again) && haveSameSources(activation, again) && mayHaveEqualSize(activation, again) &&
         mayHaveEqualSize(getGradient(candidate), forward.op->getResult(0)) &&
         mayHaveEqualSize(backward.result, forward.op->getOperand(1 - candidate.shared));
}
