// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: initialisation, errors by name, entry points by name.

#include "Driver.h"

#include <cstring>
#include <dlfcn.h>

using namespace fp8emu::driver;

static constexpr int kDriverVersion = 13000;

FP8EMU_API CUresult cuInit(unsigned flags) {
  return enter(
      [=](Driver &driver) {
        require(flags == 0);
        require(!driver.devices.empty(), CUDA_ERROR_NO_DEVICE);
        driver.initialized = true;
      },
      /*needsInit=*/false);
}

FP8EMU_API CUresult cuDriverGetVersion(int *version) {
  return enter(
      [=](Driver &) {
        require(version);
        *version = kDriverVersion;
      },
      /*needsInit=*/false);
}

namespace {
struct Named {
  CUresult code;
  const char *name, *text;
};
// The meanings of the codes, in words of our own.
const Named kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "an argument is not valid"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "no memory is left"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "cuInit was not called"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE",
     "there is no device (FP8EMU_CHIP names none that is known)"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "there is no device of that number"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "the module is not PTX text"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "no context is current"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "the module has no PTX that the device runs: machine code (a cubin) alone, or PTX for another chip"},
    {CUDA_ERROR_UNSUPPORTED_LIMIT, "CUDA_ERROR_UNSUPPORTED_LIMIT", "the device has no such limit"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "the PTX does not parse, or has unknown instructions"},
    {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "the file cannot be read"},
    {CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "the file cannot be written"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "the handle is not one of the driver's"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the object is not in the state for that"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "there is nothing of that name"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "work is still to be done"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel touched memory that is not its own"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "the kernel needs more threads, registers or shared memory than there are"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the kernel does not end"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context was destroyed"},
    {CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT", "an assertion of a kernel failed"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "the memory is registered already"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "the memory was not registered"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "a stream that is captured cannot do that"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "an error has ended the capture"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would become one"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "the capture was not begun in this stream"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "work of another stream does not lead back to the one that is captured"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, "CUDA_ERROR_HARDWARE_STACK_ERROR",
     "a kernel's call stack is too small"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel met an illegal instruction"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS",
     "a kernel used an address that is not aligned"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "a cooperative grid must fit on the device at once"},
    {CUDA_ERROR_TENSOR_MEMORY_LEAK, "CUDA_ERROR_TENSOR_MEMORY_LEAK",
     "a block ended without giving back its tensor memory"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "that is not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "that is not supported"},
    {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph has other nodes or edges than the one that is updated"},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE",
     "the grid does not divide into such clusters"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

CUresult describe(CUresult code, const char **out, bool name) {
  if (!out)
    return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  for (const Named &entry : kErrors)
    if (entry.code == code) {
      *out = name ? entry.name : entry.text;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}
} // namespace

FP8EMU_API CUresult cuGetErrorName(CUresult code, const char **out) { return describe(code, out, true); }
FP8EMU_API CUresult cuGetErrorString(CUresult code, const char **out) { return describe(code, out, false); }

namespace {
/// Entry points whose arguments changed, and the version of CUDA that changed them:
/// programs that ask for an older one get the entry point before.
struct Since {
  const char *symbol;
  int version;
};
const Since kSince[] = {{"cuCtxCreate_v3", 11040},
                        {"cuCtxCreate_v4", 12050},
                        {"cuDeviceGetUuid_v2", 11040},
                        {"cuMemAdvise_v2", 12020},
                        {"cuMemPrefetchAsync_v2", 12020},
                        {"cuGetProcAddress_v2", 12000},
                        {"cuEventElapsedTime_v2", 12080},
                        {"cuStreamGetCaptureInfo_v2", 11030},
                        {"cuStreamGetCaptureInfo_v3", 12030},
                        {"cuGraphAddDependencies_v2", 12030},
                        {"cuGraphRemoveDependencies_v2", 12030},
                        {"cuGraphGetEdges_v2", 12030},
                        {"cuGraphAddNode_v2", 12030},
                        {"cuGraphAddKernelNode_v2", 12000},
                        {"cuGraphKernelNodeGetParams_v2", 12000},
                        {"cuGraphKernelNodeSetParams_v2", 12000},
                        {"cuGraphExecKernelNodeSetParams_v2", 12000},
                        {"cuGraphExecUpdate_v2", 12000},
                        {"cuGraphNodeGetDependencies_v2", 12030},
                        {"cuGraphNodeGetDependentNodes_v2", 12030}};

bool isNewer(const std::string &symbol, int version) {
  for (const Since &entry : kSince)
    if (symbol == entry.symbol)
      return version < entry.version;
  return false;
}
} // namespace

/// The entry point of that name in the newest version that `version` of CUDA knows, as
/// the ABI has it: cuMemAlloc is cuMemAlloc_v2.
static void *findEntry(const std::string &symbol, int version) {
  Dl_info self;
  static int anchor;
  if (symbol.empty() || !dladdr(&anchor, &self))
    return nullptr;
  void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return nullptr;
  void *found = nullptr;
  // "cuGraphInstantiate" has stood for the one with flags since CUDA 12.
  bool withFlags = symbol == "cuGraphInstantiate" && version >= 12000;
  std::string name = withFlags ? "cuGraphInstantiateWithFlags" : symbol;
  for (const char *suffix : {"_v4", "_v3", "_v2", ""})
    if (!found && !isNewer(name + suffix, version))
      found = dlsym(library, (name + suffix).c_str());
  dlclose(library);
  return found;
}

FP8EMU_API CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t, int *status) {
  if (!symbol || !out)
    return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  if (version > kDriverVersion)
    return CUDA_ERROR_INVALID_VALUE;
  *out = findEntry(symbol, version);
  // CU_GET_PROC_ADDRESS_SUCCESS, _SYMBOL_NOT_FOUND, _VERSION_NOT_SUFFICIENT
  if (status)
    *status = *out ? 0 : findEntry(symbol, kDriverVersion) ? 2 : 1;
  return CUDA_SUCCESS;
}

FP8EMU_API CUresult cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
  CUresult code = cuGetProcAddress_v2(symbol, out, version, flags, nullptr);
  // The only way to say it, before there was a status.
  return code == CUDA_SUCCESS && !*out ? CUDA_ERROR_NOT_FOUND : code;
}
