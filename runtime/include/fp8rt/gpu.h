// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running a library on a GPU, or on the emulator of one: a program opens the device for the library, and
// creates states and sessions there. Everything else is as on the CPU (session.h, state.h): tensors are
// copied to and from the host by the same functions, and state files have the same bytes.

#ifndef FP8RT_GPU_H
#define FP8RT_GPU_H

#include "fp8rt/prepared.h"
#include "fp8rt/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A device with the kernels of one library. Only one thread may use it, with its states and sessions, at a
/// time; another thread opens the device again.
typedef struct fp8rt_gpu fp8rt_gpu;

/// Opens a device for a library: "cuda" or "cuda:N", a GPU by the driver's number; "emulator", the emulator
/// of the library's chip (libfp8emu.so beside this library). The environment's FP8RT_CUDA_DRIVER names
/// another driver than libcuda.so.1.
///
/// Returns FP8RT_DEVICE if there is no driver or no GPU, or if the driver is too old for the library's PTX;
/// FP8RT_MISMATCH if the library is for another chip; FP8RT_UNSUPPORTED if it is for the CPU. The error
/// says what to do. A process that is forked later cannot use the handle, but may release it.
FP8RT_API fp8rt_status fp8rt_gpu_open(const char *name, const fp8rt_library *library, fp8rt_gpu **out_gpu);

/// Releases the handle; states and sessions keep the device open. NULL is allowed.
FP8RT_API void fp8rt_gpu_close(fp8rt_gpu *gpu);

/// Returns the name of the device, as its driver has it.
FP8RT_API const char *fp8rt_gpu_name(const fp8rt_gpu *gpu);

/// Returns where the device's memory is, in tensors' descriptions: kDLCUDA and the driver's number.
FP8RT_API DLDevice fp8rt_gpu_place(const fp8rt_gpu *gpu);

/// Finds the compute capability of a GPU without opening it, as in 9 and 0 of an H100. `name` is "cuda" or
/// "cuda:N"; the emulator has devices of all chips (FP8RT_INVALID_ARGUMENT).
FP8RT_API fp8rt_status fp8rt_gpu_capability(const char *name, int32_t *out_major, int32_t *out_minor);

/// Creates a tensor in the memory of the device: row-major, aligned to 256 bytes, with undefined elements.
/// The device stays open for it, and any thread may call its deleter. Memory of deleted tensors is kept for
/// the next ones, which wait for work of the device where its stream may still use it.
FP8RT_API fp8rt_status fp8rt_gpu_tensor_create(const fp8rt_gpu *gpu, DLDataType dtype, const int64_t *shape,
                                               int32_t ndim, DLManagedTensor **out_tensor);

/// Copies bytes from the host to the device's memory, or from there, after the work of `stream` (a CUstream
/// of the device's primary context; NULL is its default stream), and returns when they are copied.
FP8RT_API fp8rt_status fp8rt_gpu_write(const fp8rt_gpu *gpu, void *target, const void *host, uint64_t bytes,
                                       void *stream);
FP8RT_API fp8rt_status fp8rt_gpu_read(const fp8rt_gpu *gpu, void *host, const void *source, uint64_t bytes,
                                      void *stream);
/// Enqueues a copy within the device's memory on `stream`.
FP8RT_API fp8rt_status fp8rt_gpu_copy(const fp8rt_gpu *gpu, void *target, const void *source, uint64_t bytes,
                                      void *stream);
/// Waits for the work of `stream`.
FP8RT_API fp8rt_status fp8rt_gpu_wait(const fp8rt_gpu *gpu, void *stream);

/// Creates a state of the library in the memory of the device. fp8rt_state_tensor returns tensors there;
/// fp8rt_state_export adds copies in host memory.
FP8RT_API fp8rt_status fp8rt_state_create_on(const fp8rt_gpu *gpu, fp8rt_state **out_state);

/// Creates a session for an entry point of the library on the device. `state`, which may be NULL as for
/// fp8rt_session_create, must have been created on the same handle.
///
/// A step returns when its work is done. From its second step on, an entry point that the compiler calls
/// capturable, and that has no `checks`, is replayed as a graph, unless the environment says FP8RT_GRAPH=0;
/// with FP8RT_CHECKS=later one that has checks is too. With FP8RT_SYNC=1 each
/// kernel is waited for, so that an error names the kernel that failed.
FP8RT_API fp8rt_status fp8rt_session_create_on(const fp8rt_gpu *gpu, const char *entry, fp8rt_state *state,
                                               fp8rt_session **out_session);

/// Prepares calls of an entry point on the device, as fp8rt_prepare does on the CPU: descriptions say the
/// device's memory (kDLCUDA and its number), and `state` must have been created on the same handle.
///
/// fp8rt_prepared_call takes addresses in that memory, aligned to 16 bytes, and returns when the work is
/// done. Work that the caller has enqueued on tensors of the call must be done before.
FP8RT_API fp8rt_status fp8rt_prepare_on(const fp8rt_gpu *gpu, const char *entry, fp8rt_state *state,
                                        const DLTensor *const *arguments, uint32_t num_arguments,
                                        const DLTensor *const *results, uint32_t num_results,
                                        fp8rt_prepared **out_prepared);

/// Like fp8rt_prepared_call, but enqueues the work on `stream`, a CUstream of the device's primary context;
/// NULL is its default stream. Returns before the work is done, unless the entry point reads values of the
/// device or allocates memory, which the manifest tells by `capturable`; work of a capturable entry point may
/// be captured. The `checks` of the manifest are waited for unless the work is captured or the environment
/// says FP8RT_CHECKS=later; a check that is not waited for and fails ends all work of the process on the
/// device, and later calls of this library return FP8RT_CALL_FAILED with its message. Calls that run at the
/// same time need one handle each: they share a workspace otherwise. The handle may be destroyed before its
/// work is done, but not before a graph that has captured its work. A caller that reads what the work writes
/// waits for the stream first; fp8rt_state_export does not.
///
/// A kernel that fails is an error of a later call or of the caller's own wait; with FP8RT_SYNC=1 the call
/// waits for each kernel. Returns FP8RT_INVALID_ARGUMENT if the entry point was prepared for the CPU.
FP8RT_API fp8rt_status fp8rt_prepared_enqueue(fp8rt_prepared *prepared, void *const *arguments,
                                              void *const *results, void *stream);

/// Like fp8rt_prepared_enqueue with a workspace of the caller: `workspace_bytes` of the manifest in the
/// device's memory, aligned to 256 bytes, which must stay until the work is done. Calls with workspaces of
/// their own may run at the same time, if they are enqueued one after the other. The handle allocates a
/// workspace at its first call without one, which therefore cannot be captured.
FP8RT_API fp8rt_status fp8rt_prepared_enqueue_in(fp8rt_prepared *prepared, void *const *arguments,
                                                 void *const *results, void *workspace, void *stream);

/// Like fp8rt_prepared_call on tensors in host memory, for an entry point that was prepared on a device:
/// copies the arguments to the device, waits for the work, and copies the results back. The handle keeps
/// memory on the device for all of them. Threads take turns.
FP8RT_API fp8rt_status fp8rt_prepared_call_from_host(fp8rt_prepared *prepared, void *const *arguments,
                                                     void *const *results);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_GPU_H
