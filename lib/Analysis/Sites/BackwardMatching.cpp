// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matches forward products with their gradients. The header explains the rules.

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

  void run() {
    settle(collectTriples(candidates.getReached()));
    while (settle(collectTriplesOfTangents())) {
    }
    // A gradient that is found shows that this is training, and makes others plausible.
    while (settle(collectPairs())) {
    }
    for (const Candidate &candidate : findWeightGradientsBySibling(candidates))
      if (!contractions[candidate.backward].isMatched())
        assign(candidate);
    while (addSecondGradients() || settle(makeMatches(findGradientsOfRecomputed(candidates)))) {
    }
    if (!candidates.doNamesTell())
      noteDoubts();
  }

private:
  std::vector<Match> collectTriples(ArrayRef<Candidate> sorted) const;
  std::vector<Match> collectTriplesOfTangents() const;
  std::vector<Match> collectPairs() const;
  Match makeMatch(ArrayRef<Candidate> members) const;
  std::vector<Match> makeMatches(ArrayRef<Candidate> singles) const;
  bool isTraining() const;
  bool settle(std::vector<Match> matches);
  void assign(const Candidate &candidate);
  bool addSecondGradients();
  void noteDoubts();

  const BackwardCandidates &candidates;
  MutableArrayRef<Contraction> contractions;
};

} // namespace

/// Products of one name first, and those that other products do not contradict. Then, of
/// triples, the nearest products; of pairs, the last ones: what turns out to be forward is no
/// gradient of anything before it.
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

/// `sorted`: by the forward product.
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

/// Where dy comes from outside (the loss is computed elsewhere, or is a sum), no forward result
/// reaches it: nothing does but gradients. Two that share it, one of them a result, are known
/// all the same, where they come after the forward product.
std::vector<Match> BackwardMatcher::collectTriplesOfTangents() const {
  std::vector<Match> triples = collectTriples(candidates.getUnreached());
  llvm::erase_if(triples, [&](const Match &match) {
    const Candidate &first = match.candidates.front();
    return !candidates.isTangent(first) || llvm::none_of(match.candidates, [&](const Candidate &c) {
      return candidates.isGradientAResult(c);
    }) || (candidates.doNamesTell() && !contractions[first.backward].name.backward);
  });
  return triples;
}

/// True if some product has both gradients, or a gradient that is one by its result.
bool BackwardMatcher::isTraining() const {
  return llvm::any_of(contractions, [](const Contraction &c) { return c.isForward(); }) ||
         llvm::any_of(candidates.getReached(),
                      [&](const Candidate &candidate) { return candidates.isGradientAResult(candidate); });
}

std::vector<Match> BackwardMatcher::collectPairs() const {
  std::vector<Match> pairs;
  if (!candidates.doNamesTell() && !isTraining())
    return pairs;
  for (const Candidate &candidate : candidates.getReached())
    if (candidates.isPlausiblePair(candidate))
      pairs.push_back(makeMatch(candidate));
  for (const Candidate &candidate : candidates.getUnreached())
    if (candidates.haveOneName(candidate) && candidates.isPlausiblePair(candidate) &&
        candidates.isTangent(candidate))
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

/// Products that have first gradients get second ones; false if there are none.
bool BackwardMatcher::addSecondGradients() {
  std::vector<Match> matches = makeMatches(findSecondGradients(candidates));
  llvm::sort(matches, [](const Match &a, const Match &b) { return a.order < b.order; });
  for (const Match &match : matches)
    if (const Candidate &candidate = match.candidates.front(); candidates.isPlausiblePair(candidate))
      assign(candidate);
  return !matches.empty();
}

/// A gradient of the result that comes from outside, and one product with it: as well another forward
/// product that reads the same.
void BackwardMatcher::noteDoubts() {
  for (const Candidate &candidate : candidates.getUnreached())
    if (candidates.isPlausiblePair(candidate) && !contractions[candidate.backward].isForward() &&
        candidates.isTangent(candidate) && candidates.isGradientAResult(candidate))
      contractions[candidate.backward].maybeGradientOf = candidate.forward;
}

void fp8::matchBackward(FunctionOpInterface function, const Reachability &reachability,
                        const Reachability &direct, MutableArrayRef<Contraction> contractions) {
  BackwardCandidates candidates(function, reachability, direct, contractions);
  BackwardMatcher(candidates, contractions).run();
}
