// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds, by dataflow, which matrix products are the backward of which.
//
// A product y = x · w has two gradients: dx = dy · w and dw = x · dy. Each shares one
// operand with the product and reads the other one's place, the gradient dy, from
// values that y has reached. The shared operand is summed over just those dimensions
// that the product kept of it, and the reverse; batch dimensions are batch dimensions
// in both. (A weight that is repeated over the batch has a gradient per batch, which the
// program sums: what it sums over is no batch dimension.) Where both gradients are there,
// they share dy: that confirms them, and such triples are settled first. Then come pairs
// (the first layer has no dx, a frozen weight no dw), where the names must agree, as far as
// there are names: a tied output projection looks like a gradient of the embedding.
//
// Of layers that are alike, a weight that is carried has the gradients that go into its new
// value, and dy is made of gradients of what reads y. What is computed again for the backward
// pass counts as the tensor that the forward pass had, and the product as the forward one.
//
// Where dy comes from outside (an argument, as in a vector-Jacobian product, or a constant), y
// does not reach it. Then two gradients that share it are taken for such if one is a result, and one
// alone if names say so; without names that stays in doubt.
//
// What none of this explains are second gradients, which gradients of gradients add to the first
// ones, and gradients of weights that read what forward code has computed again by other operations.

#ifndef FP8_ANALYSIS_SITES_BACKWARDMATCHING_H
#define FP8_ANALYSIS_SITES_BACKWARDMATCHING_H

#include "fp8/Analysis/Reachability.h"
#include "fp8/Analysis/Sites/Contractions.h"

namespace fp8 {

/// Fills in what is known of each contraction as a gradient, and as forward of others. Sources of
/// `reachability` and of `direct` are the contractions.
void matchBackward(mlir::FunctionOpInterface function, const Reachability &reachability,
                   const Reachability &direct, llvm::MutableArrayRef<Contraction> contractions);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_BACKWARDMATCHING_H
