// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matches forward products with their gradients. The header explains the rules.

#include "fp8/Analysis/BackwardMatching.h"
#include "fp8/Analysis/NewValues.h"
#include <array>

using namespace mlir;
using namespace fp8;

/// True unless both sizes are known and differ.
static bool mayHaveEqualSize(Value a, Value b) {
  auto typeA = cast<RankedTensorType>(a.getType()), typeB = cast<RankedTensorType>(b.getType());
  return !typeA.hasStaticShape() || !typeB.hasStaticShape() ||
         typeA.getNumElements() == typeB.getNumElements();
}

namespace {

/// `backward` may be a gradient of `forward`: of operand `1 - shared`.
struct Candidate {
  unsigned forward, backward;
  unsigned shared;             ///< the operand of `forward` that both read
  unsigned gradientOperand;    ///< the operand of `backward` that is the gradient dy
  unsigned contradictions = 0; ///< see countContradictions
};

/// Two candidates that share their gradient, or one.
struct Match {
  SmallVector<Candidate, 2> candidates;
  /// Matches are settled in the order of these keys.
  std::array<int64_t, 4> order;
};

class BackwardMatcher {
public:
  BackwardMatcher(FunctionOpInterface function, const Reachability &reachability, const Reachability &direct,
                  MutableArrayRef<Contraction> contractions)
      : function(function), reachability(reachability), direct(direct), contractions(contractions) {
    for (auto [i, contraction] : llvm::enumerate(contractions))
      for (unsigned operand : {0, 1})
        readers[contraction.operands[operand].tensor].push_back({unsigned(i), operand});
    namesTell = doNamesTell();
  }

  void run() {
    collectCandidates();
    dropForeignCandidates();
    countContradictions();
    settle(collectTriples(candidates));
    while (settle(collectTriplesOfTangents())) {
    }
    // A gradient that is found shows that this is training, and makes others plausible.
    while (settle(collectPairs())) {
    }
    completeWeightGradients();
    while (addFurtherGradients() || settle(collectRecomputed())) {
    }
    if (!namesTell)
      noteDoubts();
  }

private:
  void collectCandidates();
  void dropForeignCandidates();
  std::vector<Match> collectTriples(ArrayRef<Candidate> candidates) const;
  std::vector<Match> collectTriplesOfTangents() const;
  std::vector<Match> collectPairs() const;
  bool settle(std::vector<Match> matches);
  void completeWeightGradients();
  bool addFurtherGradients();
  std::vector<Match> collectRecomputed() const;
  bool haveSameSources(Value a, Value b) const;
  bool readsRecomputed(const Candidate &candidate) const;
  void noteDoubts();

  bool doNamesTell() const;
  bool isCandidate(const Candidate &candidate) const;
  bool isTraining() const;
  bool haveOneName(const Candidate &candidate) const;
  Value getGradient(const Candidate &candidate) const;
  bool isTangent(const Candidate &candidate) const;
  bool repeatsForward(const Contraction &product) const;
  bool isPlausiblePair(const Candidate &candidate) const;
  bool isGradientAResult(const Candidate &candidate) const;
  void countContradictions();
  Match makeMatch(ArrayRef<Candidate> candidates) const;
  void assign(const Candidate &candidate);

  FunctionOpInterface function;
  const Reachability &reachability, &direct;
  MutableArrayRef<Contraction> contractions;
  DenseMap<unsigned, SmallVector<std::pair<unsigned, unsigned>>> readers;
  std::vector<Candidate> candidates;
  std::vector<Candidate> unreached; ///< whose forward product does not reach dy
  bool namesTell;                   ///< names mark the backward code
};

} // namespace

