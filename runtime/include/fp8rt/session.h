// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running an entry point of a compiled library step by step. A session owns its
// buffers: arguments, of which carried ones are updated in place, results, and
// one workspace. The FP8 state, also updated in place, can be shared.

#ifndef FP8RT_SESSION_H
#define FP8RT_SESSION_H

#include "fp8rt/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One entry point with its buffers. Only one thread may use it at a time;
/// several sessions with different states may run at the same time.
typedef struct fp8rt_session fp8rt_session;

/// Creates a session for an entry point. `state` may be shared with other
/// sessions, and may be NULL if the entry point has no state arguments.
FP8RT_API fp8rt_status fp8rt_session_create(const fp8rt_library *library, const char *entry,
                                            fp8rt_state *state, fp8rt_session **out_session);

/// Frees the session's buffers. NULL is allowed.
FP8RT_API void fp8rt_session_destroy(fp8rt_session *session);

/// Find the index of the user argument or result with `key`: its number among
/// the user's ones (which is its index unless the entry point is part of a
/// pair), or its name if that is unique.
FP8RT_API fp8rt_status fp8rt_session_find_argument(const fp8rt_session *session, const char *key,
                                                   uint32_t *out_index);
FP8RT_API fp8rt_status fp8rt_session_find_result(const fp8rt_session *session, const char *key,
                                                 uint32_t *out_index);

/// Copies `tensor` into the session's buffer of a user argument. Type and shape
/// must be the argument's; a signless integer argument (i8…i64) accepts signed
/// and unsigned integers. On a device (gpu.h) the tensor may lie there or in host memory.
FP8RT_API fp8rt_status fp8rt_session_set_argument(fp8rt_session *session, uint32_t index,
                                                  const DLTensor *tensor);

/// Uses the caller's memory for a user or residual argument that is not
/// written, without a copy. The memory must be aligned to the element, and stay
/// valid until the argument is replaced or the session is destroyed. A session on a
/// device takes memory of that device.
FP8RT_API fp8rt_status fp8rt_session_bind_argument(fp8rt_session *session, uint32_t index,
                                                   const DLTensor *tensor);

/// Fills every user argument that has no value yet with zeros.
FP8RT_API fp8rt_status fp8rt_session_zero_missing(fp8rt_session *session);

/// Runs the entry point once. Afterwards carried arguments and state have their
/// new values. An argument without a value is FP8RT_NOT_FOUND. If the compiled
/// code itself fails, carried arguments and state may be partly updated, and
/// every later step of this session fails.
FP8RT_API fp8rt_status fp8rt_session_step(fp8rt_session *session);

/// Return the current value of an argument, or a result of the last step (a
/// carried result shares its argument's memory); NULL out of range or without a
/// value. Valid until the next call on this session. On a device they are copies in
/// host memory; NULL if a copy fails, and fp8rt_last_error says why.
FP8RT_API const DLTensor *fp8rt_session_argument(const fp8rt_session *session, uint32_t index);
FP8RT_API const DLTensor *fp8rt_session_result(const fp8rt_session *session, uint32_t index);

/// The same where they lie: on a device (gpu.h), tensors there, as fp8rt_session_bind_argument
/// takes them for another session.
FP8RT_API const DLTensor *fp8rt_session_argument_in_place(const fp8rt_session *session, uint32_t index);
FP8RT_API const DLTensor *fp8rt_session_result_in_place(const fp8rt_session *session, uint32_t index);

/// Adds views of the carried arguments (on a device: copies) to `tensors` as `carry.<name>`, with the
/// index in place of a name that is empty, a number or not unique.
FP8RT_API fp8rt_status fp8rt_session_export_carried(const fp8rt_session *session, fp8rt_tensors *tensors);

/// Copies the values of all carried arguments from `tensors`, which must have
/// each of them with its type and shape; a failing import changes nothing.
FP8RT_API fp8rt_status fp8rt_session_import_carried(fp8rt_session *session, const fp8rt_tensors *tensors);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_SESSION_H
