// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: copying and filling memory. A device address is the host's address of
// the same byte, so all copies are the host's; those that run off an allocation are
// refused.

#include "Work.h"

#include <cstring>

using namespace fp8emu;
using namespace fp8emu::driver;

namespace {

/// Whether the bytes lie in one allocation; the host's own memory always does.
void checkRange(Driver &driver, uint64_t address, size_t bytes) {
  if (!driver.memory.inArena(address, 0) || bytes == 0)
    return;
  const Allocation *allocation = driver.memory.find(address);
  require(allocation && !allocation->freed && allocation->bytes - (address - allocation->address) >= bytes);
}

bool isRegistered(Driver &driver, uint64_t address, size_t bytes) {
  const Allocation *found = driver.memory.find(address);
  return found && bytes <= found->bytes - (address - found->address);
}

/// The sides of a copy: CUmemorytype.
enum Side { Host = 1, OfDevice = 2, Unified = 4 };

void noteWritten(Driver &driver, uint64_t address, size_t bytes) {
  if (driver.memory.inArena(address, bytes))
    driver.memory.setInitialized(address, bytes, true);
}

uint64_t number(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

/// Where a side's box begins; its rows are `pitch` apart, its planes `plane`.
struct Origin {
  uint64_t address, pitch, plane;
};
Origin originOf(Driver &driver, const CUcopySide &side, size_t width, size_t rows) {
  require(side.type == Host || side.type == OfDevice || side.type == Unified, CUDA_ERROR_NOT_SUPPORTED);
  uint64_t base = side.type == Host ? number(side.host) : side.device;
  require(base != 0);
  uint64_t pitch = side.pitch ? side.pitch : width + side.x;
  uint64_t plane = pitch * (side.height ? side.height : rows + side.y);
  require(pitch >= width);
  require(side.type != OfDevice || driver.memory.inArena(base, 0) || isRegistered(driver, base, 1));
  return {base + side.x + side.y * pitch + side.z * plane, pitch, plane};
}

CUcopySide lift(const CUcopySide2D &side) {
  return {side.x, side.y, 0, 0, side.type, side.host, side.device, side.array, nullptr, side.pitch, 0};
}

CUresult submitCopy(CUstream stream, const CUDA_MEMCPY3D *box) {
  if (!box)
    return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.kind = Work::Copy;
  work.copy = *box;
  return submit(stream, std::move(work));
}

CUresult submitCopy2D(CUstream stream, const CUDA_MEMCPY2D *box) {
  if (!box)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D whole = {lift(box->from), lift(box->to), box->width, box->height, 1};
  return submitCopy(stream, &whole);
}

/// One row: that is what all copies of bytes are.
CUresult submitBytes(CUstream stream, Side toSide, uint64_t to, Side fromSide, uint64_t from, size_t bytes) {
  if (bytes == 0)
    return enter([](Driver &driver) { driver.current(); });
  CUDA_MEMCPY3D box{};
  box.from.type = fromSide;
  box.to.type = toSide;
  box.from.device = from;
  box.to.device = to;
  box.from.host = reinterpret_cast<void *>(from);
  box.to.host = reinterpret_cast<void *>(to);
  box.width = bytes;
  box.height = box.depth = 1;
  return submitCopy(stream, &box);
}

CUresult submitSet(CUstream stream, uint64_t to, size_t pitch, unsigned value, unsigned elementSize,
                   size_t width, size_t height) {
  Work work;
  work.kind = Work::Set;
  work.set = {to, pitch, value, elementSize, width, height};
  return submit(stream, std::move(work));
}

} // namespace

void fp8emu::driver::copyBytes(Driver &driver, uint64_t to, uint64_t from, size_t bytes) {
  require(bytes == 0 || (to && from));
  checkRange(driver, to, bytes);
  checkRange(driver, from, bytes);
  std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
  noteWritten(driver, to, bytes);
}

void fp8emu::driver::copyBox(Driver &driver, const CUDA_MEMCPY3D &box) {
  if (!box.width || !box.height || !box.depth)
    return;
  Origin from = originOf(driver, box.from, box.width, box.height);
  Origin to = originOf(driver, box.to, box.width, box.height);
  for (size_t z = 0; z < box.depth; ++z)
    for (size_t y = 0; y < box.height; ++y)
      copyBytes(driver, to.address + z * to.plane + y * to.pitch,
                from.address + z * from.plane + y * from.pitch, box.width);
}

void fp8emu::driver::setRows(Driver &driver, const CUDA_MEMSET_NODE_PARAMS &set) {
  unsigned size = set.elementSize;
  require((size == 1 || size == 2 || size == 4) && set.to % size == 0 &&
          set.width <= driver.memory.capacity());
  require(set.height <= 1 || (set.pitch >= set.width * size && set.pitch % size == 0));
  for (size_t y = 0; y < set.height; ++y) {
    uint64_t row = set.to + y * set.pitch;
    // The host's memory is filled where it is registered.
    require(driver.memory.inArena(row, 0) || isRegistered(driver, row, set.width * size));
    checkRange(driver, row, set.width * size);
    if (size == 1)
      std::memset(reinterpret_cast<void *>(row), int(set.value), set.width);
    for (size_t i = 0; size > 1 && i < set.width; ++i)
      std::memcpy(reinterpret_cast<char *>(row) + i * size, &set.value, size);
    noteWritten(driver, row, set.width * size);
  }
}

FP8EMU_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return submitBytes(stream, Unified, to, Unified, from, bytes);
}
FP8EMU_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return submitBytes(nullptr, Unified, to, Unified, from, bytes);
}
FP8EMU_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  return submitBytes(nullptr, OfDevice, to, Host, number(from), bytes);
}
FP8EMU_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return submitBytes(nullptr, Host, number(to), OfDevice, from, bytes);
}
FP8EMU_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return submitBytes(nullptr, OfDevice, to, OfDevice, from, bytes);
}
FP8EMU_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return submitBytes(stream, OfDevice, to, Host, number(from), bytes);
}
FP8EMU_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return submitBytes(stream, Host, number(to), OfDevice, from, bytes);
}
FP8EMU_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return submitBytes(stream, OfDevice, to, OfDevice, from, bytes);
}
// All devices share one memory.
FP8EMU_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return submitBytes(nullptr, OfDevice, to, OfDevice, from, bytes);
}
FP8EMU_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                                      CUstream stream) {
  return submitBytes(stream, OfDevice, to, OfDevice, from, bytes);
}

