// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of a compiled library, which the compiler emits and the runtime (or
// any other host program) calls. A compiled library exports
//
//   const char *fp8_manifest(void);               // JSON; never freed
//   const char *fp8_kernels(void);                // the same; may be absent
//   int fp8_call_<entry>(fp8rt_call *call);       // one per entry point
//
// and, if its kernels run on a device, fp8_device_code (device.h).
//
// It has no global mutable state: calls that share no memory may run at the
// same time. It allocates nothing that outlives the call and frees nothing.

#ifndef FP8RT_CALL_H
#define FP8RT_CALL_H

#include "fp8rt/communicator.h"
#include "fp8rt/device.h"
#include "fp8rt/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The newest version of `fp8rt_call`, which this header describes. The manifest's "call" says which version
/// a library takes: 2 if it uses `device` or `communicator`, else 1, which is also the default.
#define FP8RT_CALL_VERSION 2

/// A function of the host that the compiled code calls to allocate a result of
/// dynamic shape. It fills in `out_tensor`, which is `call->results[result]`:
/// data (64-byte aligned, or NULL for no elements), ndim and shape; strides
/// NULL, byte_offset 0. The host owns the memory, which must outlive the call.
/// Returns 0, or another value if out of memory, which makes the call fail.
/// Called at most once per result and call, from the calling thread.
typedef int (*fp8rt_allocate_fn)(void *context, uint32_t result, const int64_t *shape, int32_t ndim,
                                 DLTensor *out_tensor);

/// Receives the ends of kernels during a call, to measure their times: the
/// compiled code calls `record` from the calling thread after each kernel of the
/// entry point. `kernel` is its position in the list of `fp8_kernels`, or -1 where
/// other code has ended. (Code at the end of a call is not recorded.) `profile` is
/// this struct, which may be the first member of the caller's own.
typedef struct fp8rt_profile {
  void (*record)(struct fp8rt_profile *profile, int32_t kernel);
} fp8rt_profile;

/// A flag of `fp8rt_call.flags`: the struct has the field `profile`. Compiled code
/// that knows nothing of profiles ignores it.
#define FP8RT_CALL_HAS_PROFILE 1

/// A flag of `fp8rt_call.flags`: an earlier call of the entry point had tensors of the same types and shapes,
/// and succeeded, so that compiled code need not check the tensors again. Their data must be as in any call.
#define FP8RT_CALL_IS_CHECKED 2

/// One call of one entry point. The caller owns everything in it. The compiled
/// code does not change the fields, nor the tensors' descriptors except those of
/// results of dynamic shape.
typedef struct fp8rt_call {
  /// The version that the library takes. Compiled code of another version fails
  /// with a message in `error` and changes nothing else.
  uint32_t version;
  /// The lengths of `arguments` and `results`; they must be the manifest's.
  uint32_t num_arguments;
  uint32_t num_results;
  /// FP8RT_CALL_HAS_PROFILE, FP8RT_CALL_IS_CHECKED, both or 0.
  uint32_t flags;

  /// The arguments in the manifest's order: residuals of a pair, the user's,
  /// state. dtype, ndim and static dimensions must be the manifest's; the data
  /// must be row-major without gaps (strides NULL or the corresponding values).
  /// A tensor without elements may have NULL data. i1 is one byte per element,
  /// 0 or 1 (kDLBool).
  ///
  /// Memory is written only for arguments that the manifest calls "written":
  /// state and carried ones that a result aliases. No two written arguments
  /// overlap, and none overlaps any other argument.
  DLTensor **arguments;

  /// The results in the manifest's order. For a result of static shape the
  /// caller fills in the whole tensor, and the call writes its data. For one of
  /// dynamic shape without alias the caller sets only dtype and device, and
  /// `allocate` fills in the rest.
  ///
  /// A result with "alias": A in the manifest is computed in the memory of
  /// argument A; a residual may be that argument, unchanged. Its tensor may point
  /// to that memory (the usual case) or to other memory, into which the final
  /// value is then copied. The memory of any other result must not overlap an
  /// argument or another result.
  DLTensor **results;

  /// Scratch memory of at least the entry's "workspace_bytes", aligned to
  /// "workspace_alignment"; its contents are undefined before and after. NULL if
  /// the size is 0. Calls that run at the same time need one each.
  void *workspace;
  uint64_t workspace_bytes;

  /// The CUstream on which `device` enqueues the work of the call; NULL is the
  /// default stream. Ignored on the CPU, where the call returns when the work is
  /// done.
  void *stream;

  /// Allocates results of dynamic shape; may be NULL if the entry has none.
  fp8rt_allocate_fn allocate;
  void *allocate_context;

  /// A buffer into which a failing call writes one line of text (UTF-8, ending
  /// in a NUL, no newline), truncated to the capacity. A call that succeeds does
  /// not change it. May be NULL, with capacity 0.
  char *error;
  uint64_t error_capacity;

  /// Measures the call; NULL for none. Read only with FP8RT_CALL_HAS_PROFILE: the
  /// struct of older callers ends before it.
  fp8rt_profile *profile;

  /// Since version 2. The device that runs the kernels of this call; NULL for a library without device code.
  /// Data of arguments and results, and the workspace, are then memory of that device. The host code calls
  /// its functions from the calling thread and does not keep it.
  const fp8rt_device *device;

  /// Since version 2. Performs the collectives of a program for several ranks; NULL on one rank, where every
  /// collective is a copy. The host code calls its functions from the calling thread and does not keep it.
  const fp8rt_communicator *communicator;
} fp8rt_call;

/// The type of `fp8_call_<entry>`. Returns 0, or another value with the reason
/// in `call->error`. Wrong counts, shapes, types or sizes, and null pointers in
/// the call or its tensors, are reported before anything is written; after a later failure the contents of
/// results and written arguments are undefined.
///
/// Sets the floating-point environment that it needs (denormals are kept,
/// rounding is to nearest even, nothing traps) and restores the caller's.
typedef int (*fp8rt_call_fn)(fp8rt_call *call);

/// The type of `fp8_manifest`.
typedef const char *(*fp8rt_manifest_fn)(void);

/// The type of `fp8_kernels`, which returns JSON:
///   {"sites": [name, …], "kernels": [{"name", "kind", "sites": [number, …],
///    "read", "written", "operations"}, …]}
/// `kind` is products, epilogues, casts, history, rows, reductions,
/// elementwise, copies or other; the numbers are positions in the list of sites.
/// Per call, "read" and "written" are bytes of the buffers that the kernel accesses,
/// each distinct one once, and "operations" floating-point operations, two for a
/// multiply-add; null if not known before the call.
typedef const char *(*fp8rt_kernels_fn)(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_CALL_H
