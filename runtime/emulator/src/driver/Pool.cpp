// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: memory pools. Memory is taken when it is asked for and given back when
// it is freed, so a pool holds nothing; it counts.

#include "Driver.h"

#include <algorithm>

using namespace fp8emu::driver;

FP8EMU_API CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);

namespace fp8emu::driver {
struct Pool {
  uint64_t releaseThreshold = 0;
  int reuse[3] = {1, 1, 1};
};
} // namespace fp8emu::driver

namespace {
/// CUmemPool_attribute: three switches, then sizes.
enum PoolAttribute { FirstSwitch = 1, LastSwitch = 3, ReleaseThreshold = 4, FirstSize = 5, LastSize = 8 };

/// Each device's own, until another is set.
std::map<CUdevice, CUmemoryPool> &pools() {
  static auto *all = new std::map<CUdevice, CUmemoryPool>();
  return *all;
}

CUmemoryPool poolOf(Driver &driver, CUdevice device) {
  driver.chip(device);
  CUmemoryPool &pool = pools()[device];
  if (!pool || !driver.isLive(pool))
    pool = driver.track(std::make_unique<Pool>());
  return pool;
}
} // namespace

FP8EMU_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  return enter([=](Driver &driver) {
    require(pool && properties);
    *pool = driver.track(std::make_unique<Pool>());
  });
}

FP8EMU_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return enter([=](Driver &driver) {
    driver.check(pool);
    driver.drop(pool);
  });
}

FP8EMU_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  return enter([=](Driver &driver) {
    require(pool);
    *pool = poolOf(driver, device);
  });
}
FP8EMU_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
  return cuDeviceGetDefaultMemPool(pool, device);
}
FP8EMU_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return enter([=](Driver &driver) {
    driver.chip(device);
    pools()[device] = &driver.check(pool);
  });
}

FP8EMU_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                            CUstream stream) {
  CUresult code = enter([=](Driver &driver) { driver.check(pool); });
  return code == CUDA_SUCCESS ? cuMemAllocAsync(address, bytes, stream) : code;
}

FP8EMU_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return enter([=](Driver &driver) { driver.check(pool); });
}

FP8EMU_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int which, void *value) {
  return enter([=](Driver &driver) {
    Pool &own = driver.check(pool);
    require(value);
    if (which >= FirstSwitch && which <= LastSwitch)
      own.reuse[which - FirstSwitch] = *static_cast<int *>(value);
    else if (which == ReleaseThreshold)
      own.releaseThreshold = *static_cast<uint64_t *>(value);
    else
      require(which >= FirstSize && which <= LastSize && *static_cast<uint64_t *>(value) == 0);
  });
}

FP8EMU_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int which, void *value) {
  return enter([=](Driver &driver) {
    Pool &own = driver.check(pool);
    require(value && which >= FirstSwitch && which <= LastSize);
    if (which <= LastSwitch)
      *static_cast<int *>(value) = own.reuse[which - FirstSwitch];
    else
      *static_cast<uint64_t *>(value) =
          which == ReleaseThreshold ? own.releaseThreshold : driver.memory.bytesInUse();
  });
}

FP8EMU_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count) {
  return enter([=](Driver &driver) {
    driver.check(pool);
    require(count == 0 || access);
  });
}

FP8EMU_API CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, const CUmemLocation *) {
  return enter([=](Driver &driver) {
    driver.check(pool);
    require(flags);
    *flags = 3; // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
  });
}
