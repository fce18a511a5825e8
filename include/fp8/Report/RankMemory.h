// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that each rank of a program keeps from step to step, for the report.

#ifndef FP8_REPORT_RANKMEMORY_H
#define FP8_REPORT_RANKMEMORY_H

#include "fp8/Report/Manifest.h"

namespace fp8 {

/// Returns the bytes that each rank keeps from step to step, in carried arguments and in FP8, beside those
/// that one rank alone would keep, which has whole tensors; nothing for a program for one rank.
std::vector<MemoryFigure> describeRankMemory(const Manifest &manifest);

} // namespace fp8

#endif // FP8_REPORT_RANKMEMORY_H
