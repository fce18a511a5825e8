// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: versions, errors, and the common ground of all entry points.

#include "Runtime.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

using namespace fp8emu::cudart;

namespace {
thread_local cudaError_t lastError = cudaSuccess;

struct Named {
  cudaError_t code;
  const char *name, *text;
};
/// The codes that the runtime names differently from the driver, or that the driver does not have.
const Named kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaError_t(3), "cudaErrorInitializationError", nullptr},
    {cudaError_t(4), "cudaErrorCudartUnloading", nullptr},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration", "a launch without its configuration"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaError_t(100), "cudaErrorNoDevice", nullptr},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaError_t(200), "cudaErrorInvalidKernelImage", nullptr},
    {cudaError_t(201), "cudaErrorDeviceUninitialized", nullptr},
    {cudaError_t(209), "cudaErrorNoKernelImageForDevice", nullptr},
    {cudaError_t(215), "cudaErrorUnsupportedLimit", nullptr},
    {cudaError_t(218), "cudaErrorInvalidPtx", nullptr},
    {cudaError_t(301), "cudaErrorFileNotFound", nullptr},
    {cudaError_t(304), "cudaErrorOperatingSystem", nullptr},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaError_t(401), "cudaErrorIllegalState", nullptr},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorNotReady, "cudaErrorNotReady", nullptr},
    {cudaError_t(700), "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaError_t(701), "cudaErrorLaunchOutOfResources", nullptr},
    {cudaError_t(702), "cudaErrorLaunchTimeout", nullptr},
    {cudaError_t(709), "cudaErrorContextIsDestroyed", nullptr},
    {cudaError_t(710), "cudaErrorAssert", nullptr},
    {cudaError_t(712), "cudaErrorHostMemoryAlreadyRegistered", nullptr},
    {cudaError_t(713), "cudaErrorHostMemoryNotRegistered", nullptr},
    {cudaError_t(714), "cudaErrorHardwareStackError", nullptr},
    {cudaError_t(715), "cudaErrorIllegalInstruction", nullptr},
    {cudaError_t(716), "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaError_t(719), "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaError_t(720), "cudaErrorCooperativeLaunchTooLarge", nullptr},
    {cudaError_t(721), "cudaErrorTensorMemoryLeak", nullptr},
    {cudaError_t(800), "cudaErrorNotPermitted", nullptr},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaError_t(900), "cudaErrorStreamCaptureUnsupported", nullptr},
    {cudaError_t(901), "cudaErrorStreamCaptureInvalidated", nullptr},
    {cudaError_t(902), "cudaErrorStreamCaptureMerge", nullptr},
    {cudaError_t(903), "cudaErrorStreamCaptureUnmatched", nullptr},
    {cudaError_t(904), "cudaErrorStreamCaptureUnjoined", nullptr},
    {cudaError_t(910), "cudaErrorGraphExecUpdateFailure", nullptr},
    {cudaError_t(912), "cudaErrorInvalidClusterSize", nullptr},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"}};

const Named *find(cudaError_t code) {
  for (const Named &entry : kErrors)
    if (entry.code == code)
      return &entry;
  return nullptr;
}
} // namespace

cudaError_t fp8emu::cudart::record(cudaError_t code) {
  // Work that goes on is no error.
  if (code != cudaSuccess && code != cudaErrorNotReady)
    lastError = code;
  return code;
}

cudaError_t fp8emu::cudart::missing(const char *name, const char *reason) {
  static std::mutex mutex;
  static auto *said = new std::set<std::string>();
  std::lock_guard<std::mutex> lock(mutex);
  if (said->insert(name).second)
    std::fprintf(stderr, "fp8emu: %s is not supported: %s\n", name, reason);
  return record(cudaErrorNotSupported);
}

FP8CUDART_API cudaError_t cudaGetLastError() {
  const cudaError_t code = lastError;
  lastError = cudaSuccess;
  return code;
}
FP8CUDART_API cudaError_t cudaPeekAtLastError() { return lastError; }

FP8CUDART_API const char *cudaGetErrorName(cudaError_t code) {
  const Named *found = find(code);
  return found ? found->name : "unrecognized error code";
}

FP8CUDART_API const char *cudaGetErrorString(cudaError_t code) {
  const Named *found = find(code);
  if (found && found->text)
    return found->text;
  const char *text = nullptr;
  cuGetErrorString(CUresult(code), &text);
  return text ? text : "unrecognized error code";
}

FP8CUDART_API cudaError_t cudaDriverGetVersion(int *version) {
  return enterWithoutContext([=] { return cuDriverGetVersion(version); });
}
FP8CUDART_API cudaError_t cudaRuntimeGetVersion(int *version) {
  return enterWithoutContext([=] {
    require(version);
    *version = kVersion;
    return cudaSuccess;
  });
}

FP8CUDART_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **entry, unsigned version,
                                                           unsigned long long flags, int *status) {
  return enterWithoutContext([=] {
    int found = 0;
    check(cuGetProcAddress_v2(symbol, entry, int(version), flags, &found));
    if (status)
      *status = found;
    return status || found == 0 ? cudaSuccess : cudaErrorSymbolNotFound;
  });
}
FP8CUDART_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **entry, unsigned long long flags,
                                                  int *status) {
  return cudaGetDriverEntryPointByVersion(symbol, entry, unsigned(kVersion), flags, status);
}

// The emulator's profile is one of the whole process (FP8EMU_PROFILE).
FP8CUDART_API cudaError_t cudaProfilerStart() { return cudaSuccess; }
FP8CUDART_API cudaError_t cudaProfilerStop() { return cudaSuccess; }
