// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that every compiled library contains for the C ABI, as MLIR text.

#ifndef FP8_LIB_TARGET_CPU_ENTRYPOINTHELPERS_H
#define FP8_LIB_TARGET_CPU_ENTRYPOINTHELPERS_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// A module with, all private:
///   @fp8_abi_check_call(call, arguments: i32, results: i32, workspace: i64, specs, lines) -> i32
///     0, or 1 and call->error. `specs` holds, for every argument and then every result, i64
///     words: DLDataType, rank, sizes. `lines` holds NUL-terminated error lines: version,
///     counts, workspace, then one per argument and result.
///   @fp8_abi_argument(call, index: i64) -> pointer to the elements, and @fp8_abi_result
///   @fp8_abi_workspace(call) -> pointer
///   @fp8_abi_copy(to, from, bytes: i64): copies unless both are the same memory
llvm::StringRef getEntryPointHelpers();

} // namespace fp8

#endif // FP8_LIB_TARGET_CPU_ENTRYPOINTHELPERS_H
