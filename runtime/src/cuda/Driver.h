// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver API: the entry points that the runtime uses, found in a library when the first device
// is opened. Their types are declared here with cuda.h's ABI, so that the build needs no CUDA.

#ifndef FP8RT_CUDA_DRIVER_H
#define FP8RT_CUDA_DRIVER_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fp8rt::cuda {

// CUDA's names and numbers.
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_HANDLE = 400,
};

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};

/// Name, symbol and parameters of every entry point. Each returns a CUresult.
#define FP8RT_CUDA_FUNCTIONS(X)                                                                              \
  X(init, cuInit, (unsigned flags))                                                                          \
  X(driverGetVersion, cuDriverGetVersion, (int *version))                                                    \
  X(getErrorName, cuGetErrorName, (CUresult code, const char **name))                                        \
  X(getErrorString, cuGetErrorString, (CUresult code, const char **text))                                    \
  X(deviceGetCount, cuDeviceGetCount, (int *count))                                                          \
  X(deviceGet, cuDeviceGet, (CUdevice * device, int ordinal))                                                \
  X(deviceGetName, cuDeviceGetName, (char *name, int capacity, CUdevice device))                             \
  X(deviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                  \
  X(primaryRetain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                         \
  X(primaryRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                         \
  X(pushCurrent, cuCtxPushCurrent_v2, (CUcontext context))                                                   \
  X(popCurrent, cuCtxPopCurrent_v2, (CUcontext * context))                                                   \
  X(synchronize, cuCtxSynchronize, ())                                                                       \
  X(moduleLoadDataEx, cuModuleLoadDataEx,                                                                    \
    (CUmodule * module, const void *image, unsigned count, int *options, void **values))                     \
  X(moduleUnload, cuModuleUnload, (CUmodule module))                                                         \
  X(moduleGetFunction, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))      \
  X(moduleGetGlobal, cuModuleGetGlobal_v2,                                                                   \
    (CUdeviceptr * address, size_t *bytes, CUmodule module, const char *name))                               \
  X(funcSetAttribute, cuFuncSetAttribute, (CUfunction function, int attribute, int value))                   \
  X(launchKernelEx, cuLaunchKernelEx,                                                                        \
    (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))                    \
  X(memAlloc, cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                          \
  X(memFree, cuMemFree_v2, (CUdeviceptr address))                                                            \
  X(memGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                                              \
  X(memHostAlloc, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                            \
  X(memFreeHost, cuMemFreeHost, (void *address))                                                             \
  X(memHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                                   \
    (CUdeviceptr * address, void *host, unsigned flags))                                                     \
  X(copyToDevice, cuMemcpyHtoDAsync_v2,                                                                      \
    (CUdeviceptr target, const void *host, size_t bytes, CUstream stream))                                   \
  X(copyToHost, cuMemcpyDtoHAsync_v2, (void *host, CUdeviceptr source, size_t bytes, CUstream stream))       \
  X(copyOnDevice, cuMemcpyDtoDAsync_v2,                                                                      \
    (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream))                                 \
  X(setBytes, cuMemsetD8Async, (CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream))     \
  X(streamCreate, cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))             \
  X(streamDestroy, cuStreamDestroy_v2, (CUstream stream))                                                    \
  X(streamSynchronize, cuStreamSynchronize, (CUstream stream))                                               \
  X(streamWaitEvent, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                    \
  X(streamIsCapturing, cuStreamIsCapturing, (CUstream stream, int *status))                                  \
  X(streamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, int mode))                                \
  X(streamEndCapture, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                \
  X(graphInstantiate, cuGraphInstantiateWithFlags,                                                           \
    (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                                           \
  X(graphLaunch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                         \
  X(graphDestroy, cuGraphDestroy, (CUgraph graph))                                                           \
  X(graphExecDestroy, cuGraphExecDestroy, (CUgraphExec exec))                                                \
  X(eventCreate, cuEventCreate, (CUevent * event, unsigned flags))                                           \
  X(eventDestroy, cuEventDestroy_v2, (CUevent event))                                                        \
  X(eventRecord, cuEventRecord, (CUevent event, CUstream stream))                                            \
  X(eventElapsedTime, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                 \
  X(tensorMapEncodeTiled, cuTensorMapEncodeTiled,                                                            \
    (void *map, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,      \
     const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill))

/// Advice to the user of a process that has used CUDA and was forked then.
inline constexpr const char *kForkAdvice =
    "CUDA does not work in the fork of a process that has used it; start a process anew (in Python, "
    "multiprocessing's 'spawn')";

/// A driver that was found and initialised.
class Driver {
public:
  enum class Kind { GPU, Emulator };

  /// Finds the driver of GPUs, or the emulator, which lies beside this library; throws an Error that says
  /// where it was searched.
  explicit Driver(Kind kind);
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;
  ~Driver();

  /// Its version, as in 12040 for 12.4.
  int version() const;

  /// Throws an Error, which begins with `what`, unless `code` is success. Where a check of the program has
  /// ended the work of the context, it is the check's message.
  void check(CUresult code, const std::string &what) const;

  /// Throws an Error with the message of a check (Checks.h) if that is the reason of `code`.
  void failForCheck(CUresult code) const;
  /// Where a check that fails writes its message; null for none.
  void lookForChecksAt(const std::atomic<const char *> *record) const { failedCheck = record; }

  /// Returns the meaning of a code and its name.
  std::string describe(CUresult code) const;

#define FP8RT_CUDA_MEMBER(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  FP8RT_CUDA_FUNCTIONS(FP8RT_CUDA_MEMBER)
#undef FP8RT_CUDA_MEMBER

private:
  void load(Kind kind);
  void findFunctions();
  void initialise();

  void *handle = nullptr;
  std::string file;
  mutable std::atomic<const std::atomic<const char *> *> failedCheck{nullptr};
};

/// Returns whether the code tells of a kernel that ran, not of the call that returned it.
bool isOfAKernel(CUresult code);

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_DRIVER_H
