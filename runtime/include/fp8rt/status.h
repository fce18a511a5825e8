// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the functions of the runtime report failure: a status for programs and a
// line of text for people.

#ifndef FP8RT_STATUS_H
#define FP8RT_STATUS_H

#if defined(__GNUC__)
#define FP8RT_API __attribute__((visibility("default")))
#else
#define FP8RT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// Returned by every function that can fail. New values may be added.
typedef enum fp8rt_status {
  FP8RT_OK = 0,
  /// A bug of the caller, whatever the input: a null pointer, an index out of
  /// range, a tensor with gaps.
  FP8RT_INVALID_ARGUMENT = 1,
  /// No file, entry, argument or tensor of that name.
  FP8RT_NOT_FOUND = 2,
  /// The operating system failed to read or write.
  FP8RT_IO = 3,
  /// A file is invalid: truncated, malformed, contradictory.
  FP8RT_CORRUPT = 4,
  /// Well formed, but of another shape, type or layout than the program's.
  FP8RT_MISMATCH = 5,
  /// A type or version that this runtime does not know.
  FP8RT_UNSUPPORTED = 6,
  FP8RT_OUT_OF_MEMORY = 7,
  /// The compiled code reported an error.
  FP8RT_CALL_FAILED = 8,
  /// A bug in the runtime.
  FP8RT_INTERNAL = 9,
  /// There is no device or driver of the kind asked for, or it failed.
  FP8RT_DEVICE = 10,
  /// Another rank failed, is gone, does something else or did not arrive in time (ranks.h).
  FP8RT_RANKS = 11
} fp8rt_status;

/// Returns the error of the last failing call of this thread: one line of UTF-8
/// without a newline that names its subject and, if possible, what to change.
/// Valid until this thread's next failing call; empty before the first.
FP8RT_API const char *fp8rt_last_error(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_STATUS_H
