// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: devices and what they have.

#include "Driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace fp8emu;
using namespace fp8emu::driver;

FP8EMU_API CUresult cuDeviceGetCount(int *count) {
  return enter([=](Driver &driver) {
    require(count);
    *count = int(driver.devices.size());
  });
}

FP8EMU_API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return enter([=](Driver &driver) {
    require(device);
    driver.chip(ordinal);
    *device = ordinal;
  });
}

FP8EMU_API CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  return enter([=](Driver &driver) {
    require(name && length > 0);
    std::strncpy(name, driver.chip(device).name.c_str(), size_t(length) - 1);
    name[length - 1] = '\0';
  });
}

FP8EMU_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  return enter([=](Driver &driver) {
    require(bytes);
    driver.chip(device);
    *bytes = driver.memory.capacity();
  });
}

FP8EMU_API CUresult cuDeviceGetUuid_v2(char *uuid, CUdevice device) {
  return enter([=](Driver &driver) {
    require(uuid);
    std::memset(uuid, 0, 16);
    std::memcpy(uuid, driver.chip(device).target.c_str(),
                std::min<size_t>(driver.chip(device).target.size(), 16));
  });
}
FP8EMU_API CUresult cuDeviceGetUuid(char *uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

FP8EMU_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  return enter([=](Driver &driver) {
    require(major && minor);
    *major = driver.chip(device).major;
    *minor = driver.chip(device).minor;
  });
}

/// CUdevice_attribute by number. Attributes that are not listed are 0: the device lacks them.
static int attribute(const Chip &chip, int which) {
  switch (which) {
  case 1: // MAX_THREADS_PER_BLOCK
  case 2: // MAX_BLOCK_DIM_X
  case 3: // MAX_BLOCK_DIM_Y
    return 1024;
  case 4: // MAX_BLOCK_DIM_Z
    return 64;
  case 5: // MAX_GRID_DIM_X
    return 0x7FFFFFFF;
  case 6: // MAX_GRID_DIM_Y
  case 7: // MAX_GRID_DIM_Z
    return 65535;
  case 8: // MAX_SHARED_MEMORY_PER_BLOCK
    return 48 * 1024;
  case 9: // TOTAL_CONSTANT_MEMORY
    return 64 * 1024;
  case 10: // WARP_SIZE
    return 32;
  case 11: // MAX_PITCH
    return 0x7FFFFFFF;
  case 12: // MAX_REGISTERS_PER_BLOCK
  case 82: // MAX_REGISTERS_PER_MULTIPROCESSOR
    return 65536;
  case 13: // CLOCK_RATE, kHz
    return 1980000;
  case 14: // TEXTURE_ALIGNMENT
    return 512;
  case 16: // MULTIPROCESSOR_COUNT
    return chip.multiprocessors;
  case 18: // INTEGRATED
    return 0;
  case 19: // CAN_MAP_HOST_MEMORY
  case 31: // CONCURRENT_KERNELS
  case 40: // ASYNC_ENGINE_COUNT
  case 41: // UNIFIED_ADDRESSING
  case 78: // STREAM_PRIORITIES_SUPPORTED
  case 83: // MANAGED_MEMORY
  case 89: // CONCURRENT_MANAGED_ACCESS
  case 90: // COMPUTE_PREEMPTION_SUPPORTED
  case 91: // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
  case 95: // COOPERATIVE_LAUNCH
  case 99: // HOST_REGISTER_SUPPORTED
    return 1;
  case 36: // MEMORY_CLOCK_RATE, kHz
    return 2619000;
  case 37: // GLOBAL_MEMORY_BUS_WIDTH
    return 5120;
  case 38: // L2_CACHE_SIZE
    return 50 * 1024 * 1024;
  case 39: // MAX_THREADS_PER_MULTIPROCESSOR
    return chip.warpsPerMultiprocessor * 32;
  case 75: // COMPUTE_CAPABILITY_MAJOR
    return chip.major;
  case 76: // COMPUTE_CAPABILITY_MINOR
    return chip.minor;
  case 81: // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    return chip.sharedPerMultiprocessor;
  case 97: // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    return chip.sharedPerBlock;
  case 106: // MAX_BLOCKS_PER_MULTIPROCESSOR
    return chip.blocksPerMultiprocessor;
  case 111: // RESERVED_SHARED_MEMORY_PER_BLOCK
    return 1024;
  case 115: // MEMORY_POOLS_SUPPORTED
    return 1;
  case 120: // CLUSTER_LAUNCH
    return chip.clusters;
  case 127: // TENSOR_MAP_ACCESS_SUPPORTED
    return chip.major >= 9;
  default:
    return 0;
  }
}

FP8EMU_API CUresult cuDeviceGetAttribute(int *value, int which, CUdevice device) {
  return enter([=](Driver &driver) {
    require(value);
    const Chip &chip = driver.chip(device);
    // PCI_BUS_ID, as cuDeviceGetPCIBusId gives it.
    *value = which == 33 ? device + 1 : attribute(chip, which);
  });
}

// All devices share one memory, so each reaches what is another's.
FP8EMU_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  return enter([=](Driver &driver) {
    require(can);
    driver.chip(device);
    driver.chip(peer);
    *can = device != peer;
  });
}

/// CU_DEVICE_P2P_ATTRIBUTE: 1 performance rank, 2 access, 3 native atomics, 4 arrays.
FP8EMU_API CUresult cuDeviceGetP2PAttribute(int *value, int which, CUdevice device, CUdevice peer) {
  return enter([=](Driver &driver) {
    require(value && which >= 1 && which <= 4 && device != peer);
    driver.chip(device);
    driver.chip(peer);
    *value = which == 2 || which == 3;
  });
}

FP8EMU_API CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags) {
  return enter([=](Driver &driver) {
    driver.current();
    require(context && flags == 0);
  });
}
FP8EMU_API CUresult cuCtxDisablePeerAccess(CUcontext context) {
  return enter([=](Driver &driver) {
    driver.current();
    require(context);
  });
}

FP8EMU_API CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
  return enter([=](Driver &driver) {
    require(text && length > 0);
    driver.chip(device);
    std::snprintf(text, size_t(length), "0000:%02x:00.0", unsigned(device) + 1);
  });
}

FP8EMU_API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
  return enter([=](Driver &driver) {
    require(device && text);
    unsigned domain = 0, bus = 0;
    require(std::sscanf(text, "%x:%x:", &domain, &bus) == 2 && bus >= 1 && bus <= driver.devices.size(),
            CUDA_ERROR_INVALID_DEVICE);
    *device = int(bus) - 1;
  });
}