FP8EMU_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *box) { return submitCopy2D(nullptr, box); }
FP8EMU_API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *box) { return submitCopy2D(nullptr, box); }
FP8EMU_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *box, CUstream stream) {
  return submitCopy2D(stream, box);
}
FP8EMU_API CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *box) { return submitCopy(nullptr, box); }
FP8EMU_API CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *box, CUstream stream) {
  return submitCopy(stream, box);
}

FP8EMU_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return submitSet(nullptr, to, 0, value, 1, count, 1);
}
FP8EMU_API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return submitSet(nullptr, to, 0, value, 2, count, 1);
}
FP8EMU_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return submitSet(nullptr, to, 0, value, 4, count, 1);
}
FP8EMU_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return submitSet(stream, to, 0, value, 1, count, 1);
}
FP8EMU_API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return submitSet(stream, to, 0, value, 2, count, 1);
}
FP8EMU_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return submitSet(stream, to, 0, value, 4, count, 1);
}
FP8EMU_API CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                    size_t height) {
  return submitSet(nullptr, to, pitch, value, 1, width, height);
}
FP8EMU_API CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                     size_t height) {
  return submitSet(nullptr, to, pitch, value, 2, width, height);
}
FP8EMU_API CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                                     size_t height) {
  return submitSet(nullptr, to, pitch, value, 4, width, height);
}
FP8EMU_API CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                      size_t height, CUstream stream) {
  return submitSet(stream, to, pitch, value, 1, width, height);
}
FP8EMU_API CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                       size_t height, CUstream stream) {
  return submitSet(stream, to, pitch, value, 2, width, height);
}
FP8EMU_API CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                                       size_t height, CUstream stream) {
  return submitSet(stream, to, pitch, value, 4, width, height);
}
