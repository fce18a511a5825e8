// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words for ranks that others wait for in vain.

#ifndef FP8RT_COLLECTIVES_MISSING_H
#define FP8RT_COLLECTIVES_MISSING_H

#include <string>
#include <vector>

namespace fp8rt::collectives {

/// Returns "rank 3" or "ranks 1, 2 and 3".
std::string describeRanks(const std::vector<uint32_t> &ranks);

/// Returns a number of seconds as people write it: "30 s", "0.5 s".
std::string describeSeconds(double seconds);

/// Returns " (its process 123 is stopped)" for a process that a signal has stopped, else an empty text.
std::string describeStopped(int process);

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_MISSING_H
