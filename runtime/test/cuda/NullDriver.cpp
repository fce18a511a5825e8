// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA driver with one GPU that does nothing and counts its calls: what is left is the time of the callers.

#include "../../src/cuda/Driver.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <string>

using namespace fp8rt::cuda;

#define EXPORT extern "C" __attribute__((visibility("default")))

static std::map<std::string, int64_t> &counts() {
  static std::map<std::string, int64_t> all;
  return all;
}
/// Handles and addresses: never null, aligned as a driver's are.
static uint64_t next = 1 << 20;

/// The calls of a function since the last time that this was asked.
EXPORT int64_t nullDriverTake(const char *symbol) {
  int64_t &count = counts()[symbol], taken = count;
  count = 0;
  return taken;
}

#define NOTHING(SYMBOL)                                                                                      \
  EXPORT CUresult SYMBOL() {                                                                                 \
    static int64_t &count = counts()[#SYMBOL];                                                               \
    ++count;                                                                                                 \
    return CUDA_SUCCESS;                                                                                     \
  }
// Of C: arguments that are not looked at may be left out.
NOTHING(cuInit)
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuCtxPushCurrent_v2)
NOTHING(cuCtxPopCurrent_v2)
NOTHING(cuCtxSynchronize)
NOTHING(cuModuleUnload)
NOTHING(cuFuncSetAttribute)
NOTHING(cuLaunchKernelEx)
NOTHING(cuMemFree_v2)
NOTHING(cuMemFreeHost)
NOTHING(cuMemcpyHtoDAsync_v2)
NOTHING(cuMemcpyDtoHAsync_v2)
NOTHING(cuMemcpyDtoDAsync_v2)
NOTHING(cuMemsetD8Async)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamWaitEvent)
NOTHING(cuStreamBeginCapture_v2)
NOTHING(cuGraphLaunch)
NOTHING(cuGraphDestroy)
NOTHING(cuGraphExecDestroy)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuTensorMapEncodeTiled)

/// A function whose first argument is filled in.
#define MAKES(SYMBOL)                                                                                        \
  EXPORT CUresult SYMBOL(uint64_t *out) {                                                                    \
    static int64_t &count = counts()[#SYMBOL];                                                               \
    ++count;                                                                                                 \
    *out = next += 4096;                                                                                     \
    return CUDA_SUCCESS;                                                                                     \
  }
MAKES(cuDevicePrimaryCtxRetain)
MAKES(cuModuleLoadDataEx)
MAKES(cuModuleGetFunction)
MAKES(cuStreamCreateWithPriority)
MAKES(cuEventCreate)
MAKES(cuGraphInstantiateWithFlags)

EXPORT CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorName(CUresult, const char **name) {
  *name = "none";
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorString(CUresult, const char **text) {
  *text = "none";
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetName(char *name, int capacity, CUdevice) {
  std::strncpy(name, "GPU that does nothing", static_cast<size_t>(capacity));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  constexpr int kMajor = 75, kMinor = 76;
  *value = attribute == kMajor ? 9 : attribute == kMinor ? 0 : 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, CUmodule, const char *) {
  *address = next += 1 << 20;
  *bytes = 1 << 20;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  static int64_t &count = counts()["cuMemAlloc_v2"];
  ++count;
  *address = next;
  next += (bytes + 255) / 256 * 256;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = *total = size_t(1) << 40;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  *address = operator new(bytes);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostGetDevicePointer_v2(uint64_t *address, void *host, unsigned) {
  *address = reinterpret_cast<uintptr_t>(host);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamIsCapturing(CUstream, int *status) {
  *status = 0;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamEndCapture_v2(CUstream, uint64_t *graph) {
  *graph = next += 4096;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamEndCapture(CUstream stream, uint64_t *graph) {
  return cuStreamEndCapture_v2(stream, graph);
}
EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  *milliseconds = 0;
  return CUDA_SUCCESS;
}
