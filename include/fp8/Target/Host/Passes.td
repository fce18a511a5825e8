// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that all targets share: kernels as functions and loops; workspace, C ABI and errors of
// entry points.

#ifndef FP8_TARGET_HOST_PASSES
#define FP8_TARGET_HOST_PASSES

include "fp8/Target/Host/KernelPasses.td"
include "fp8/Target/Host/EntryPointPasses.td"

#endif // FP8_TARGET_HOST_PASSES
