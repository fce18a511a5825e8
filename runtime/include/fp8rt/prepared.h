// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calling an entry point on the caller's own memory with little overhead: types
// and shapes are checked once, and a call passes pointers only. Nothing is
// copied, allocated or carried; the caller passes the values of the next step.
// (session.h does all of that.)

#ifndef FP8RT_PREPARED_H
#define FP8RT_PREPARED_H

#include "fp8rt/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An entry point that is ready to be called, with a workspace. Only one thread
/// may use it at a time; each thread prepares its own. It keeps the library and
/// the state alive.
typedef struct fp8rt_prepared fp8rt_prepared;

/// Prepares calls of an entry point. `arguments` and `results` describe the
/// tensors that every call will pass, in the manifest's order and of all kinds:
/// device, dtype, shape and strides are checked, the data is ignored. Either may
/// be NULL, and so may each description: the shape is then the manifest's, which
/// must be static, or for a result that aliases an argument, that argument's.
///
/// `state` may be NULL; otherwise a call may leave out state arguments (and the
/// results that alias them), and uses the tensors of `state`.
///
/// Returns FP8RT_INVALID_ARGUMENT if the numbers of arguments and results are not
/// the entry point's, FP8RT_MISMATCH if a type or shape is not.
FP8RT_API fp8rt_status fp8rt_prepare(const fp8rt_library *library, const char *entry, fp8rt_state *state,
                                     const DLTensor *const *arguments, uint32_t num_arguments,
                                     const DLTensor *const *results, uint32_t num_results,
                                     fp8rt_prepared **out_prepared);

/// NULL is allowed.
FP8RT_API void fp8rt_prepared_destroy(fp8rt_prepared *prepared);

/// Calls the entry point. `arguments` and `results` hold one pointer each to
/// row-major elements in host memory, aligned to the element (on a device:
/// fp8rt_prepare_on). call.h describes which memory is written and which may
/// overlap.
///
/// A null pointer for a state argument means the tensor of the state, for a
/// result that aliases an argument that argument's memory; otherwise only tensors
/// without elements may have a null pointer. A result of dynamic shape must turn
/// out to have the shape that it was prepared with.
///
/// Returns FP8RT_CALL_FAILED, with the error of the compiled code, if that fails.
FP8RT_API fp8rt_status fp8rt_prepared_call(fp8rt_prepared *prepared, void *const *arguments,
                                           void *const *results);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_PREPARED_H
