// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's own declarations against cuda.h, where one is installed: numbers, and how
// structures lie in memory.

#include "driver/Abi.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdint.h>

namespace cuda {
#include <cuda.h>
} // namespace cuda

namespace {

#define SAME_SIZE(name) static_assert(sizeof(::name) == sizeof(cuda::name), #name)
#define SAME_PLACE(type, own, theirs)                                                                        \
  static_assert(offsetof(::type, own) == offsetof(cuda::type, theirs), #theirs)

SAME_SIZE(CUlaunchConfig);
SAME_PLACE(CUlaunchConfig, hStream, hStream);
SAME_PLACE(CUlaunchConfig, attrs, attrs);
SAME_PLACE(CUlaunchConfig, numAttrs, numAttrs);
SAME_SIZE(CUlaunchAttribute);
SAME_PLACE(CUlaunchAttribute, value, value);
SAME_SIZE(CUtensorMap);
SAME_SIZE(CUDA_MEMCPY3D);
SAME_PLACE(CUDA_MEMCPY3D, from.type, srcMemoryType);
SAME_PLACE(CUDA_MEMCPY3D, from.host, srcHost);
SAME_PLACE(CUDA_MEMCPY3D, from.device, srcDevice);
SAME_PLACE(CUDA_MEMCPY3D, from.pitch, srcPitch);
SAME_PLACE(CUDA_MEMCPY3D, from.height, srcHeight);
SAME_PLACE(CUDA_MEMCPY3D, to.x, dstXInBytes);
SAME_PLACE(CUDA_MEMCPY3D, to.device, dstDevice);
SAME_PLACE(CUDA_MEMCPY3D, width, WidthInBytes);
SAME_PLACE(CUDA_MEMCPY3D, depth, Depth);
SAME_SIZE(CUDA_MEMCPY2D);
SAME_PLACE(CUDA_MEMCPY2D, from.pitch, srcPitch);
SAME_PLACE(CUDA_MEMCPY2D, to.device, dstDevice);
SAME_PLACE(CUDA_MEMCPY2D, height, Height);
SAME_SIZE(CUDA_MEMSET_NODE_PARAMS);
SAME_PLACE(CUDA_MEMSET_NODE_PARAMS, elementSize, elementSize);
SAME_PLACE(CUDA_MEMSET_NODE_PARAMS, height, height);
SAME_SIZE(CUDA_HOST_NODE_PARAMS);
SAME_SIZE(CUDA_KERNEL_NODE_PARAMS);
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS, launch.sharedBytes, sharedMemBytes);
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS, launch.parameters, kernelParams);
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS, kernel, kern);
SAME_SIZE(CUDA_KERNEL_NODE_PARAMS_v1);
SAME_SIZE(CUgraphNodeParams);
SAME_PLACE(CUgraphNodeParams, of.kernel, kernel);
SAME_PLACE(CUgraphNodeParams, of.copy.params, memcpy.copyParams);
SAME_SIZE(CUgraphEdgeData);
SAME_SIZE(CUgraphExecUpdateResultInfo);
SAME_PLACE(CUgraphExecUpdateResultInfo, errorNode, errorNode);
SAME_SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_PLACE(CUDA_GRAPH_INSTANTIATE_PARAMS, result, result_out);
SAME_SIZE(CUmemPoolProps);
SAME_SIZE(CUmemAccessDesc);
SAME_SIZE(CUmemLocation);
SAME_SIZE(CUdeviceptr);

TEST(Abi, ErrorsHaveTheirNumbers) {
#define SAME(name) EXPECT_EQ(int(::name), int(cuda::name))
  SAME(CUDA_SUCCESS);
  SAME(CUDA_ERROR_INVALID_VALUE);
  SAME(CUDA_ERROR_OUT_OF_MEMORY);
  SAME(CUDA_ERROR_NOT_INITIALIZED);
  SAME(CUDA_ERROR_DEINITIALIZED);
  SAME(CUDA_ERROR_NO_DEVICE);
  SAME(CUDA_ERROR_INVALID_DEVICE);
  SAME(CUDA_ERROR_INVALID_IMAGE);
  SAME(CUDA_ERROR_INVALID_CONTEXT);
  SAME(CUDA_ERROR_NO_BINARY_FOR_GPU);
  SAME(CUDA_ERROR_UNSUPPORTED_LIMIT);
  SAME(CUDA_ERROR_INVALID_PTX);
  SAME(CUDA_ERROR_FILE_NOT_FOUND);
  SAME(CUDA_ERROR_INVALID_HANDLE);
  SAME(CUDA_ERROR_ILLEGAL_STATE);
  SAME(CUDA_ERROR_NOT_FOUND);
  SAME(CUDA_ERROR_NOT_READY);
  SAME(CUDA_ERROR_ILLEGAL_ADDRESS);
  SAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  SAME(CUDA_ERROR_LAUNCH_TIMEOUT);
  SAME(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  SAME(CUDA_ERROR_ASSERT);
  SAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  SAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  SAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
  SAME(CUDA_ERROR_ILLEGAL_INSTRUCTION);
  SAME(CUDA_ERROR_MISALIGNED_ADDRESS);
  SAME(CUDA_ERROR_LAUNCH_FAILED);
  SAME(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  SAME(CUDA_ERROR_NOT_PERMITTED);
  SAME(CUDA_ERROR_NOT_SUPPORTED);
  SAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  SAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SAME(CUDA_ERROR_STREAM_CAPTURE_MERGE);
  SAME(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  SAME(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  SAME(CUDA_ERROR_OPERATING_SYSTEM);
  SAME(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  SAME(CUDA_ERROR_INVALID_CLUSTER_SIZE);
  SAME(CUDA_ERROR_UNKNOWN);
}

} // namespace
