// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: kernels, their attributes, how many are resident, and launching them.

#include "Registry.h"

#include <cstdint>
#include <vector>

using namespace fp8emu::cudart;

namespace {

struct Call {
  dim3 grid, block;
  size_t shared;
};
/// The configurations between <<<…>>> and the call of the kernel's stub.
struct Configuration {
  Call call;
  CUstream stream;
};
std::vector<Configuration> &configurations() {
  thread_local std::vector<Configuration> stack;
  return stack;
}

/// Refuses sizes that no device has; those that this one does not have the driver refuses, and says so.
void checkSizes(const dim3 &grid, const dim3 &block) {
  for (const dim3 &size : {grid, block})
    require(size.x && size.y && size.z, cudaErrorInvalidConfiguration);
  require(uint64_t(block.x) * block.y <= 1024 && uint64_t(block.x) * block.y * block.z <= 1024,
          cudaErrorInvalidConfiguration);
  require(grid.x <= INT32_MAX && grid.y <= UINT16_MAX && grid.z <= UINT16_MAX, cudaErrorInvalidConfiguration);
}

CUlaunchConfig configOf(const cudaLaunchConfig_t &config) {
  require(config.dynamicSmemBytes <= UINT32_MAX);
  return {config.gridDim.x,
          config.gridDim.y,
          config.gridDim.z,
          config.blockDim.x,
          config.blockDim.y,
          config.blockDim.z,
          unsigned(config.dynamicSmemBytes),
          config.stream,
          config.attrs,
          config.numAttrs};
}

cudaError_t launch(const void *kernel, const cudaLaunchConfig_t *config, void **parameters) {
  return enter([=] {
    require(config);
    CUfunction function = functionOf(kernel);
    checkSizes(config->gridDim, config->blockDim);
    const CUlaunchConfig wanted = configOf(*config);
    return cuLaunchKernelEx(&wanted, function, parameters, nullptr);
  });
}

/// CU_FUNC_ATTRIBUTE_…, by number.
int attributeOf(CUfunction function, int which) {
  int value = 0;
  check(cuFuncGetAttribute(&value, which, function));
  return value;
}

} // namespace

FP8CUDART_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream stream) {
  configurations().push_back({{grid, block, shared}, stream});
  return 0;
}
FP8CUDART_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  return enterWithoutContext([=] {
    require(!configurations().empty(), cudaErrorMissingConfiguration);
    const Configuration top = configurations().back();
    configurations().pop_back();
    *grid = top.call.grid;
    *block = top.call.block;
    *shared = top.call.shared;
    *static_cast<CUstream *>(stream) = top.stream;
    return cudaSuccess;
  });
}

FP8CUDART_API cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **parameters,
                                           size_t shared, cudaStream_t stream) {
  const cudaLaunchConfig_t config = {grid, block, shared, stream, nullptr, 0};
  return launch(kernel, &config, parameters);
}
FP8CUDART_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
                                             size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, parameters, shared, stream);
}
FP8CUDART_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel,
                                              void **parameters) {
  return launch(kernel, config, parameters);
}
FP8CUDART_API cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block,
                                                      void **parameters, size_t shared, cudaStream_t stream) {
  CUlaunchAttribute cooperative{};
  cooperative.id = 2; // cudaLaunchAttributeCooperative
  cooperative.value.flag = 1;
  const cudaLaunchConfig_t config = {grid, block, shared, stream, &cooperative, 1};
  return launch(kernel, &config, parameters);
}
FP8CUDART_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void *), void *data) {
  return forward(cuLaunchHostFunc, stream, function, data);
}

