// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of a program (scales, amax history and whatever else its manifest
// lists, such as what it keeps in globals): one object shared by the sessions of all its entries.
//
// As safetensors, the state is one tensor per manifest entry under its own name
// plus the metadata `version` ("1"), `layout_hash` and `columns` (JSON).

#ifndef FP8RT_STATE_H
#define FP8RT_STATE_H

#include "fp8rt/library.h"
#include "fp8rt/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The state's tensors. Not for use by two threads at once.
typedef struct fp8rt_state fp8rt_state;

/// A state with the initial values of the manifest; without tensors where the
/// program has no FP8 state.
FP8RT_API fp8rt_status fp8rt_state_create(const fp8rt_library *library, fp8rt_state **out_state);

/// Gives the state up; sessions that use it keep it alive. NULL is allowed.
FP8RT_API void fp8rt_state_destroy(fp8rt_state *state);

/// The state tensor of that name, in place; NULL if there is none.
FP8RT_API const DLTensor *fp8rt_state_tensor(const fp8rt_state *state, const char *name);

/// Adds views of the state's tensors, and its metadata, to `tensors`.
FP8RT_API fp8rt_status fp8rt_state_export(const fp8rt_state *state, fp8rt_tensors *tensors);

/// Copies the state's values from `tensors`, after checking version, layout
/// hash, types and shapes: a failing import changes nothing. Tensors named
/// `carry.…` are not its business; any other stranger is an error.
FP8RT_API fp8rt_status fp8rt_state_import(fp8rt_state *state, const fp8rt_tensors *tensors);

/// Which rows of `amax_history` to take over where it has more or fewer than the
/// program's: row 0 (what the step under way has recorded) always, of the others, the
/// finished steps, the newest that there is room for, or the first of the file, which
/// are the oldest. Rows that are left are 0: older than all others after `newest`,
/// newer after `oldest`.
typedef enum fp8rt_history {
  FP8RT_HISTORY_EXACT = 0, ///< another length is an error
  FP8RT_HISTORY_NEWEST = 1,
  FP8RT_HISTORY_OLDEST = 2,
} fp8rt_history;

/// fp8rt_state_import, which is this with FP8RT_HISTORY_EXACT, for a program whose
/// history may have another length than the one that saved the state.
FP8RT_API fp8rt_status fp8rt_state_import_history(fp8rt_state *state, const fp8rt_tensors *tensors,
                                                  fp8rt_history history);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_STATE_H
