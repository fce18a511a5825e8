// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matches forward matmuls with their gradients, by the rules of a table. The header says what a
// gradient looks like.

#include "fp8/Analysis/Sites/BackwardMatching.h"
#include "BackwardCandidates.h"
#include "LaterGradients.h"
#include <array>

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

namespace {

/// Two candidates that share their gradient, or one.
struct Match {
  SmallVector<Candidate, 2> candidates;
  /// Matches are settled in the order of these keys.
  std::array<int64_t, 4> order;
};

class BackwardMatcher {
public:
  BackwardMatcher(const BackwardCandidates &candidates, MutableArrayRef<Contraction> contractions)
      : candidates(candidates), contractions(contractions) {}

  /// Applies the rules, round by round: the first rule of a round that finds something starts the round
  /// again.
  void run();

private:
  struct Rule;
  static const Rule kRules[];

  bool matchBothGradients();
  bool matchBothGradientsOfOuterCotangent();
  bool matchOneGradient();
  bool matchWeightGradientBySibling();
  bool matchSecondGradient();
  bool matchGradientInNewValue();
  bool applyRound(ArrayRef<Rule> round);

  std::vector<Match> collectTriples(ArrayRef<Candidate> sorted) const;
  std::vector<Match> collectTriplesOfOuterCotangents() const;
  std::vector<Match> collectPairs() const;
  Match makeMatch(ArrayRef<Candidate> members) const;
  std::vector<Match> makeMatches(ArrayRef<Candidate> singles) const;
  bool isTraining() const;
  bool settle(std::vector<Match> matches);
  void assign(const Candidate &candidate);
  void noteDoubts();

  const BackwardCandidates &candidates;
  MutableArrayRef<Contraction> contractions;
  StringRef rule; ///< that is being applied
};

/// A rule finds gradients of matmuls that are not matched yet, and returns whether it found any.
struct BackwardMatcher::Rule {
  unsigned round;
  StringLiteral name;
  StringLiteral says; ///< of a matmul y = x · w, its gradients dx = dy · w and dw = x · dy
  bool (BackwardMatcher::*apply)();
};

} // namespace

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

const BackwardMatcher::Rule BackwardMatcher::kRules[] = {
    {1, "both-gradients", "two matmuls of both forms that share a dy which y reaches are dx and dw",
     &BackwardMatcher::matchBothGradients},
    {2, "both-gradients-of-outer-cotangent",
     "two matmuls of both forms behind y that share a dy which no forward matmul reaches (an argument, as "
     "in a "
     "vector-Jacobian product, or a constant) are dx and dw, if one of them is a result",
     &BackwardMatcher::matchBothGradientsOfOuterCotangent},
    {3, "one-gradient",
     "one matmul of either form is dx (of a frozen weight) or dw (in the first layer), if names mark it as "
     "backward "
     "code or, where names mark none, if the function trains",
     &BackwardMatcher::matchOneGradient},
    {4, "weight-gradient-by-sibling",
     "where dx is known, the matmul of its dy with an activation that is computed again is dw",
     &BackwardMatcher::matchWeightGradientBySibling},
    {5, "second-gradient",
     "one matmul of either form whose dy depends on gradients is added to the dx or dw that y has already, "
     "as "
     "gradients of gradients are",
     &BackwardMatcher::matchSecondGradient},
    {5, "gradient-in-new-value",
     "a matmul with an activation that other operations compute again is dw, if it ends in the new value of "
     "w or in "
     "a result of its type with no other matmul between",
     &BackwardMatcher::matchGradientInNewValue},
};

bool BackwardMatcher::applyRound(ArrayRef<Rule> round) {
  return llvm::any_of(round, [&](const Rule &candidate) {
    rule = candidate.name;
    return (this->*candidate.apply)();
  });
}

void BackwardMatcher::run() {
  for (ArrayRef<Rule> rules(kRules); !rules.empty();) {
    ArrayRef<Rule> round =
        rules.take_while([&](const Rule &candidate) { return candidate.round == rules.front().round; });
    while (applyRound(round)) {
    }
    rules = rules.drop_front(round.size());
  }
  if (!candidates.namesMarkBackward())
    noteDoubts();
}

bool BackwardMatcher::matchBothGradients() { return settle(collectTriples(candidates.getReached())); }

bool BackwardMatcher::matchBothGradientsOfOuterCotangent() {
  return settle(collectTriplesOfOuterCotangents());
}

bool BackwardMatcher::matchOneGradient() { return settle(collectPairs()); }

bool BackwardMatcher::matchWeightGradientBySibling() {
  bool assigned = false;
  for (const Candidate &candidate : findWeightGradientsBySibling(candidates))
    if (!contractions[candidate.backward].isMatched()) {
      assign(candidate);
      assigned = true;
    }
  return assigned;
}

bool BackwardMatcher::matchSecondGradient() {
  std::vector<Match> matches = makeMatches(findSecondGradients(candidates));
  llvm::sort(matches, [](const Match &a, const Match &b) { return a.order < b.order; });
  for (const Match &match : matches)
    if (const Candidate &candidate = match.candidates.front(); candidates.isPlausiblePair(candidate))
      assign(candidate);
  return !matches.empty();
}

