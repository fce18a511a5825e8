// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients that differ in form or dataflow from the first gradients of a matmul. Private to the library.

#ifndef FP8_LIB_ANALYSIS_LATERGRADIENTS_H
#define FP8_LIB_ANALYSIS_LATERGRADIENTS_H

#include "BackwardCandidates.h"

namespace fp8::detail {

/// Weight gradients that read a recomputed activation, another value than the forward matmul read: they
/// share dy with the input gradient, which is settled.
std::vector<Candidate> findWeightGradientsBySibling(const BackwardCandidates &candidates);

/// Gradients of gradients give a matmul second gradients, which the program adds to the first ones: they
/// read the same, dy depends on gradients, and a parameter is read or has the sum as its gradient.
std::vector<Candidate> findSecondGradients(const BackwardCandidates &candidates);

/// Gradients of weights that nothing else is found for: they end in the weight's new value, or in a
/// result of its type, with no other matmul between.
std::vector<Candidate> findGradientsOfRecomputed(const BackwardCandidates &candidates);

} // namespace fp8::detail

#endif // FP8_LIB_ANALYSIS_LATERGRADIENTS_H
