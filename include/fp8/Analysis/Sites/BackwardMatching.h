// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds, by dataflow, which matmuls are the backward of which.
//
// A matmul y = x · w has two gradients: dx = dy · w and dw = x · dy. Each shares one
// operand with the matmul and reads the other one's place, the cotangent dy, from
// values that y has reached. The shared operand is summed over just those dimensions
// that the matmul kept of it, and the reverse; batch dimensions are batch dimensions
// in both. (A weight that is repeated over the batch has a gradient per batch, which the
// program sums: what it sums over is no batch dimension. The groups of a grouped matmul
// are summed in dx as in y, and kept in dw.)
//
// Gradients are found by the rules of a table in BackwardMatching.cpp, which explains each of them.
// In every rule matmuls of one name come first, then those that other gradients do not
// contradict; of layers that are alike, a carried weight has the gradients that go into its new value.
// Values recomputed for the backward pass count as the forward pass's tensors, and recomputed matmuls as
// the forward matmuls.
//
// A matmul of one form with a dy that comes from outside, alone and without names, stays in doubt.

#ifndef FP8_ANALYSIS_SITES_BACKWARDMATCHING_H
#define FP8_ANALYSIS_SITES_BACKWARDMATCHING_H

#include "fp8/Analysis/Reachability.h"
#include "fp8/Analysis/Sites/Contractions.h"
#include "fp8/Analysis/Sites/ValueSources.h"

namespace fp8 {

/// Matches each contraction with its gradients, or with the forward matmul that it is a gradient of, and
/// writes both into `contractions`, which are the sources of `reachability` and of `direct`.
void matchBackward(mlir::FunctionOpInterface function, const Reachability &reachability,
                   const Reachability &direct, const ValueSources &values,
                   llvm::MutableArrayRef<Contraction> contractions);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_BACKWARDMATCHING_H