bool BackwardMatcher::matchGradientInNewValue() {
  return settle(makeMatches(findGradientsOfRecomputed(candidates)));
}

//===----------------------------------------------------------------------===//
// Matches and their order
//===----------------------------------------------------------------------===//

/// Matmuls of one name come first, then those that other matmuls do not contradict; then, of triples, the
/// nearest matmuls, and of pairs the last ones, since a matmul that turns out to be forward is no gradient
/// of an earlier one.
Match BackwardMatcher::makeMatch(ArrayRef<Candidate> members) const {
  int64_t sameNames = 0, contradictions = 0, distance = 0;
  for (const Candidate &member : members) {
    sameNames += candidates.haveOneName(member);
    contradictions += member.contradictions;
    distance += member.backward - member.forward;
  }
  const Candidate &last = members.back();
  if (members.size() > 1)
    return {SmallVector<Candidate, 2>(members), {-sameNames, contradictions, distance, last.forward}};
  return {SmallVector<Candidate, 2>(members),
          {-sameNames, contradictions, -int64_t(last.backward), -int64_t(last.forward)}};
}

std::vector<Match> BackwardMatcher::makeMatches(ArrayRef<Candidate> singles) const {
  std::vector<Match> matches;
  for (const Candidate &candidate : singles)
    matches.push_back(makeMatch(candidate));
  return matches;
}

/// Collects pairs of candidates with one forward matmul, which `sorted` is sorted by.
std::vector<Match> BackwardMatcher::collectTriples(ArrayRef<Candidate> sorted) const {
  std::vector<Match> triples;
  for (size_t begin = 0, end; begin < sorted.size(); begin = end) {
    for (end = begin; end < sorted.size() && sorted[end].forward == sorted[begin].forward;)
      ++end;
    ArrayRef<Candidate> group = sorted.slice(begin, end - begin);
    for (const Candidate &a : group)
      for (const Candidate &b : group)
        if (a.shared == 0 && b.shared == 1 && a.backward != b.backward &&
            contractions[a.backward].operands[a.gradientOperand].tensor ==
                contractions[b.backward].operands[b.gradientOperand].tensor)
          triples.push_back(makeMatch({a, b}));
  }
  return triples;
}

/// Where dy comes from outside (the loss is computed elsewhere, or is a sum), no forward result reaches it;
/// only gradients do. Two matmuls that share dy are gradients all the same where they come after the forward
/// matmul and one of them is a result.
std::vector<Match> BackwardMatcher::collectTriplesOfOuterCotangents() const {
  std::vector<Match> triples = collectTriples(candidates.getUnreached());
  llvm::erase_if(triples, [&](const Match &match) {
    const Candidate &first = match.candidates.front();
    return !candidates.isOuterCotangent(first) || llvm::none_of(match.candidates, [&](const Candidate &c) {
      return candidates.isGradientAResult(c);
    }) || (candidates.namesMarkBackward() && !contractions[first.backward].name.backward);
  });
  return triples;
}

/// True if some matmul has both gradients, or a gradient that is one by its result.
bool BackwardMatcher::isTraining() const {
  return llvm::any_of(contractions, [](const Contraction &c) { return c.isForward(); }) ||
         llvm::any_of(candidates.getReached(),
                      [&](const Candidate &candidate) { return candidates.isGradientAResult(candidate); });
}

std::vector<Match> BackwardMatcher::collectPairs() const {
  std::vector<Match> pairs;
  if (!candidates.namesMarkBackward() && !isTraining())
    return pairs;
  for (const Candidate &candidate : candidates.getReached())
    if (candidates.isPlausiblePair(candidate))
      pairs.push_back(makeMatch(candidate));
  for (const Candidate &candidate : candidates.getUnreached())
    if (candidates.haveOneName(candidate) && candidates.isPlausiblePair(candidate) &&
        candidates.isOuterCotangent(candidate))
      pairs.push_back(makeMatch(candidate));
  return pairs;
}

void BackwardMatcher::assign(const Candidate &candidate) {
  Contraction &backward = contractions[candidate.backward];
  backward.forward = candidate.forward;
  backward.rule = rule;
  backward.gradientOperand = candidate.gradientOperand;
  backward.differentiated = 1 - candidate.shared;
  int &gradient = contractions[candidate.forward].gradients[1 - candidate.shared];
  if (gradient == Contraction::kNone)
    gradient = candidate.backward;
}

/// Assigns matches in order as long as their matmuls are free; false if none is.
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

/// A matmul with a cotangent that comes from outside, alone, may be a gradient, or a forward matmul that
/// reads the same activation: it is in doubt.
void BackwardMatcher::noteDoubts() {
  for (const Candidate &candidate : candidates.getUnreached())
    if (candidates.isPlausiblePair(candidate) && !contractions[candidate.backward].isForward() &&
        candidates.isOuterCotangent(candidate) && candidates.isGradientAResult(candidate))
      contractions[candidate.backward].maybeGradientOf = candidate.forward;
}

void fp8::matchBackward(FunctionOpInterface function, const Reachability &reachability,
                        const Reachability &direct, const ValueSources &values,
                        MutableArrayRef<Contraction> contractions) {
  BackwardCandidates candidates(function, reachability, direct, values, contractions);
  BackwardMatcher(candidates, contractions).run();
}
