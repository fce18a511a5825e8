// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the arguments of a function that are parameters, and the operand of a matmul that is its weight.
//
// A parameter is a floating-point argument or global that training changes: its gradient is a result of an
// entry, or enters the computation of its new value; or it is carried in an entry that has gradients. Entries
// match arguments by name. An operand is plain if the only contractions in its computation are matmuls of
// parameters and constants: casts, views, slices, concatenated gates, weight normalization, a scaled weight
// and a merged adapter W + A · B are plain, x · W + b is not.
//
// The weight of a matmul that is not a gradient is
// 1. the only plain operand that is computed from parameters and constants alone;
// 2. else the only plain operand, as in inference or with frozen weights;
// 3. of two plain operands the one of lower rank; of equal rank the one that reads a parameter; else the
//    second. It is the first where both read parameters and only the second contains matmuls of them, or
//    where neither reads a parameter and only the first reads a tree of arguments that holds weights;
// 4. none, if no operand is plain.
// A matmul of parameters is no weight beside an operand that reads one of the same arguments or is a matmul
// of parameters too. Examples are q and k where the gradient of their input is a result, which makes the
// input a parameter. In an entry without gradients a carried argument that no entry trains (a KV cache) is no
// weight.

#ifndef FP8_ANALYSIS_SITES_WEIGHTS_H
#define FP8_ANALYSIS_SITES_WEIGHTS_H

#include "fp8/Analysis/Reachability.h"
#include "fp8/Analysis/Sites/Contractions.h"
#include "fp8/Analysis/Sites/ValueSources.h"
#include "llvm/ADT/StringSet.h"

namespace fp8 {

/// The name that the program gives an argument or a global; empty where it has none.
llvm::StringRef getGivenName(mlir::Value argument);

/// The parameters of one function, and the weights of its matmuls.
class Weights {
public:
  /// `contractions` are matched with their gradients, and the sources of `reachability`.
  Weights(mlir::FunctionOpInterface function, llvm::ArrayRef<Contraction> contractions,
          const Reachability &reachability, const ValueSources &sources);

  /// Adds the names of the parameters that this function trains.
  void collectTrainedNames(llvm::StringSet<> &names) const;
  /// Makes arguments of these names parameters, too. All parameters are known then, and the weights that are
  /// certain show which trees of arguments hold weights.
  void addTrainedNames(const llvm::StringSet<> &names, llvm::ArrayRef<Contraction> contractions);

  /// The operand that is the weight of a matmul that is not a gradient; unset if there is none.
  std::optional<unsigned> findWeight(MatmulOp op) const;
  bool isPlain(mlir::Value value) const;

private:
  /// The weight by the first two rules, or that there is none; unset where both operands are plain.
  struct Choice;
  Choice choose(MatmulOp op) const;
  bool shareArgument(mlir::Value a, mlir::Value b) const;
  bool isOfWeightTree(mlir::Value value) const;
  void addParametersOf(const Contraction &contraction, unsigned operand);
  bool isGradientAResult(unsigned matmul, mlir::Value argument) const;
  bool isOfParametersAlone(mlir::Value value) const;
  bool readsParameter(mlir::Value value) const;
  bool readsCache(mlir::Value value) const;

  mlir::Region &body;
  const Reachability &reachability;
  const ValueSources &sources;
  llvm::DenseSet<mlir::Value> parameters;
  llvm::DenseSet<mlir::Operation *> gradients; ///< matmuls matched as gradients, or marked so by names
  llvm::StringSet<> trees; ///< own words of the arguments with keys that certain weights are computed from
  bool hasGradients;
};

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_WEIGHTS_H
