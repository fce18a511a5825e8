// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calling an entry on the caller's own memory with little time between calls:
// types and shapes are checked once, a call passes pointers alone. Nothing is
// copied, allocated or carried: values of the next step are the caller's to
// pass. (session.h does all of that.)

#ifndef FP8RT_PREPARED_H
#define FP8RT_PREPARED_H

#include "fp8rt/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An entry ready to be called, with a workspace. Not for use by two threads at
/// once: each prepares its own. It keeps library and state loaded.
typedef struct fp8rt_prepared fp8rt_prepared;

/// Prepares calls of an entry. `arguments` and `results` describe what every
/// call will pass, in the manifest's order, all kinds included: device, dtype,
/// shape and strides are checked, the data is ignored. Either may be NULL, and so
/// may each description: the manifest's own shape then counts, which must be
/// static unless it is a result that aliases an argument, whose shape it has.
///
/// `state` may be NULL; otherwise state arguments (and the results that alias
/// them) that a call leaves out are its tensors.
///
/// FP8RT_INVALID_ARGUMENT where the numbers are not the entry's,
/// FP8RT_MISMATCH where a type or shape is not.
FP8RT_API fp8rt_status fp8rt_prepare(const fp8rt_library *library, const char *entry, fp8rt_state *state,
                                     const DLTensor *const *arguments, uint32_t num_arguments,
                                     const DLTensor *const *results, uint32_t num_results,
                                     fp8rt_prepared **out_prepared);

/// NULL is allowed.
FP8RT_API void fp8rt_prepared_destroy(fp8rt_prepared *prepared);

/// Calls the entry. `arguments` and `results` hold one pointer each to row-major
/// elements in host memory, aligned to the element. call.h says what is written,
/// and what may overlap.
///
/// A null pointer stands for the state's tensor at a state argument, and for the
/// argument's memory at a result that aliases it; elsewhere only tensors
/// without elements may have one. A result of dynamic shape must get the shape
/// it was prepared with.
///
/// FP8RT_CALL_FAILED with the compiled code's own words.
FP8RT_API fp8rt_status fp8rt_prepared_call(fp8rt_prepared *prepared, void *const *arguments,
                                           void *const *results);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_PREPARED_H
