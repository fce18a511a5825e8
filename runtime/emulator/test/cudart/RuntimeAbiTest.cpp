// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's own declarations against driver_types.h, where one is installed: numbers, and how
// structures lie in memory.

#include "cudart/Abi.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstddef>
#include <cstdlib>
#include <stdint.h>

namespace cuda {
#include <cuda.h>
#include <driver_types.h>
} // namespace cuda

namespace {

#define SAME_SIZE(name) static_assert(sizeof(::name) == sizeof(cuda::name), #name)
#define SAME_PLACE(type, own, theirs)                                                                        \
  static_assert(offsetof(::type, own) == offsetof(cuda::type, theirs), #theirs)

SAME_SIZE(dim3);
SAME_SIZE(cudaExtent);
SAME_SIZE(cudaPitchedPtr);
SAME_PLACE(cudaPitchedPtr, ysize, ysize);
SAME_SIZE(cudaChannelFormatDesc);
SAME_SIZE(cudaMemcpy3DParms);
SAME_PLACE(cudaMemcpy3DParms, from.array, srcArray);
SAME_PLACE(cudaMemcpy3DParms, from.pos, srcPos);
SAME_PLACE(cudaMemcpy3DParms, from.ptr, srcPtr);
SAME_PLACE(cudaMemcpy3DParms, to.ptr, dstPtr);
SAME_PLACE(cudaMemcpy3DParms, extent, extent);
SAME_PLACE(cudaMemcpy3DParms, kind, kind);
SAME_SIZE(cudaMemcpy3DPeerParms);
SAME_PLACE(cudaMemcpy3DPeerParms, to.side.array, dstArray);
SAME_PLACE(cudaMemcpy3DPeerParms, extent, extent);
SAME_SIZE(cudaLaunchConfig_t);
SAME_PLACE(cudaLaunchConfig_t, dynamicSmemBytes, dynamicSmemBytes);
SAME_PLACE(cudaLaunchConfig_t, attrs, attrs);
SAME_PLACE(cudaLaunchConfig_t, numAttrs, numAttrs);
static_assert(sizeof(CUlaunchAttribute) == sizeof(cuda::cudaLaunchAttribute));
static_assert(offsetof(CUlaunchAttribute, value) == offsetof(cuda::cudaLaunchAttribute, val));
SAME_SIZE(cudaFuncAttributes);
SAME_PLACE(cudaFuncAttributes, maxThreadsPerBlock, maxThreadsPerBlock);
SAME_PLACE(cudaFuncAttributes, ptxVersion, ptxVersion);
SAME_PLACE(cudaFuncAttributes, maxDynamicSharedSizeBytes, maxDynamicSharedSizeBytes);
SAME_PLACE(cudaFuncAttributes, requiredClusterDepth, requiredClusterDepth);
SAME_PLACE(cudaFuncAttributes, nonPortableClusterSizeAllowed, nonPortableClusterSizeAllowed);
static_assert(offsetof(cudaPointerAttributes12, hostPointer) ==
              offsetof(cuda::cudaPointerAttributes, hostPointer));
SAME_SIZE(cudaKernelNodeParams);
SAME_PLACE(cudaKernelNodeParams, sharedMemBytes, sharedMemBytes);
SAME_PLACE(cudaKernelNodeParams, extra, extra);
SAME_SIZE(cudaGraphNodeParams);
SAME_PLACE(cudaGraphNodeParams, of.kernel, kernel);
SAME_PLACE(cudaGraphNodeParams, of.copy.copyParams, memcpy.copyParams);
// Nodes of these kinds are given to the driver as they are.
static_assert(sizeof(CUDA_HOST_NODE_PARAMS) == sizeof(cuda::cudaHostNodeParams));
static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == sizeof(cuda::cudaMemsetParams));
static_assert(offsetof(CUDA_MEMSET_NODE_PARAMS, elementSize) ==
              offsetof(cuda::cudaMemsetParams, elementSize));
static_assert(offsetof(CUDA_MEMSET_NODE_PARAMS, height) == offsetof(cuda::cudaMemsetParams, height));
static_assert(sizeof(CUmemPoolProps) == sizeof(cuda::cudaMemPoolProps));
static_assert(sizeof(CUmemLocation) == sizeof(cuda::cudaMemLocation));
static_assert(sizeof(CUgraphExecUpdateResultInfo) == sizeof(cuda::cudaGraphExecUpdateResultInfo));
static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == sizeof(cuda::cudaGraphInstantiateParams));

