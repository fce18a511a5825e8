// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: what an address belongs to.

#include "Driver.h"

#include <cstring>

using namespace fp8emu;
using namespace fp8emu::driver;

FP8EMU_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
  return enter([=](Driver &driver) {
    const Allocation *allocation = driver.memory.find(address);
    require(allocation && !allocation->freed, CUDA_ERROR_NOT_FOUND);
    if (base)
      *base = allocation->address;
    if (bytes)
      *bytes = allocation->bytes;
  });
}

bool fp8emu::driver::isHosts(const Allocation &allocation) {
  return allocation.what.rfind("cuMemHost", 0) == 0;
}

namespace {
/// CUpointer_attribute.
enum PointerAttribute {
  OfContext = 1,
  MemoryType = 2,
  DevicePointer = 3,
  HostPointer = 4,
  SyncMemops = 6,
  BufferId = 7,
  IsManaged = 8,
  DeviceOrdinal = 9,
  RangeStart = 11,
  RangeBytes = 12,
  Mapped = 13,
  MempoolHandle = 17
};

/// The context it was taken in; of a module's variable the current one.
Context &contextOf(Driver &driver, const Allocation &allocation) {
  auto found = driver.allocations.find(allocation.address);
  return found == driver.allocations.end() ? driver.current() : *found->second;
}

void write(Driver &driver, int which, uint64_t address, const Allocation &allocation, void *out) {
  switch (which) {
  case OfContext:
    *static_cast<CUcontext *>(out) = &contextOf(driver, allocation);
    return;
  case MemoryType:
    *static_cast<unsigned *>(out) = isHosts(allocation) ? 1 : 2;
    return;
  case DevicePointer:
  case RangeStart:
    *static_cast<uint64_t *>(out) = which == RangeStart ? allocation.address : address;
    return;
  case HostPointer:
    require(isHosts(allocation) || allocation.what == "cuMemAllocManaged");
    *static_cast<uint64_t *>(out) = address;
    return;
  case SyncMemops:
    *static_cast<int *>(out) = 1;
    return;
  case BufferId:
    *static_cast<uint64_t *>(out) = allocation.address;
    return;
  case IsManaged:
    *static_cast<unsigned *>(out) = allocation.what == "cuMemAllocManaged";
    return;
  case DeviceOrdinal:
    *static_cast<int *>(out) = contextOf(driver, allocation).device;
    return;
  case RangeBytes:
    *static_cast<size_t *>(out) = allocation.bytes;
    return;
  case Mapped:
    *static_cast<unsigned *>(out) = 1;
    return;
  case MempoolHandle:
    *static_cast<void **>(out) = nullptr;
    return;
  default:
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}
} // namespace

FP8EMU_API CUresult cuPointerGetAttribute(void *out, int which, CUdeviceptr address) {
  return enter([=](Driver &driver) {
    require(out);
    const Allocation *allocation = driver.memory.find(address);
    require(allocation && !allocation->freed);
    write(driver, which, address, *allocation, out);
  });
}

/// For addresses of nobody all attributes are zero, not an error.
FP8EMU_API CUresult cuPointerGetAttributes(unsigned count, int *which, void **out, CUdeviceptr address) {
  return enter([=](Driver &driver) {
    require(which && out);
    const Allocation *allocation = driver.memory.find(address);
    for (unsigned i = 0; i < count; ++i) {
      bool wide = which[i] == OfContext || which[i] == DevicePointer || which[i] == HostPointer ||
                  which[i] == BufferId || which[i] == RangeStart || which[i] == RangeBytes ||
                  which[i] == MempoolHandle;
      std::memset(out[i], 0, wide ? 8 : 4);
      if (which[i] == DeviceOrdinal)
        *static_cast<int *>(out[i]) = -2;
      bool known = allocation && !allocation->freed;
      if (known && (which[i] != HostPointer || isHosts(*allocation)))
        write(driver, which[i], address, *allocation, out[i]);
    }
  });
}

FP8EMU_API CUresult cuPointerSetAttribute(const void *, int which, CUdeviceptr) {
  return enter([=](Driver &) { require(which == SyncMemops); });
}
