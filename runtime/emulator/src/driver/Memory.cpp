// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: memory that is taken and given back. A device address is the host's
// address of the same byte.

#include "Work.h"

#include <cstring>

using namespace fp8emu;
using namespace fp8emu::driver;

namespace {

uint64_t allocate(Driver &driver, size_t bytes, const char *what) {
  Context &context = driver.current();
  require(bytes > 0);
  // Programs count on what a GPU gives: memory of a page and more begins at one.
  constexpr size_t kPage = 4096;
  auto address = driver.memory.allocate(bytes, bytes < kPage ? 512 : kPage, what);
  require(address.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
  driver.allocations[*address] = &context;
  return *address;
}

/// Gives back what was taken by a call of the same kind: neither a module's variable nor,
/// as memory of the device, the host's.
void giveBack(Driver &driver, uint64_t address, bool hosts) {
  require(driver.allocations.count(address) && isHosts(*driver.memory.find(address)) == hosts);
  driver.memory.release(address);
  driver.allocations.erase(address);
}

/// The memory at an address that has not been given back.
const Allocation &held(Driver &driver, uint64_t address) {
  const Allocation *found = driver.memory.find(address);
  require(found && !found->freed);
  return *found;
}

uint64_t number(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

} // namespace

FP8EMU_API CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  return enter([=](Driver &driver) {
    require(free && total);
    *total = driver.memory.capacity();
    *free = *total - driver.memory.bytesInUse();
  });
}

FP8EMU_API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  return enter([=](Driver &driver) {
    require(address);
    *address = allocate(driver, bytes, "cuMemAlloc");
  });
}

FP8EMU_API CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                       unsigned element) {
  return enter([=](Driver &driver) {
    require(address && pitch && (element == 4 || element == 8 || element == 16));
    constexpr size_t unit = 512;
    size_t row = 0, bytes = 0;
    bool isTooMuch = __builtin_add_overflow(width, unit - 1, &row);
    row = row / unit * unit;
    isTooMuch |= __builtin_mul_overflow(row, height, &bytes);
    require(!isTooMuch, CUDA_ERROR_OUT_OF_MEMORY);
    *address = allocate(driver, bytes, "cuMemAllocPitch");
    *pitch = row;
  });
}

FP8EMU_API CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned) {
  return enter([=](Driver &driver) {
    require(address);
    *address = allocate(driver, bytes, "cuMemAllocManaged");
    // The host may write it unseen.
    driver.memory.setInitialized(*address, bytes, true);
  });
}

/// Graphs do not allocate.
FP8EMU_API CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  return enter([=](Driver &driver) {
    refuseCapture(driver, stream);
    require(address);
    *address = allocate(driver, bytes, "cuMemAllocAsync");
  });
}

FP8EMU_API CUresult cuMemFree_v2(CUdeviceptr address) {
  return enter([=](Driver &driver) {
    if (address)
      giveBack(driver, address, /*hosts=*/false);
  });
}
FP8EMU_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  CUresult code = enter([=](Driver &driver) { refuseCapture(driver, stream); });
  return code == CUDA_SUCCESS ? cuMemFree_v2(address) : code;
}

// Managed memory is the host's and every device's: where it lies is the same for all.
FP8EMU_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned,
                                          CUstream stream) {
  return enter([=](Driver &driver) {
    captureOf(driver, stream);
    const Allocation &found = held(driver, address);
    require(bytes <= found.address + found.bytes - address);
  });
}
FP8EMU_API CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice, CUstream stream) {
  return cuMemPrefetchAsync_v2(address, bytes, {}, 0, stream);
}
FP8EMU_API CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, int, CUmemLocation) {
  return cuMemPrefetchAsync_v2(address, bytes, {}, 0, nullptr);
}
FP8EMU_API CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, int, CUdevice) {
  return cuMemPrefetchAsync_v2(address, bytes, {}, 0, nullptr);
}

FP8EMU_API CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  return enter([=](Driver &driver) {
    require(pointer);
    uint64_t address = allocate(driver, bytes, "cuMemHostAlloc");
    driver.memory.setInitialized(address, bytes, true);
    *pointer = reinterpret_cast<void *>(address);
  });
}
FP8EMU_API CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

FP8EMU_API CUresult cuMemFreeHost(void *pointer) {
  return enter([=](Driver &driver) { giveBack(driver, number(pointer), /*hosts=*/true); });
}

FP8EMU_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned) {
  return enter([=](Driver &driver) {
    require(address);
    held(driver, number(pointer));
    *address = number(pointer);
  });
}

FP8EMU_API CUresult cuMemHostGetFlags(unsigned *flags, void *pointer) {
  return enter([=](Driver &driver) {
    require(flags);
    held(driver, number(pointer));
    *flags = 0;
  });
}

/// The host's own memory, at its own addresses. That it was written and who accesses it is not checked.
FP8EMU_API CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags) {
  return enter([=](Driver &driver) {
    constexpr unsigned kFlags = 0xF; // PORTABLE, DEVICEMAP, IOMEMORY, READ_ONLY
    Context &context = driver.current();
    require(pointer && bytes && !(flags & ~kFlags));
    require(driver.memory.addHosts(number(pointer), bytes, "cuMemHostRegister"),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    driver.registered[number(pointer)] = &context;
  });
}
FP8EMU_API CUresult cuMemHostUnregister(void *pointer) {
  return enter([=](Driver &driver) {
    driver.current();
    require(driver.registered.erase(number(pointer)), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    driver.memory.removeHosts(number(pointer));
  });
}
