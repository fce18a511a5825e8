// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs of matmuls of which one may, by its form, be a gradient of the other one, and questions about such
// pairs. Private to the library.

#ifndef FP8_LIB_ANALYSIS_BACKWARDCANDIDATES_H
#define FP8_LIB_ANALYSIS_BACKWARDCANDIDATES_H

#include "fp8/Analysis/Reachability.h"
#include "fp8/Analysis/Sites/Contractions.h"
#include "fp8/Analysis/Sites/ValueSources.h"

namespace fp8::detail {

/// True unless both sizes are known and differ.
bool mayHaveEqualSize(mlir::Value a, mlir::Value b);

/// `backward` may be a gradient of `forward`: of operand `1 - shared`.
struct Candidate {
  unsigned forward, backward;
  unsigned shared;          ///< the operand of `forward` that both read
  unsigned gradientOperand; ///< the operand of `backward` that is the gradient dy
  /// Gradients that dy is made of, though the result of `forward` is not what they differentiate.
  unsigned contradictions = 0;
};

/// The candidates of a function. Every question reads `contractions` again, so that answers depend on the
/// matches settled so far.
class BackwardCandidates {
public:
  BackwardCandidates(mlir::FunctionOpInterface function, const Reachability &reachability,
                     const Reachability &direct, const ValueSources &values,
                     llvm::ArrayRef<Contraction> contractions);

  llvm::ArrayRef<Contraction> getContractions() const { return contractions; }
  /// Candidates whose dy the forward matmul reaches, sorted by the forward matmul.
  llvm::ArrayRef<Candidate> getReached() const { return reached; }
  /// Candidates whose dy the forward matmul does not reach, though it comes first in the program.
  llvm::ArrayRef<Candidate> getUnreached() const { return unreached; }
  /// The matmuls that read a tensor (TensorUse::tensor), and as which operand.
  llvm::ArrayRef<std::pair<unsigned, unsigned>> getReaders(unsigned tensor) const;

  /// The operand of the backward matmul that is dy.
  mlir::Value getGradient(const Candidate &candidate) const;
  /// The arguments that a gradient of `operand` of matmul `forward` is the gradient of, or is a part of: the
  /// argument that the operand is a view of or, where it is computed without contractions, all that it is
  /// made of.
  llvm::SmallVector<mlir::Value> getDifferentiatedArguments(unsigned forward, unsigned operand) const;
  /// Whether names mark the backward code: that of this function or, where all its matmuls have names, that
  /// of another one. An evaluation has no backward code that they could mark.
  bool namesMarkBackward() const { return marked; }
  /// True if names say that one matmul is a gradient of the other one, or of its like.
  bool haveOneName(const Candidate &candidate) const;
  /// True if dy is a cotangent that comes from outside: no forward matmul reaches it, only gradients do.
  bool isOuterCotangent(const Candidate &candidate) const;
  /// True if a gradient reaches dy.
  bool isGradientOfGradient(const Candidate &candidate) const;
  /// True if the gradient reaches a result of the function that has the type of an argument that it is the
  /// gradient of, or replaces it in the next step.
  bool isGradientAResult(const Candidate &candidate) const;
  /// True if the matmuls may be a pair: the forward matmul is no gradient, the backward matmul is
  /// unmatched and repeats no forward matmul, and names, where they mark backward code, mark the backward
  /// matmul only.
  bool isPlausiblePair(const Candidate &candidate) const;
  /// True if the candidate has the form of a weight gradient, but reads an activation that is not the forward
  /// matmul's: other operations may have computed that one again.
  bool readsRecomputed(const Candidate &candidate) const;

private:
  void collect();
  void dropForeign();
  void countContradictions();
  bool isCandidate(const Candidate &candidate) const;
  bool isGroupedCandidate(const Candidate &candidate) const;
  bool findWhetherNamesMarkBackward() const;
  llvm::BitVector findGradients() const; ///< the matmuls that are settled as such
  bool repeatsForward(const Contraction &matmul) const;
  bool haveSameSources(mlir::Value a, mlir::Value b) const;

  mlir::FunctionOpInterface function;
  const Reachability &reachability, &direct;
  const ValueSources &values;
  llvm::ArrayRef<Contraction> contractions;
  llvm::DenseMap<unsigned, llvm::SmallVector<std::pair<unsigned, unsigned>>> readers;
  std::vector<Candidate> reached, unreached;
  bool marked;
};

} // namespace fp8::detail

#endif // FP8_LIB_ANALYSIS_BACKWARDCANDIDATES_H
