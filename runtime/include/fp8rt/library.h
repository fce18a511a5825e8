// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading a compiled library (call.h) and querying the arguments and results of
// its entry points.

#ifndef FP8RT_LIBRARY_H
#define FP8RT_LIBRARY_H

#include "fp8rt/call.h"
#include "fp8rt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A loaded library with its checked manifest. Immutable: threads may share it.
typedef struct fp8rt_library fp8rt_library;

/// The provider of an argument, or the receiver of a result.
typedef enum fp8rt_kind {
  /// The user; numbered as in the source program.
  FP8RT_KIND_USER = 0,
  /// The FP8 state (state.h).
  FP8RT_KIND_STATE = 1,
  /// A residual, passed from the first to the second function of a pair.
  FP8RT_KIND_RESIDUAL = 2
} fp8rt_kind;

/// An argument or result. Pointers are valid as long as the library.
typedef struct fp8rt_value {
  /// Its name in the program; may be empty and need not be unique.
  const char *name;
  /// The element type in MLIR's syntax, as in "bf16".
  const char *type;
  DLDataType dtype;
  int32_t ndim;
  /// The sizes; -1 for a dynamic one.
  const int64_t *shape;
  fp8rt_kind kind;
  /// The result that becomes this argument in the next step, or -1.
  int32_t carry;
  /// The argument in whose memory this result is computed, or which this
  /// residual is; or -1.
  int32_t alias;
  /// Whether this argument is written by a call.
  int32_t written;
} fp8rt_value;

/// Loads a library and checks its manifest: version, known types, entry
/// symbols, consistent carries, aliases and state; and that this machine has what
/// the code needs (FP8RT_UNSUPPORTED names the processor's features that it
/// lacks; nothing else of the library has run by then). A path without a slash is a
/// file of the working directory.
FP8RT_API fp8rt_status fp8rt_library_load(const char *path, fp8rt_library **out_library);

/// Releases the handle; sessions and states of the library keep it loaded. NULL
/// is allowed.
FP8RT_API void fp8rt_library_destroy(fp8rt_library *library);

/// Returns the text of the manifest.
FP8RT_API const char *fp8rt_library_manifest(const fp8rt_library *library);

/// Return the number of entry points, and the name of one; NULL out of range.
FP8RT_API uint32_t fp8rt_library_num_entries(const fp8rt_library *library);
FP8RT_API const char *fp8rt_library_entry_name(const fp8rt_library *library, uint32_t index);

/// Returns the numbers of arguments and results of an entry point.
FP8RT_API fp8rt_status fp8rt_library_counts(const fp8rt_library *library, const char *entry,
                                            uint32_t *out_num_arguments, uint32_t *out_num_results);

/// Describe argument or result `index` of an entry point.
FP8RT_API fp8rt_status fp8rt_library_argument(const fp8rt_library *library, const char *entry, uint32_t index,
                                              fp8rt_value *out_value);
FP8RT_API fp8rt_status fp8rt_library_result(const fp8rt_library *library, const char *entry, uint32_t index,
                                            fp8rt_value *out_value);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_LIBRARY_H
