// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types and numbers of the CUDA driver API that entry points take and return, as in
// cuda.h of CUDA 12 and 13. The build does not need that header; test/driver/AbiTest.cpp compares
// the types with it where it is installed.

#ifndef FP8EMU_DRIVER_ABI_H
#define FP8EMU_DRIVER_ABI_H

#include <cstddef>
#include <cstdint>

namespace fp8emu::driver {

struct Context;
struct LoadedModule;
struct KernelHandle;
struct Stream;
struct Event;
struct Graph;
struct GraphNode;
struct GraphExec;
struct Pool;
struct LinkState;

} // namespace fp8emu::driver

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = fp8emu::driver::Context *;
using CUmodule = fp8emu::driver::LoadedModule *;
using CUfunction = fp8emu::driver::KernelHandle *;
using CUstream = fp8emu::driver::Stream *;
using CUevent = fp8emu::driver::Event *;
using CUgraph = fp8emu::driver::Graph *;
using CUgraphNode = fp8emu::driver::GraphNode *;
using CUgraphExec = fp8emu::driver::GraphExec *;
using CUmemoryPool = fp8emu::driver::Pool *;
using CUlinkState = fp8emu::driver::LinkState *;
/// A library is a module that belongs to no context; a kernel is a function of a library.
using CUlibrary = CUmodule;
using CUkernel = CUfunction;

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_FILE_NOT_FOUND = 301,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
  CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
  CUDA_ERROR_UNKNOWN = 999
};

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
    int flag;
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

/// One side of a copy: a place in host memory (type 1), device memory (2), or wherever
/// its address says (4). There are no arrays (3).
struct CUcopySide {
  size_t x, y, z, lod;
  int type;
  void *host;
  CUdeviceptr device;
  void *array, *reserved;
  size_t pitch, height;
};
struct CUDA_MEMCPY3D {
  CUcopySide from, to;
  size_t width, height, depth;
};
struct CUcopySide2D {
  size_t x, y;
  int type;
  void *host;
  CUdeviceptr device;
  void *array;
  size_t pitch;
};
struct CUDA_MEMCPY2D {
  CUcopySide2D from, to;
  size_t width, height;
};
struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr to;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};
struct CUDA_HOST_NODE_PARAMS {
  void (*function)(void *);
  void *data;
};
struct CUDA_KERNEL_NODE_PARAMS_v1 {
  CUfunction function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void **parameters, **extra;
};
struct CUDA_KERNEL_NODE_PARAMS {
  CUDA_KERNEL_NODE_PARAMS_v1 launch;
  CUkernel kernel;
  CUcontext context;
};
struct CUDA_MEMCPY_NODE_PARAMS {
  int flags, reserved;
  CUcontext context;
  CUDA_MEMCPY3D params;
};
/// Parameters of a node of any kind.
struct CUgraphNodeParams {
  int type, reserved[3];
  union {
    char bytes[232];
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMCPY_NODE_PARAMS copy;
    CUDA_MEMSET_NODE_PARAMS set;
    CUDA_HOST_NODE_PARAMS host;
    CUgraph graph;
    CUevent event;
  } of;
  long long end;
};
struct CUgraphEdgeData {
  unsigned char fromPort = 0, toPort = 0, type = 0, reserved[5] = {};
};
struct CUgraphExecUpdateResultInfo {
  int result;
  CUgraphNode errorNode, errorFromNode;
};
struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  uint64_t flags;
  CUstream uploadStream;
  CUgraphNode errorNode;
  int result;
};
struct CUmemLocation {
  int type, id;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};
struct CUmemPoolProps {
  int allocationType, handleTypes;
  CUmemLocation location;
  void *securityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
struct alignas(64) CUtensorMap {
  uint64_t opaque[16];
};
// NOLINTEND(readability-identifier-naming)

/// Marks an entry point: exported, with C's name.
#define FP8EMU_API extern "C" __attribute__((visibility("default")))

#endif // FP8EMU_DRIVER_ABI_H
