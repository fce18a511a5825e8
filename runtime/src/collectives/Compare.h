// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparing what all ranks should have in common.

#ifndef FP8RT_COLLECTIVES_COMPARE_H
#define FP8RT_COLLECTIVES_COMPARE_H

#include "Ranks.h"

#include <vector>

namespace fp8rt {
class Library;
} // namespace fp8rt
struct fp8rt_tensors;

namespace fp8rt::collectives {

/// Throws FP8RT_RANKS on every rank if the lines differ.
void compareLines(Ranks &ranks, const std::string &what, const std::vector<std::string> &lines);

/// Returns what must be equal on all ranks, in the order in which a difference should be named.
std::vector<std::string> describeProgram(const Library &library);

/// Returns a line per tensor, with a hash of its elements.
std::vector<std::string> describeTensors(const fp8rt_tensors &tensors);

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_COMPARE_H
