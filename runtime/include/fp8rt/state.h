// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of a program (scales, amax history and any other tensor that its
// manifest lists, such as those that the program keeps in globals): one object,
// shared by the sessions of all its entry points.
//
// As safetensors, the state is one tensor per manifest entry under its own name
// plus the metadata `version` ("1"), `layout_hash`, `columns` (JSON) and `fp8_checksum`, which the writer
// computes and the reader compares.

#ifndef FP8RT_STATE_H
#define FP8RT_STATE_H

#include "fp8rt/library.h"
#include "fp8rt/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The tensors of a state. Only one thread may use it at a time.
typedef struct fp8rt_state fp8rt_state;

/// Creates a state with the initial values of the manifest; it has no tensors if
/// the program has no FP8 state.
FP8RT_API fp8rt_status fp8rt_state_create(const fp8rt_library *library, fp8rt_state **out_state);

/// Releases the handle; sessions that use the state keep it alive. NULL is
/// allowed.
FP8RT_API void fp8rt_state_destroy(fp8rt_state *state);

/// Returns the state tensor of that name, not a copy; NULL if there is none.
FP8RT_API const DLTensor *fp8rt_state_tensor(const fp8rt_state *state, const char *name);

/// Adds views of the state's tensors, and its metadata, to `tensors`. Tensors that are
/// computed from arguments (casts of weights) are left out.
FP8RT_API fp8rt_status fp8rt_state_export(const fp8rt_state *state, fp8rt_tensors *tensors);

/// Copies the state's values from `tensors`, after checking version, layout
/// hash, types and shapes; a failing import changes nothing. Tensors named
/// `carry.…` are ignored; any other unknown tensor is an error.
FP8RT_API fp8rt_status fp8rt_state_import(fp8rt_state *state, const fp8rt_tensors *tensors);

/// The rows of `amax_history` to import if the file has more or fewer than the program. Row 0, the amaxes of
/// the current step, is always imported. Of the other rows, the finished steps, NEWEST imports the newest and
/// OLDEST the oldest that fit. The remaining rows become 0: with NEWEST those of the oldest steps, with
/// OLDEST those of the newest.
typedef enum fp8rt_history {
  FP8RT_HISTORY_EXACT = 0, ///< another length is an error
  FP8RT_HISTORY_NEWEST = 1,
  FP8RT_HISTORY_OLDEST = 2,
} fp8rt_history;

/// As fp8rt_state_import, for a program whose history may have another length
/// than that of the file. fp8rt_state_import uses FP8RT_HISTORY_EXACT.
FP8RT_API fp8rt_status fp8rt_state_import_history(fp8rt_state *state, const fp8rt_tensors *tensors,
                                                  fp8rt_history history);

/// How to import a state that another program saved.
typedef struct fp8rt_import_options {
  fp8rt_history history;
  /// Whether any difference is an error (FP8RT_MISMATCH), except of the history's length if `history` says
  /// what to do with it.
  int32_t strict;
  /// Is called with a line for each difference before the state changes; may be NULL.
  void (*report)(void *context, const char *difference);
  void *report_context;
} fp8rt_import_options;

/// As fp8rt_state_import, for a program with other columns than those of the file: columns are matched by
/// site and tensor. A column that the file does not have begins anew (scale 1, no amaxes), one that the
/// program does not have is left out. Of several columns that the program has one for, it takes the largest
/// amaxes and the smallest scale; in another format the scale is multiplied by the quotient of the largest
/// values. Tensors beside scale and amax_history
/// are matched by name: one that is missing is FP8RT_NOT_FOUND, one too many is left out. A state that shares
/// no column with the program is FP8RT_MISMATCH; a failing import changes nothing.
FP8RT_API fp8rt_status fp8rt_state_import_matching(fp8rt_state *state, const fp8rt_tensors *tensors,
                                                   const fp8rt_import_options *options);

/// Renames sites in a state that was read or exported: from[i] and all sites below it ("h0" is also "h0/fc")
/// become to[i]; of several rules the first that applies counts. Carried arguments (`carry.NAME`) and
/// other tensors of the state are renamed alike. A rule that applies to nothing is FP8RT_NOT_FOUND.
FP8RT_API fp8rt_status fp8rt_tensors_rename_sites(fp8rt_tensors *tensors, const char *const *from,
                                                  const char *const *to, uint32_t count);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_STATE_H
