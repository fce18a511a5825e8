// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole run: load, set, step, save.

#ifndef FP8_TOOLS_FP8RUN_RUNNER_H
#define FP8_TOOLS_FP8RUN_RUNNER_H

#include "Options.h"
#include "Ranks.h"

#include "llvm/Support/Error.h"

namespace fp8run {

/// Runs the program as the options say, as one of the ranks. An output file is written completely or not at
/// all.
llvm::Error run(const Options &options, const Ranks &ranks);

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_RUNNER_H
