// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of a compiled library: what the compiler emits and what the runtime
// (or any other host program) calls. A compiled library exports
//
//   const char *fp8_manifest(void);               // JSON, valid for ever
//   int fp8_call_<entry>(fp8rt_call *call);       // one per entry function
//
// It has no global mutable state: calls that share no memory may run at the
// same time. It allocates nothing that outlives the call and frees nothing.

#ifndef FP8RT_CALL_H
#define FP8RT_CALL_H

#include "fp8rt/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The version of `fp8rt_call` that this header describes.
#define FP8RT_CALL_VERSION 1

/// Asked by the compiled code for the memory of a result whose shape is only
/// known while it runs. Fills `out_tensor`, which is `call->results[result]`:
/// data (64-byte aligned, or NULL for no elements), ndim and shape; strides
/// NULL, byte_offset 0. The memory is the host's and outlives the call.
/// Returns 0, or something else where there is no memory: the call then fails.
/// Called at most once per result and call, from the calling thread.
typedef int (*fp8rt_allocate_fn)(void *context, uint32_t result, const int64_t *shape, int32_t ndim,
                                 DLTensor *out_tensor);

/// One call of one entry. The caller owns everything in it, for the time of the
/// call; the fields are read only, and so are the tensors' descriptors except
/// those of results of dynamic shape.
typedef struct fp8rt_call {
  /// FP8RT_CALL_VERSION of the caller. Compiled code of another version fails
  /// with a message and touches nothing but `error`.
  uint32_t version;
  /// The lengths of `arguments` and `results`; they must be the manifest's.
  uint32_t num_arguments;
  uint32_t num_results;
  /// 0.
  uint32_t reserved;

  /// The arguments in the manifest's order: residuals of a pair, the user's,
  /// state. dtype, ndim and static dimensions must be the manifest's; the data
  /// row-major without gaps (strides NULL or saying just that). A tensor
  /// without elements may have NULL data. i1 is one byte per element, 0 or 1
  /// (kDLBool).
  ///
  /// Memory is written only for arguments that the manifest calls "written":
  /// state and carried ones that a result aliases. No two written arguments
  /// overlap, and none overlaps any other argument.
  DLTensor **arguments;

  /// The results in the manifest's order. Static shape: the caller has filled
  /// in the whole tensor, and the data is written before the call returns.
  /// Dynamic shape and no alias: only dtype and device are set, and `allocate`
  /// fills in the rest.
  ///
  /// A result with "alias": A in the manifest is computed in the memory of
  /// argument A, or is that argument unchanged where it is a residual. Its tensor may point to that very memory (the usual case), or
  /// elsewhere: then the final value is copied there too. The memory of any
  /// other result overlaps no argument and no other result.
  DLTensor **results;

  /// At least the entry's "workspace_bytes", aligned to "workspace_alignment";
  /// contents undefined before and after. NULL where the size is 0. Calls that
  /// run at the same time need one each.
  void *workspace;
  uint64_t workspace_bytes;

  /// A CUstream for device code, which the call only enqueues on; NULL on the
  /// CPU, where the call returns when the work is done.
  void *stream;

  /// For results of dynamic shape; may be NULL where the entry has none.
  fp8rt_allocate_fn allocate;
  void *allocate_context;

  /// Where a failing call leaves one line of text (UTF-8, ending in a NUL, no
  /// newline), cut to the capacity. Untouched by a call that succeeds. May be
  /// NULL, with capacity 0.
  char *error;
  uint64_t error_capacity;
} fp8rt_call;

/// The type of `fp8_call_<entry>`. Returns 0, or something else with a reason
/// in `call->error`. Wrong counts, shapes, types or sizes are found before
/// anything is written; after a failure later on, results and written arguments
/// hold nothing of use.
///
/// Sets the floating-point environment it needs (denormals are kept, rounding is
/// to nearest even, nothing traps) and restores the caller's.
typedef int (*fp8rt_call_fn)(fp8rt_call *call);

/// The type of `fp8_manifest`.
typedef const char *(*fp8rt_manifest_fn)(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_CALL_H
