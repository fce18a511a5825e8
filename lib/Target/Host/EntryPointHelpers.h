// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that every compiled library contains for the C ABI, as MLIR text.

#ifndef FP8_LIB_TARGET_HOST_ENTRYPOINTHELPERS_H
#define FP8_LIB_TARGET_HOST_ENTRYPOINTHELPERS_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// The text of a module with, all private:
///   @fp8_abi_check_call(call, arguments: i32, results: i32, workspace: i64, specs, lines) -> i32
///     0, or 1 and call->error. `specs` holds, for every argument and then every result, i64
///     words: DLDataType, rank, sizes. A size is kAnySize, or getSizeOfArgument(A): that of
///     the same dimension of argument A. A rank is kCallerAllocates for a result that
///     call->allocate gives. `lines` holds NUL-terminated error lines: version, counts,
///     workspace, then one per argument and result.
///   @fp8_abi_fail(call, line) -> 1, the line in call->error
///   @fp8_abi_argument(call, index: i64) -> pointer to the elements, and @fp8_abi_result
///   @fp8_abi_size(call, argument: i64, dim: i64) -> i64
///   @fp8_abi_workspace(call) -> pointer
///   @fp8_abi_copy(to, from, bytes: i64): copies unless both are the same memory
///   @fp8_abi_profile(call) -> pointer to the call's profile, null without
///   @fp8_abi_record(profile, kernel: i32): tells the profile that a kernel has ended, or with -1
///     that other code has
///
/// An entry that can fail gets a frame, two pointers: the call, and the first of the
/// temporaries on the heap, each of which points to the next.
///   @fp8_abi_allocate_result(frame, result: i64, shape, rank: i64) -> pointer, NULL without
///     memory
///   @fp8_abi_allocate(frame, bytes: i64) -> pointer, the same
///   @fp8_abi_free(pointer): a temporary
///   @fp8_abi_release(frame): all temporaries that are left
llvm::StringRef getEntryPointHelpers();

inline constexpr int64_t kAnySize = -1;
inline constexpr int64_t kCallerAllocates = -1;
inline int64_t getSizeOfArgument(int64_t argument) { return -2 - argument; }

inline constexpr llvm::StringLiteral kAllocateResultHelper = "fp8_abi_allocate_result";
inline constexpr llvm::StringLiteral kAllocateHelper = "fp8_abi_allocate";
inline constexpr llvm::StringLiteral kFreeHelper = "fp8_abi_free";
inline constexpr llvm::StringLiteral kFailHelper = "fp8_abi_fail";
inline constexpr llvm::StringLiteral kProfileHelper = "fp8_abi_profile";
inline constexpr llvm::StringLiteral kRecordHelper = "fp8_abi_record";

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_ENTRYPOINTHELPERS_H
