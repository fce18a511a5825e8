// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that every compiled library contains for the C ABI, as MLIR text.

#ifndef FP8_LIB_TARGET_HOST_ENTRYPOINTS_ENTRYPOINTHELPERS_H
#define FP8_LIB_TARGET_HOST_ENTRYPOINTS_ENTRYPOINTHELPERS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace fp8 {

/// The text of a module with, all private:
///   @fp8_abi_check_call(call, arguments: i32, results: i32, workspace: i64, specs, lines) -> i32
///     0, or 1 and call->error. `specs` holds i64 words: the version of the call, the kind of memory of all
///     tensors (DLDeviceType), the alignment of the workspace; then for every argument and every result
///     DLDataType, rank, sizes. A size is kAnySize, or getSizeOfArgument(A): that of
///     the same dimension of argument A. A rank is kCallerAllocates for a result that
///     call->allocate gives. `lines` holds NUL-terminated error lines: version, counts,
///     workspace, then one per argument and result.
///   @fp8_abi_fail(call, line) -> 1, the line in call->error; NULL if the reason is there already
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
///   @fp8_abi_free(frame, pointer): a temporary
///   @fp8_abi_release(frame): all temporaries that are left
///
/// With `communicates`, there are functions for collectives. They return false after a failure, with the
/// reason of the communicator in call->error.
///   @fp8_abi_rank(frame) -> i64, and @fp8_abi_rank_count: of the communicator; 0 and 1 without
///   @fp8_abi_start(frame, step, what, group, send, receive, count: i64, bytes: i64, name, ticket) -> i1:
///     starts a collective of `count` elements, `bytes` at `send`. `step` has room for an fp8rt_collective,
///     which begins with the 16 bytes of `what`; the ticket goes to `ticket`. On one rank it is a copy.
///   @fp8_abi_wait(frame, ticket: i64) -> i1
///
/// With `onDevice`, temporaries are memory of the call's device, and there are functions for the functions of
/// fp8rt_device. They return false or NULL after a failure, with the reason of the device in call->error.
///   @fp8_abi_launch(frame, kernel: i32, line: i32, x: i64, y: i64, z: i64, parameters) -> i1
///   @fp8_abi_launch_all(frame, records, count: i64, buffers, slots, pointers, grid) -> i1: the launches of
///     `count` records (Target/PTX/Code/LaunchRecords.h). `buffers` holds the addresses that records count
///     from, `slots` and `grid` what the host has stored; `pointers` has room for the address of every
///     parameter.
///   @fp8_abi_read(frame, host, source, bytes: i64) -> i1
///   @fp8_abi_check(frame, flag, message) -> i1: fails with the message unless the byte at `flag` is 1
///   @fp8_abi_symbol(frame, symbol: i32) -> pointer
///   @fp8_abi_tensor_map(frame, map, type: i32, rank: i32, base, sizes, strides, box, swizzle: i32) -> i1
///   @fp8_abi_copy_on_device(call, status: i32, to, from, bytes: i64) -> i32: copies as fp8_abi_copy if the
///     status is 0, and returns the status, or that of the copy
std::string getEntryPointHelpers(bool onDevice, bool communicates);

inline constexpr int64_t kAnySize = -1;
inline constexpr int64_t kCallerAllocates = -1;
inline int64_t getSizeOfArgument(int64_t argument) { return -2 - argument; }

inline constexpr llvm::StringLiteral kAllocateResultHelper = "fp8_abi_allocate_result";
inline constexpr llvm::StringLiteral kAllocateHelper = "fp8_abi_allocate";
inline constexpr llvm::StringLiteral kFreeHelper = "fp8_abi_free";
inline constexpr llvm::StringLiteral kLaunchHelper = "fp8_abi_launch_all";
inline constexpr llvm::StringLiteral kReadHelper = "fp8_abi_read";
inline constexpr llvm::StringLiteral kCheckHelper = "fp8_abi_check";
inline constexpr llvm::StringLiteral kSymbolHelper = "fp8_abi_symbol";
inline constexpr llvm::StringLiteral kTensorMapHelper = "fp8_abi_tensor_map";
inline constexpr llvm::StringLiteral kRankHelper = "fp8_abi_rank";
inline constexpr llvm::StringLiteral kRankCountHelper = "fp8_abi_rank_count";
inline constexpr llvm::StringLiteral kStartHelper = "fp8_abi_start";
inline constexpr llvm::StringLiteral kWaitHelper = "fp8_abi_wait";
inline constexpr llvm::StringLiteral kFailHelper = "fp8_abi_fail";
inline constexpr llvm::StringLiteral kProfileHelper = "fp8_abi_profile";
inline constexpr llvm::StringLiteral kRecordHelper = "fp8_abi_record";

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_ENTRYPOINTS_ENTRYPOINTHELPERS_H
