// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8-ptx run: runs a kernel on tensors of a file.

#ifndef FP8_TOOLS_FP8PTX_RUNNER_H
#define FP8_TOOLS_FP8PTX_RUNNER_H

#include "Options.h"

#include "llvm/Support/Error.h"

namespace fp8ptx {

/// Runs the kernel. The outputs file is written completely or not at all.
llvm::Error run(const RunOptions &options);

} // namespace fp8ptx

#endif // FP8_TOOLS_FP8PTX_RUNNER_H
