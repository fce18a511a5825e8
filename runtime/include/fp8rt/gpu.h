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

/// Creates a state of the library in the memory of the device. fp8rt_state_tensor returns tensors there;
/// fp8rt_state_export adds copies in host memory.
FP8RT_API fp8rt_status fp8rt_state_create_on(const fp8rt_gpu *gpu, fp8rt_state **out_state);

/// Creates a session for an entry point of the library on the device. `state`, which may be NULL as for
/// fp8rt_session_create, must have been created on the same handle.
///
/// A step returns when its work is done. From its second step on, an entry point that the compiler calls
/// capturable is replayed as a graph, unless the environment says FP8RT_GRAPH=0. With FP8RT_SYNC=1 each
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
/// be captured. Calls that run at the same time need one handle each: they share a workspace otherwise. The
/// handle may be destroyed before its work is done, but not before a graph that has captured its work. A
/// caller that reads what the work writes waits for the stream first; fp8rt_state_export does not.
///
/// A kernel that fails is an error of a later call or of the caller's own wait; with FP8RT_SYNC=1 the call
/// waits for each kernel. Returns FP8RT_INVALID_ARGUMENT if the entry point was prepared for the CPU.
FP8RT_API fp8rt_status fp8rt_prepared_enqueue(fp8rt_prepared *prepared, void *const *arguments,
                                              void *const *results, void *stream);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_GPU_H
