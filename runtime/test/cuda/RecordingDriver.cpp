// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA driver for tests: it passes every call on to the emulator, counts calls and what is there to be
// given back, and fails one call on request. The functions of RecordingDriver.h control it.

#include "RecordingDriver.h"

#include "../../src/cuda/Driver.h"

#include <cstring>
#include <dlfcn.h>
#include <set>
#include <string>

using namespace fp8rt::cuda;

namespace {

enum Role { Uses = 0, Makes = 1, Ends = -1 };

struct Record {
  int64_t calls = 0, failAt = 0, live = 0;
  CUresult failure = CUDA_SUCCESS;
  const char *failed = "", *failNext = "";
  int version = 0;
  std::set<std::string> reached;
} record;

void *emulated(const char *symbol) {
  static void *emulator = dlopen(EMULATOR, RTLD_NOW | RTLD_LOCAL);
  return emulator ? dlsym(emulator, symbol) : nullptr;
}

/// Counts a call; returns whether it is to fail.
bool fails(const char *symbol) {
  record.reached.insert(symbol);
  bool isIt = ++record.calls == record.failAt || !std::strcmp(symbol, record.failNext);
  if (isIt) {
    record.failed = symbol;
    record.failNext = "";
  }
  return isIt;
}

/// A function that ends something (destroys, frees, unloads) does so even where it is told to fail: a
/// driver's does too, and returns the error of earlier work.
template <typename... Arguments>
CUresult forward(const char *symbol, Role role, Arguments... arguments) {
  bool isToFail = fails(symbol);
  if (isToFail && role != Ends)
    return record.failure;
  CUresult code = reinterpret_cast<CUresult (*)(Arguments...)>(emulated(symbol))(arguments...);
  if (code == CUDA_SUCCESS)
    record.live += role;
  return isToFail ? record.failure : code;
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void recordingFailAt(int64_t call, int code) {
  record.calls = 0;
  record.failAt = call;
  record.failure = code;
  record.failed = "";
  record.reached.clear();
}
EXPORT void recordingFailNext(const char *symbol, int code) {
  record.failNext = symbol;
  record.failure = code;
}
EXPORT int64_t recordingCalls() { return record.calls; }
EXPORT const char *recordingFailed() { return record.failed; }
EXPORT bool recordingReached(const char *symbol) { return record.reached.count(symbol) != 0; }
EXPORT int64_t recordingLive() { return record.live; }
EXPORT void recordingSetVersion(int version) { record.version = version; }

// The driver's entry points, whose names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)
#define DRIVER_FUNCTION(NAME, PARAMETERS) EXPORT CUresult NAME PARAMETERS

DRIVER_FUNCTION(cuInit, (unsigned flags)) { return forward("cuInit", Uses, flags); }
DRIVER_FUNCTION(cuGetErrorName, (CUresult code, const char **name)) {
  return forward("cuGetErrorName", Uses, code, name);
}
DRIVER_FUNCTION(cuGetErrorString, (CUresult code, const char **text)) {
  return forward("cuGetErrorString", Uses, code, text);
}
DRIVER_FUNCTION(cuDeviceGetCount, (int *count)) { return forward("cuDeviceGetCount", Uses, count); }
DRIVER_FUNCTION(cuDeviceGet, (CUdevice * device, int ordinal)) {
  return forward("cuDeviceGet", Uses, device, ordinal);
}
DRIVER_FUNCTION(cuDeviceGetName, (char *name, int capacity, CUdevice device)) {
  return forward("cuDeviceGetName", Uses, name, capacity, device);
}
DRIVER_FUNCTION(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device)) {
  return forward("cuDeviceGetAttribute", Uses, value, attribute, device);
}
DRIVER_FUNCTION(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device)) {
  return forward("cuDevicePrimaryCtxRetain", Makes, context, device);
}
DRIVER_FUNCTION(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) {
  return forward("cuDevicePrimaryCtxRelease_v2", Ends, device);
}
DRIVER_FUNCTION(cuCtxPushCurrent_v2, (CUcontext context)) {
  return forward("cuCtxPushCurrent_v2", Makes, context);
}
DRIVER_FUNCTION(cuCtxPopCurrent_v2, (CUcontext * context)) {
  return forward("cuCtxPopCurrent_v2", Ends, context);
}
DRIVER_FUNCTION(cuCtxSynchronize, ()) { return forward("cuCtxSynchronize", Uses); }
DRIVER_FUNCTION(cuModuleLoadDataEx,
                (CUmodule * module, const void *image, unsigned count, int *options, void **values)) {
  return forward("cuModuleLoadDataEx", Makes, module, image, count, options, values);
}
DRIVER_FUNCTION(cuModuleUnload, (CUmodule module)) { return forward("cuModuleUnload", Ends, module); }
DRIVER_FUNCTION(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name)) {
  return forward("cuModuleGetFunction", Uses, function, module, name);
}
DRIVER_FUNCTION(cuModuleGetGlobal_v2,
                (CUdeviceptr * address, size_t *bytes, CUmodule module, const char *name)) {
  return forward("cuModuleGetGlobal_v2", Uses, address, bytes, module, name);
}
DRIVER_FUNCTION(cuFuncSetAttribute, (CUfunction function, int attribute, int value)) {
  return forward("cuFuncSetAttribute", Uses, function, attribute, value);
}
DRIVER_FUNCTION(cuLaunchKernelEx,
                (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)) {
  return forward("cuLaunchKernelEx", Uses, config, function, parameters, extra);
}
DRIVER_FUNCTION(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes)) {
  return forward("cuMemAlloc_v2", Makes, address, bytes);
}
DRIVER_FUNCTION(cuMemFree_v2, (CUdeviceptr address)) { return forward("cuMemFree_v2", Ends, address); }
DRIVER_FUNCTION(cuMemGetInfo_v2, (size_t *free, size_t *total)) {
  return forward("cuMemGetInfo_v2", Uses, free, total);
}
DRIVER_FUNCTION(cuMemHostAlloc, (void **address, size_t bytes, unsigned flags)) {
  return forward("cuMemHostAlloc", Makes, address, bytes, flags);
}
DRIVER_FUNCTION(cuMemFreeHost, (void *address)) { return forward("cuMemFreeHost", Ends, address); }
DRIVER_FUNCTION(cuMemHostGetDevicePointer_v2, (CUdeviceptr * address, void *host, unsigned flags)) {
  return forward("cuMemHostGetDevicePointer_v2", Uses, address, host, flags);
}
DRIVER_FUNCTION(cuMemcpyHtoDAsync_v2, (CUdeviceptr target, const void *host, size_t bytes, CUstream stream)) {
  return forward("cuMemcpyHtoDAsync_v2", Uses, target, host, bytes, stream);
}
DRIVER_FUNCTION(cuMemcpyDtoHAsync_v2, (void *host, CUdeviceptr source, size_t bytes, CUstream stream)) {
  return forward("cuMemcpyDtoHAsync_v2", Uses, host, source, bytes, stream);
}
DRIVER_FUNCTION(cuMemcpyDtoDAsync_v2,
                (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)) {
  return forward("cuMemcpyDtoDAsync_v2", Uses, target, source, bytes, stream);
}
DRIVER_FUNCTION(cuMemsetD8Async, (CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream)) {
  return forward("cuMemsetD8Async", Uses, target, value, bytes, stream);
}
DRIVER_FUNCTION(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority)) {
  return forward("cuStreamCreateWithPriority", Makes, stream, flags, priority);
}
DRIVER_FUNCTION(cuStreamDestroy_v2, (CUstream stream)) { return forward("cuStreamDestroy_v2", Ends, stream); }
DRIVER_FUNCTION(cuStreamSynchronize, (CUstream stream)) {
  return forward("cuStreamSynchronize", Uses, stream);
}
DRIVER_FUNCTION(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags)) {
  return forward("cuStreamWaitEvent", Uses, stream, event, flags);
}
DRIVER_FUNCTION(cuStreamIsCapturing, (CUstream stream, int *status)) {
  return forward("cuStreamIsCapturing", Uses, stream, status);
}
DRIVER_FUNCTION(cuStreamBeginCapture_v2, (CUstream stream, int mode)) {
  return forward("cuStreamBeginCapture_v2", Makes, stream, mode);
}
DRIVER_FUNCTION(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) {
  return forward("cuGraphInstantiateWithFlags", Makes, exec, graph, flags);
}
DRIVER_FUNCTION(cuGraphLaunch, (CUgraphExec exec, CUstream stream)) {
  return forward("cuGraphLaunch", Uses, exec, stream);
}
DRIVER_FUNCTION(cuGraphDestroy, (CUgraph graph)) { return forward("cuGraphDestroy", Ends, graph); }
DRIVER_FUNCTION(cuGraphExecDestroy, (CUgraphExec exec)) { return forward("cuGraphExecDestroy", Ends, exec); }
DRIVER_FUNCTION(cuEventCreate, (CUevent * event, unsigned flags)) {
  return forward("cuEventCreate", Makes, event, flags);
}
DRIVER_FUNCTION(cuEventDestroy_v2, (CUevent event)) { return forward("cuEventDestroy_v2", Ends, event); }
DRIVER_FUNCTION(cuEventRecord, (CUevent event, CUstream stream)) {
  return forward("cuEventRecord", Uses, event, stream);
}
DRIVER_FUNCTION(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end)) {
  return forward("cuEventElapsedTime", Uses, milliseconds, start, end);
}
DRIVER_FUNCTION(cuTensorMapEncodeTiled,
                (void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
                 const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                 int swizzle, int promotion, int fill)) {
  return forward("cuTensorMapEncodeTiled", Uses, map, type, rank, address, sizes, strides, box, steps,
                 interleave, swizzle, promotion, fill);
}

DRIVER_FUNCTION(cuDriverGetVersion, (int *version)) {
  CUresult code = forward("cuDriverGetVersion", Uses, version);
  if (code == CUDA_SUCCESS && record.version)
    *version = record.version;
  return code;
}

/// It ends a capture and makes a graph, but not where it fails.
DRIVER_FUNCTION(cuStreamEndCapture, (CUstream stream, CUgraph *graph)) {
  CUresult code = forward("cuStreamEndCapture", Ends, stream, graph);
  if (code == CUDA_SUCCESS) {
    ++record.live;
  } else if (*graph) {
    reinterpret_cast<CUresult (*)(CUgraph)>(emulated("cuGraphDestroy"))(*graph);
    *graph = nullptr;
  }
  return code;
}
// NOLINTEND(readability-identifier-naming)
