// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that make kernels of a GPU from functions, and code from kernels.

#ifndef FP8_TARGET_PTX_PASSES
#define FP8_TARGET_PTX_PASSES

include "fp8/Target/PTX/KernelPasses.td"
include "fp8/Target/PTX/ThreadPasses.td"
include "fp8/Target/PTX/CodePasses.td"

#endif // FP8_TARGET_PTX_PASSES