FP8CUDART_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *kernel) {
  return enter([=] {
    require(out);
    CUfunction function = functionOf(kernel);
    *out = {};
    out->maxThreadsPerBlock = attributeOf(function, 0);
    out->sharedSizeBytes = size_t(attributeOf(function, 1));
    out->constSizeBytes = size_t(attributeOf(function, 2));
    out->localSizeBytes = size_t(attributeOf(function, 3));
    out->numRegs = attributeOf(function, 4);
    out->ptxVersion = attributeOf(function, 5);
    out->binaryVersion = attributeOf(function, 6);
    out->cacheModeCA = attributeOf(function, 7);
    out->maxDynamicSharedSizeBytes = attributeOf(function, 8);
    out->preferredShmemCarveout = attributeOf(function, 9);
    out->clusterDimMustBeSet = attributeOf(function, 10);
    out->requiredClusterWidth = attributeOf(function, 11);
    out->requiredClusterHeight = attributeOf(function, 12);
    out->requiredClusterDepth = attributeOf(function, 13);
    out->nonPortableClusterSizeAllowed = attributeOf(function, 14);
    out->clusterSchedulingPolicyPreference = attributeOf(function, 15);
    return cudaSuccess;
  });
}
/// cudaFuncAttribute has the numbers of CU_FUNC_ATTRIBUTE_….
FP8CUDART_API cudaError_t cudaFuncSetAttribute(const void *kernel, int which, int value) {
  return enter([=] { return cuFuncSetAttribute(functionOf(kernel), which, value); });
}
FP8CUDART_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, int which, int value,
                                                          int device) {
  return enter([=] {
    if (device != currentDevice())
      return missing("cudaKernelSetAttributeForDevice of another device", "make the device current before");
    return cudaError_t(cuFuncSetAttribute(functionOf(kernel), which, value));
  });
}
FP8CUDART_API cudaError_t cudaFuncGetName(const char **name, const void *kernel) {
  return enter([=] { return cuFuncGetName(name, functionOf(kernel)); });
}
FP8CUDART_API cudaError_t cudaFuncGetParamInfo(const void *kernel, size_t index, size_t *offset,
                                               size_t *bytes) {
  return enter([=] { return cuFuncGetParamInfo(functionOf(kernel), index, offset, bytes); });
}
FP8CUDART_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *kernel) {
  return enter([=] {
    require(function);
    *function = functionOf(kernel);
    return cudaSuccess;
  });
}
// Hints.
FP8CUDART_API cudaError_t cudaFuncSetCacheConfig(const void *kernel, int) {
  return enter([=] { return functionOf(kernel) ? cudaSuccess : cudaErrorInvalidDeviceFunction; });
}
FP8CUDART_API cudaError_t cudaFuncSetSharedMemConfig(const void *kernel, int config) {
  return cudaFuncSetCacheConfig(kernel, config);
}

FP8CUDART_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                                 const void *kernel,
                                                                                 int threads, size_t shared,
                                                                                 unsigned flags) {
  return enter([=] {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, functionOf(kernel), threads, shared,
                                                                flags);
  });
}
FP8CUDART_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel,
                                                                        int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared, 0);
}
FP8CUDART_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *kernel,
                                                                    int blocks, int threads) {
  return enter(
      [=] { return cuOccupancyAvailableDynamicSMemPerBlock(bytes, functionOf(kernel), blocks, threads); });
}
FP8CUDART_API cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel,
                                                         const cudaLaunchConfig_t *config) {
  return enter([=] {
    require(config);
    const CUlaunchConfig wanted = configOf(*config);
    return cuOccupancyMaxActiveClusters(clusters, functionOf(kernel), &wanted);
  });
}
FP8CUDART_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *blocks, const void *kernel,
                                                               const cudaLaunchConfig_t *config) {
  return enter([=] {
    require(config);
    const CUlaunchConfig wanted = configOf(*config);
    return cuOccupancyMaxPotentialClusterSize(blocks, functionOf(kernel), &wanted);
  });
}

FP8CUDART_API cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *image, int *options,
                                              void **values, unsigned count, int *own, void **ownValues,
                                              unsigned ownCount) {
  return forward(cuLibraryLoadData, library, image, options, values, count, own, ownValues, ownCount);
}
FP8CUDART_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path, int *options,
                                                  void **values, unsigned count, int *own, void **ownValues,
                                                  unsigned ownCount) {
  return forward(cuLibraryLoadFromFile, library, path, options, values, count, own, ownValues, ownCount);
}
FP8CUDART_API cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return forward(cuLibraryUnload, library);
}
FP8CUDART_API cudaError_t cudaLibraryGetKernel(CUkernel *kernel, cudaLibrary_t library, const char *name) {
  return forward(cuLibraryGetKernel, kernel, library, name);
}
FP8CUDART_API cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library) {
  return forward(cuLibraryGetKernelCount, count, library);
}
FP8CUDART_API cudaError_t cudaLibraryEnumerateKernels(CUkernel *kernels, unsigned count,
                                                      cudaLibrary_t library) {
  return forward(cuLibraryEnumerateKernels, kernels, count, library);
}
FP8CUDART_API cudaError_t cudaLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, cudaLibrary_t library,
                                               const char *name) {
  return forward(cuLibraryGetGlobal, address, bytes, library, name);
}
FP8CUDART_API cudaError_t cudaLibraryGetManaged(CUdeviceptr *address, size_t *bytes, cudaLibrary_t library,
                                                const char *name) {
  return forward(cuLibraryGetManaged, address, bytes, library, name);
}