/// True if names mark the backward code: that of this function or, where all its products have names, that of
/// another. An evaluation has no backward code that they could mark.
bool BackwardMatcher::doNamesTell() const {
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

/// The operand of the backward product that is dy.
Value BackwardMatcher::getGradient(const Candidate &candidate) const {
  return contractions[candidate.backward].op->getOperand(candidate.gradientOperand);
}

bool BackwardMatcher::isCandidate(const Candidate &candidate) const {
  const Contraction &forward = contractions[candidate.forward], &backward = contractions[candidate.backward];
  Value gradient = backward.op->getOperand(candidate.gradientOperand);
  return haveOppositeUses(forward.operands[candidate.shared],
                          backward.operands[1 - candidate.gradientOperand]) &&
         mayHaveEqualSize(gradient, forward.op->getResult(0)) &&
         mayHaveEqualSize(backward.result, forward.op->getOperand(1 - candidate.shared));
}

void BackwardMatcher::collectCandidates() {
  for (unsigned f = 0; f < contractions.size(); ++f)
    for (unsigned shared : {0, 1})
      for (auto [b, position] : readers[contractions[f].operands[shared].tensor])
        if (Candidate candidate{f, b, shared, 1 - position}; b != f && isCandidate(candidate)) {
          bool reached = reachability.reaches(f, contractions[b].op->getOperand(1 - position));
          if (reached || f < b)
            (reached ? candidates : unreached).push_back(candidate);
        }
}

/// A weight that is carried has its gradients in its new value: what goes into another
/// one's instead is no gradient of this one.
void BackwardMatcher::dropForeignCandidates() {
  llvm::SmallDenseMap<Value, llvm::SmallPtrSet<Operation *, 4>> made;
  auto parameterOf = [&](const Candidate &candidate) {
    return getParameter(contractions[candidate.forward].op->getOperand(1 - candidate.shared));
  };
  llvm::SmallDenseSet<Value> withGradient;
  llvm::SmallPtrSet<Operation *, 16> owned;
  for (const Candidate &candidate : candidates) {
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
  llvm::erase_if(candidates, [&](const Candidate &candidate) {
    Value parameter = parameterOf(candidate);
    Operation *backward = contractions[candidate.backward].op;
    if (!parameter || (!owned.contains(backward) && !withGradient.contains(parameter)))
      return false;
    return !made[parameter].contains(backward);
  });
}

/// Counts the gradients that dy is made of, though they are none of what the forward product
/// is read for: behind attention's product of q and k, the gradient of q is none of k.
void BackwardMatcher::countContradictions() {
  DenseMap<unsigned, SmallVector<Value>> differentiated; // operands, by their gradients
  for (const Candidate &candidate : candidates)
    differentiated[candidate.backward].push_back(
        contractions[candidate.forward].op->getOperand(1 - candidate.shared));
  for (Candidate &candidate : candidates) {
    for (unsigned source : direct.getSources(getGradient(candidate)).set_bits()) {
      auto operands = differentiated.find(source);
      candidate.contradictions += source != candidate.forward && operands != differentiated.end() &&
                                  llvm::none_of(operands->second, [&](Value operand) {
                                    return direct.reaches(candidate.forward, operand);
                                  });
    }
  }
}

/// True if names say that one product is a gradient of the other one, or of its like.
bool BackwardMatcher::haveOneName(const Candidate &candidate) const {
  const NameStack &forward = contractions[candidate.forward].name;
  const NameStack &backward = contractions[candidate.backward].name;
  return !forward.site.empty() && forward.site == backward.site && backward.backward;
}

/// Products of one name first, and those that other products do not contradict. Then, of
/// triples, the nearest products; of pairs, the last ones: what turns out to be forward is no
/// gradient of anything before it.
Match BackwardMatcher::makeMatch(ArrayRef<Candidate> candidates) const {
  int64_t sameNames = 0, contradictions = 0, distance = 0;
  for (const Candidate &candidate : candidates) {
    sameNames += haveOneName(candidate);
    contradictions += candidate.contradictions;
    distance += candidate.backward - candidate.forward;
  }
  const Candidate &last = candidates.back();
  if (candidates.size() > 1)
    return {SmallVector<Candidate, 2>(candidates), {-sameNames, contradictions, distance, last.forward}};
  return {SmallVector<Candidate, 2>(candidates),
          {-sameNames, contradictions, -int64_t(last.backward), -int64_t(last.forward)}};
}

std::vector<Match> BackwardMatcher::collectTriples(ArrayRef<Candidate> candidates) const {
  std::vector<Match> triples;
  // Candidates are sorted by their forward product.
  for (size_t begin = 0, end; begin < candidates.size(); begin = end) {
    for (end = begin; end < candidates.size() && candidates[end].forward == candidates[begin].forward;)
      ++end;
    ArrayRef<Candidate> group = candidates.slice(begin, end - begin);
    for (const Candidate &a : group)
      for (const Candidate &b : group)
        if (a.shared == 0 && b.shared == 1 && a.backward != b.backward &&
            contractions[a.backward].operands[a.gradientOperand].tensor ==
                contractions[b.backward].operands[b.gradientOperand].tensor)
          triples.push_back(makeMatch({a, b}));
  }
  return triples;
}

/// True if nothing reaches dy but gradients.
bool BackwardMatcher::isTangent(const Candidate &candidate) const {
  llvm::BitVector others(contractions.size());
  for (unsigned i = 0; i < contractions.size(); ++i)
    others[i] = !contractions[i].isBackward();
  return !reachability.reachesAny(others, getGradient(candidate));
}

/// Where dy comes from outside (the loss is computed elsewhere, or is a sum), no forward result
/// reaches it: nothing does but gradients. Two that share it, one of them a result, are known
/// all the same, where they come after the forward product.
std::vector<Match> BackwardMatcher::collectTriplesOfTangents() const {
  std::vector<Match> triples = collectTriples(unreached);
  llvm::erase_if(triples, [&](const Match &match) {
    const Candidate &first = match.candidates.front();
    return !isTangent(first) ||
           llvm::none_of(match.candidates, [&](const Candidate &c) { return isGradientAResult(c); }) ||
           (namesTell && !contractions[first.backward].name.backward);
  });
  return triples;
}

/// True if the gradient reaches a result of the function that has the type of the
/// parameter it is the gradient of, or replaces it in the next step.
bool BackwardMatcher::isGradientAResult(const Candidate &candidate) const {
  auto parameter = dyn_cast_if_present<BlockArgument>(
      getParameter(contractions[candidate.forward].op->getOperand(1 - candidate.shared)));
  if (!parameter)
    return false;
  Operation *terminator = function->getRegion(0).back().getTerminator();
  return llvm::any_of(terminator->getOperands(), [&](Value result) {
    return result.getType() == parameter.getType() && reachability.reaches(candidate.backward, result);
  });
}

/// True if some product has both gradients, or a gradient that is one by its result.
bool BackwardMatcher::isTraining() const {
  return llvm::any_of(contractions, [](const Contraction &c) { return c.isForward(); }) ||
         llvm::any_of(candidates, [&](const Candidate &candidate) { return isGradientAResult(candidate); });
}

/// True if a forward product computes the same: that is computed again, before or behind `product`.
bool BackwardMatcher::repeatsForward(const Contraction &product) const {
  return llvm::any_of(contractions, [&](const Contraction &other) {
    return other.first == product.first && other.isForward();
  });
}

/// Pairs need more than dataflow: a name that says so or, where no name says anything, that
/// the function trains.
bool BackwardMatcher::isPlausiblePair(const Candidate &candidate) const {
  const Contraction &forward = contractions[candidate.forward], &backward = contractions[candidate.backward];
  if (forward.isBackward() || backward.isMatched() || repeatsForward(backward))
    return false;
  return !namesTell || (backward.name.backward && !forward.name.backward);
}

std::vector<Match> BackwardMatcher::collectPairs() const {
  std::vector<Match> pairs;
  if (!namesTell && !isTraining())
    return pairs;
  for (const Candidate &candidate : candidates)
    if (isPlausiblePair(candidate))
      pairs.push_back(makeMatch(candidate));
  for (const Candidate &candidate : unreached)
    if (haveOneName(candidate) && isPlausiblePair(candidate) && isTangent(candidate))
      pairs.push_back(makeMatch(candidate));
  return pairs;
}

void BackwardMatcher::assign(const Candidate &candidate) {
  Contraction &backward = contractions[candidate.backward];
  backward.forward = candidate.forward;
  backward.gradientOperand = candidate.gradientOperand;
  backward.differentiated = 1 - candidate.shared;
  int &gradient = contractions[candidate.forward].gradients[1 - candidate.shared];
  if (gradient == Contraction::kNone)
    gradient = candidate.backward;
}

/// Assigns matches in order as long as their products are free; false if none is.
bool BackwardMatcher::settle(std::vector<Match> matches) {
  bool assigned = false;
  llvm::sort(matches, [](const Match &a, const Match &b) { return a.order < b.order; });
  for (const Match &match : matches) {
    bool free = llvm::all_of(match.candidates, [&](const Candidate &candidate) {
      const Contraction &forward = contractions[candidate.forward];
      return !contractions[candidate.backward].isMatched() && !forward.isBackward() &&
             forward.gradients[1 - candidate.shared] == Contraction::kNone;
    });
    if (free)
      llvm::for_each(match.candidates, [&](const Candidate &candidate) { assign(candidate); });
    assigned |= free;
  }
  return assigned;
}

/// A recomputed activation is another value than the one that the forward product read:
/// its weight gradient is known by the gradient that it shares with the other one.
void BackwardMatcher::completeWeightGradients() {
  for (unsigned f = 0; f < contractions.size(); ++f) {
    Contraction &forward = contractions[f];
    for (unsigned known : {0, 1}) {
      unsigned missing = 1 - known;
      if (forward.gradients[known] == Contraction::kNone || forward.gradients[missing] != Contraction::kNone)
        continue;
      Contraction &sibling = contractions[forward.gradients[known]];
      const TensorUse &gradient = sibling.operands[sibling.gradientOperand];
      for (auto [b, position] : readers[gradient.tensor]) {
        Contraction &backward = contractions[b];
        if (!backward.isMatched() && backward.name.backward == namesTell &&
            haveOppositeUses(gradient, backward.operands[position]) &&
            mayHaveEqualSize(backward.result, forward.op->getOperand(missing)) &&
            mayHaveEqualSize(backward.op->getOperand(1 - position), forward.op->getOperand(known)))
          assign({f, b, known, position});
      }
    }
  }
}

/// Gradients of gradients give a product second gradients, which the program adds to the first ones: they
/// read the same, dy depends on gradients, and a parameter is read or has the sum as its gradient. False if
/// there are none.
bool BackwardMatcher::addFurtherGradients() {
  llvm::BitVector gradients(contractions.size());
  for (unsigned i = 0; i < contractions.size(); ++i)
    gradients[i] = contractions[i].isBackward();
  std::vector<Match> matches;
  for (const Candidate &candidate : candidates) {
    Operation *forward = contractions[candidate.forward].op;
    bool readsParameter = getParameter(forward->getOperand(candidate.shared)) != nullptr;
    if (contractions[candidate.forward].gradients[1 - candidate.shared] != Contraction::kNone &&
        isPlausiblePair(candidate) && reachability.reachesAny(gradients, getGradient(candidate)) &&
        (readsParameter || isGradientAResult(candidate)))
      matches.push_back(makeMatch(candidate));
  }
  llvm::sort(matches, [](const Match &a, const Match &b) { return a.order < b.order; });
  for (const Match &match : matches)
    if (const Candidate &candidate = match.candidates.front(); isPlausiblePair(candidate))
      assign(candidate);
  return !matches.empty();
}

/// True if both values are computed from the same products, with no other one between, or from none.
bool BackwardMatcher::haveSameSources(Value a, Value b) const {
  auto getFirsts = [&](Value value) {
    llvm::BitVector firsts(contractions.size());
    for (unsigned source : direct.getSources(value).set_bits())
      firsts.set(contractions[source].first);
    return firsts;
  };
  return getFirsts(a) == getFirsts(b);
}

/// True for a gradient of a weight but for the activation, which is not the one that `forward` reads
/// but may be that one computed by other operations.
bool BackwardMatcher::readsRecomputed(const Candidate &candidate) const {
  const Contraction &forward = contractions[candidate.forward], &backward = contractions[candidate.backward];
  Value activation = forward.op->getOperand(candidate.shared);
  Value again = backward.op->getOperand(1 - candidate.gradientOperand);
  return reachability.reaches(candidate.forward, getGradient(candidate)) &&
         !reachability.reaches(candidate.forward, again) && !getParameter(activation) &&
         !getParameter(again) && haveSameSources(activation, again) && mayHaveEqualSize(activation, again) &&
         mayHaveEqualSize(getGradient(candidate), forward.op->getResult(0)) &&
         mayHaveEqualSize(backward.result, forward.op->getOperand(1 - candidate.shared));
}

/// Gradients of weights that nothing else is found for: they end in the weight's new value, or in a
/// result of its type, with no other product between.
std::vector<Match> BackwardMatcher::collectRecomputed() const {
  std::vector<Match> matches;
  for (unsigned f = 0; f < contractions.size(); ++f)
    for (unsigned weight : {0, 1}) {
      Value parameter = getParameter(contractions[f].op->getOperand(weight));
      if (!parameter || contractions[f].gradients[weight] != Contraction::kNone)
        continue;
      llvm::SmallPtrSet<Operation *, 4> ends = findProductsOfGradient(parameter);
      for (unsigned b = 0; b < contractions.size(); ++b)
        for (unsigned gradientOperand : {0, 1})
          if (Candidate candidate{f, b, 1 - weight, gradientOperand};
              ends.contains(contractions[b].op) && isPlausiblePair(candidate) && readsRecomputed(candidate))
            matches.push_back(makeMatch(candidate));
    }
  return matches;
}

/// A gradient of the result that comes from outside, and one product with it: as well another forward
/// product that reads the same.
void BackwardMatcher::noteDoubts() {
  for (const Candidate &candidate : unreached)
    if (isPlausiblePair(candidate) && !contractions[candidate.backward].isForward() && isTangent(candidate) &&
        isGradientAResult(candidate))
      contractions[candidate.backward].maybeGradientOf = candidate.forward;
}

void fp8::matchBackward(FunctionOpInterface function, const Reachability &reachability,
                        const Reachability &direct, MutableArrayRef<Contraction> contractions) {
  BackwardMatcher(function, reachability, direct, contractions).run();
}
