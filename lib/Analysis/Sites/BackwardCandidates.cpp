// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects the candidates from who reads what, and answers from dataflow and names.

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
                                       const Reachability &direct, ArrayRef<Contraction> contractions)
    : function(function), reachability(reachability), direct(direct), contractions(contractions),
      namesTell(findWhetherNamesTell()) {
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
  Value gradient = backward.op->getOperand(candidate.gradientOperand);
  return haveOppositeUses(forward.operands[candidate.shared],
                          backward.operands[1 - candidate.gradientOperand]) &&
         mayHaveEqualSize(gradient, forward.op->getResult(0)) &&
         mayHaveEqualSize(backward.result, forward.op->getOperand(1 - candidate.shared));
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

/// A weight that is carried has its gradients in its new value: what goes into another
/// one's instead is no gradient of this one.
void BackwardCandidates::dropForeign() {
  llvm::SmallDenseMap<Value, llvm::SmallPtrSet<Operation *, 4>> made;
  auto parameterOf = [&](const Candidate &candidate) {
    return getParameter(contractions[candidate.forward].op->getOperand(1 - candidate.shared));
  };
  llvm::SmallDenseSet<Value> withGradient;
  llvm::SmallPtrSet<Operation *, 16> owned;
  for (const Candidate &candidate : reached) {
    Value parameter = parameterOf(candidate);
    if (!parameter || !isCarried(parameter))
      continue;
    auto [it, isNew] = made.try_emplace(parameter);
    if (isNew)
      it->second = findProductsOfNewValue(cast<BlockArgument>(parameter));
    Operation *backward = contractions[candidate.backward].op;
    if (!it->second.contains(backward))
      continue;
    withGradient.insert(parameter);
    owned.insert(backward);
  }
  llvm::erase_if(reached, [&](const Candidate &candidate) {
    Value parameter = parameterOf(candidate);
    Operation *backward = contractions[candidate.backward].op;
    if (!parameter || (!owned.contains(backward) && !withGradient.contains(parameter)))
      return false;
    return !made[parameter].contains(backward);
  });
}

/// Counts the gradients that dy is made of, though they are none of what the forward product
/// is read for: behind attention's product of q and k, the gradient of q is none of k.
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
// What is known of a candidate
//===----------------------------------------------------------------------===//

ArrayRef<std::pair<unsigned, unsigned>> BackwardCandidates::getReaders(unsigned tensor) const {
  auto it = readers.find(tensor);
  return it == readers.end() ? ArrayRef<std::pair<unsigned, unsigned>>() : it->second;
}

Value BackwardCandidates::getGradient(const Candidate &candidate) const {
  return contractions[candidate.backward].op->getOperand(candidate.gradientOperand);
}

bool BackwardCandidates::findWhetherNamesTell() const {
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

bool BackwardCandidates::isTangent(const Candidate &candidate) const {
  return !reachability.reachesAny(findGradients().flip(), getGradient(candidate));
}

bool BackwardCandidates::isGradientOfGradient(const Candidate &candidate) const {
  return reachability.reachesAny(findGradients(), getGradient(candidate));
}

bool BackwardCandidates::isGradientAResult(const Candidate &candidate) const {
  auto parameter = dyn_cast_if_present<BlockArgument>(
      getParameter(contractions[candidate.forward].op->getOperand(1 - candidate.shared)));
  if (!parameter)
    return false;
  Operation *terminator = function->getRegion(0).back().getTerminator();
  return llvm::any_of(terminator->getOperands(), [&](Value result) {
    return result.getType() == parameter.getType() && reachability.reaches(candidate.backward, result);
  });
}

/// True if a forward product computes the same: that is computed again, before or behind `product`.
bool BackwardCandidates::repeatsForward(const Contraction &product) const {
  return llvm::any_of(contractions, [&](const Contraction &other) {
    return other.first == product.first && other.isForward();
  });
}

bool BackwardCandidates::isPlausiblePair(const Candidate &candidate) const {
  const Contraction &forward = contractions[candidate.forward], &backward = contractions[candidate.backward];
  if (forward.isBackward() || backward.isMatched() || repeatsForward(backward))
    return false;
  return !namesTell || (backward.name.backward && !forward.name.backward);
}

/// True if both values are computed from the same products, with no other one between, or from none.
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
