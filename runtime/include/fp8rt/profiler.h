// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the time of a program's steps goes: per kernel, the calls and seconds
// that sessions have spent in it, with what the compiler knows about it.

#ifndef FP8RT_PROFILER_H
#define FP8RT_PROFILER_H

#include "fp8rt/call.h"
#include "fp8rt/prepared.h"
#include "fp8rt/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The times of one library's kernels. Sessions that share one add to the same
/// times, so they must not run at the same time.
typedef struct fp8rt_profiler fp8rt_profiler;

/// A kernel, or a combination of shapes of one that serves several. Pointers are
/// valid as long as the profiler.
typedef struct fp8rt_kernel {
  const char *name;
  /// Its group: call.h lists them.
  const char *kind;
  /// The sites and arguments that it works for.
  const char *const *sites;
  uint32_t num_sites;
  /// Bytes and floating-point operations of one call; -1 if not known.
  int64_t bytes_read;
  int64_t bytes_written;
  int64_t operations;
  /// Since the profiler was created or reset.
  uint64_t calls;
  double seconds;
} fp8rt_kernel;

/// Creates a profiler. A library without a list of kernels is
/// FP8RT_UNSUPPORTED, one with a wrong list FP8RT_CORRUPT.
FP8RT_API fp8rt_status fp8rt_profiler_create(const fp8rt_library *library, fp8rt_profiler **out_profiler);

/// NULL is allowed. Sessions and prepared entry points that still use the profiler keep it.
FP8RT_API void fp8rt_profiler_destroy(fp8rt_profiler *profiler);

/// Measures all following steps of the session; NULL measures none. The profiler
/// must be of the session's library.
FP8RT_API fp8rt_status fp8rt_session_profile(fp8rt_session *session, fp8rt_profiler *profiler);

/// Measures all following calls of a prepared entry point in host memory in the same way; FP8RT_UNSUPPORTED
/// for one that was prepared on a device. Not during a call of it; and one profiler measures one call at a
/// time.
FP8RT_API fp8rt_status fp8rt_prepared_profile(fp8rt_prepared *prepared, fp8rt_profiler *profiler);

/// Surround a call of compiled code that the caller makes itself: `begin` returns what fp8rt_call.profile
/// takes. One call at a time.
FP8RT_API fp8rt_profile *fp8rt_profiler_begin(fp8rt_profiler *profiler);
FP8RT_API void fp8rt_profiler_end(fp8rt_profiler *profiler);

/// Sets all calls and times to 0, for example after a first step, which is slower
/// than the others.
FP8RT_API void fp8rt_profiler_reset(fp8rt_profiler *profiler);

/// Return the number of kernels, and one of them.
FP8RT_API uint32_t fp8rt_profiler_num_kernels(const fp8rt_profiler *profiler);
FP8RT_API fp8rt_status fp8rt_profiler_kernel(const fp8rt_profiler *profiler, uint32_t index,
                                             fp8rt_kernel *out_kernel);

/// Returns the seconds of steps outside kernels. With the seconds of all kernels
/// they are the time from beginning to end of fp8rt_session_step.
FP8RT_API double fp8rt_profiler_outside_seconds(const fp8rt_profiler *profiler);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_PROFILER_H
