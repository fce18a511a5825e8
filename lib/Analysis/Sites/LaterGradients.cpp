// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds gradients by other gradients that are settled, or by the new values of weights.

#include "LaterGradients.h"
#include "fp8/Analysis/Sites/NewValues.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

std::vector<Candidate> fp8::detail::findWeightGradientsBySibling(const BackwardCandidates &candidates) {
  ArrayRef<Contraction> contractions = candidates.getContractions();
  std::vector<Candidate> found;
  for (unsigned f = 0; f < contractions.size(); ++f) {
    const Contraction &forward = contractions[f];
    for (unsigned known : {0, 1}) {
      unsigned missing = 1 - known;
      if (forward.gradients[known] == Contraction::kNone || forward.gradients[missing] != Contraction::kNone)
        continue;
      const Contraction &sibling = contractions[forward.gradients[known]];
      const TensorUse &gradient = sibling.operands[sibling.gradientOperand];
      for (auto [b, position] : candidates.getReaders(gradient.tensor)) {
        const Contraction &backward = contractions[b];
        if (!backward.isMatched() && backward.name.backward == candidates.namesMarkBackward() &&
            haveOppositeUses(gradient, backward.operands[position]) &&
            mayHaveEqualSize(backward.result, forward.op->getOperand(missing)) &&
            mayHaveEqualSize(backward.op->getOperand(1 - position), forward.op->getOperand(known)))
          found.push_back({f, b, known, position});
      }
    }
  }
  return found;
}

std::vector<Candidate> fp8::detail::findSecondGradients(const BackwardCandidates &candidates) {
  ArrayRef<Contraction> contractions = candidates.getContractions();
  std::vector<Candidate> found;
  for (const Candidate &candidate : candidates.getReached()) {
    const Contraction &forward = contractions[candidate.forward];
    bool readsParameter = getParameter(forward.op->getOperand(candidate.shared)) != nullptr;
    if (forward.gradients[1 - candidate.shared] != Contraction::kNone &&
        candidates.isPlausiblePair(candidate) && candidates.isGradientOfGradient(candidate) &&
        (readsParameter || candidates.isGradientAResult(candidate)))
      found.push_back(candidate);
  }
  return found;
}

std::vector<Candidate> fp8::detail::findGradientsOfRecomputed(const BackwardCandidates &candidates) {
  ArrayRef<Contraction> contractions = candidates.getContractions();
  std::vector<Candidate> found;
  for (unsigned f = 0; f < contractions.size(); ++f)
    for (unsigned weight : {0, 1}) {
      if (contractions[f].gradients[weight] != Contraction::kNone)
        continue;
      llvm::SmallPtrSet<Operation *, 4> ends;
      for (Value argument : candidates.getDifferentiatedArguments(f, weight)) {
        llvm::SmallPtrSet<Operation *, 4> matmuls = findMatmulsOfGradient(argument);
        ends.insert(matmuls.begin(), matmuls.end());
      }
      for (unsigned b = 0; b < contractions.size(); ++b)
        for (unsigned gradientOperand : {0, 1})
          if (Candidate candidate{f, b, 1 - weight, gradientOperand}; ends.contains(contractions[b].op) &&
                                                                      candidates.isPlausiblePair(candidate) &&
                                                                      candidates.readsRecomputed(candidate))
            found.push_back(candidate);
    }
  return found;
}