#if CUDA_VERSION >= 13000
using Properties = cudaDeviceProp13;
static_assert(sizeof(cudaPointerAttributes13) == sizeof(cuda::cudaPointerAttributes));
#else
using Properties = cudaDeviceProp12;
static_assert(sizeof(cudaPointerAttributes12) == sizeof(cuda::cudaPointerAttributes));
#endif
#define SAME_PROPERTY(name)                                                                                  \
  static_assert(offsetof(Properties, name) == offsetof(cuda::cudaDeviceProp, name), #name)
static_assert(sizeof(Properties) == sizeof(cuda::cudaDeviceProp));
SAME_PROPERTY(totalGlobalMem);
SAME_PROPERTY(regsPerBlock);
SAME_PROPERTY(maxGridSize);
SAME_PROPERTY(major);
SAME_PROPERTY(multiProcessorCount);
SAME_PROPERTY(canMapHostMemory);
SAME_PROPERTY(surfaceAlignment);
SAME_PROPERTY(concurrentKernels);
SAME_PROPERTY(unifiedAddressing);
SAME_PROPERTY(l2CacheSize);
SAME_PROPERTY(localL1CacheSupported);
SAME_PROPERTY(sharedMemPerMultiprocessor);
SAME_PROPERTY(managedMemory);
SAME_PROPERTY(cooperativeLaunch);
SAME_PROPERTY(sharedMemPerBlockOptin);
SAME_PROPERTY(accessPolicyMaxWindowSize);
SAME_PROPERTY(reservedSharedMemPerBlock);
SAME_PROPERTY(memoryPoolsSupported);
SAME_PROPERTY(clusterLaunch);
SAME_PROPERTY(unifiedFunctionPointers);

TEST(RuntimeAbi, ErrorsHaveTheirNumbers) {
#define SAME(name) EXPECT_EQ(int(::name), int(cuda::name))
  SAME(cudaErrorInvalidValue);
  SAME(cudaErrorMemoryAllocation);
  SAME(cudaErrorInvalidConfiguration);
  SAME(cudaErrorInvalidPitchValue);
  SAME(cudaErrorInvalidSymbol);
  SAME(cudaErrorInvalidMemcpyDirection);
  SAME(cudaErrorMissingConfiguration);
  SAME(cudaErrorInvalidDeviceFunction);
  SAME(cudaErrorInvalidDevice);
  SAME(cudaErrorInvalidResourceHandle);
  SAME(cudaErrorSymbolNotFound);
  SAME(cudaErrorNotReady);
  SAME(cudaErrorNotSupported);
  SAME(cudaErrorUnknown);
}

/// The runtime returns the driver's codes as they are.
TEST(RuntimeAbi, ErrorsOfTheDriverHaveTheSameNumbers) {
#define ALIKE(name, other) EXPECT_EQ(int(::name), int(cuda::other))
  ALIKE(CUDA_ERROR_NOT_INITIALIZED, cudaErrorInitializationError);
  ALIKE(CUDA_ERROR_NO_DEVICE, cudaErrorNoDevice);
  ALIKE(CUDA_ERROR_INVALID_IMAGE, cudaErrorInvalidKernelImage);
  ALIKE(CUDA_ERROR_NO_BINARY_FOR_GPU, cudaErrorNoKernelImageForDevice);
  ALIKE(CUDA_ERROR_INVALID_PTX, cudaErrorInvalidPtx);
  ALIKE(CUDA_ERROR_INVALID_HANDLE, cudaErrorInvalidResourceHandle);
  ALIKE(CUDA_ERROR_ILLEGAL_ADDRESS, cudaErrorIllegalAddress);
  ALIKE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, cudaErrorLaunchOutOfResources);
  ALIKE(CUDA_ERROR_LAUNCH_TIMEOUT, cudaErrorLaunchTimeout);
  ALIKE(CUDA_ERROR_ASSERT, cudaErrorAssert);
  ALIKE(CUDA_ERROR_MISALIGNED_ADDRESS, cudaErrorMisalignedAddress);
  ALIKE(CUDA_ERROR_LAUNCH_FAILED, cudaErrorLaunchFailure);
  ALIKE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cudaErrorCooperativeLaunchTooLarge);
  ALIKE(CUDA_ERROR_NOT_SUPPORTED, cudaErrorNotSupported);
  ALIKE(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cudaErrorStreamCaptureUnjoined);
  ALIKE(CUDA_ERROR_INVALID_CLUSTER_SIZE, cudaErrorInvalidClusterSize);
}

} // namespace
