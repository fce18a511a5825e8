// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device's memory, one range of virtual addresses that is reserved once. A device
// address is the host's address of the same byte, so that pinned and managed memory are the
// same on both sides. Windows of addresses without memory behind them stand for shared and
// local memory in generic addresses; constants lie in a window of device memory.

#ifndef FP8EMU_MEMORY_DEVICEMEMORY_H
#define FP8EMU_MEMORY_DEVICEMEMORY_H

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fp8emu {

/// A block of device memory.
struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool freed = false;
  bool readOnly = false;
  /// A name for the memory in messages: "cuMemAlloc", a variable's name.
  std::string what;
};

/// The first bit of a shared address that belongs to the block's rank in its cluster: the
/// shared memory of rank r begins at r << 24, as mapa and peer masks of existing code expect.
constexpr unsigned kSharedRankShift = 24;
constexpr uint64_t kSharedWindowBytes = uint64_t(16) << kSharedRankShift;
constexpr uint64_t kLocalWindowBytes = uint64_t(1) << 30;
/// Addresses of constants count from the window's start, so that 32 bits hold them.
constexpr uint64_t kConstantWindowBytes = uint64_t(1) << 32;

class DeviceMemory {
public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// Allocates zero-filled memory, with room around it that belongs to no allocation. The bytes
  /// count as uninitialised until they are written. Nothing where no memory is left.
  std::optional<uint64_t> allocate(uint64_t bytes, uint64_t alignment, std::string what);
  /// The same in the window of constants.
  std::optional<uint64_t> allocateConstant(uint64_t bytes, uint64_t alignment, std::string what);
  /// Gives memory back; its addresses are never used again. False where no allocation begins
  /// there, or where it was given back before.
  bool release(uint64_t address);
  /// Makes memory of the host known as an allocation, all of it written. False where some of it
  /// is known already.
  bool addHosts(uint64_t address, uint64_t bytes, std::string what);
  /// Forgets such memory. False where none begins there.
  bool removeHosts(uint64_t address);
  /// The allocation that holds the address, freed ones too; null for none.
  const Allocation *find(uint64_t address) const;
  /// The nearest allocation below the address, for messages.
  const Allocation *below(uint64_t address) const;

  /// Whether the bytes are among the device's own addresses: neither the host's nor in windows.
  bool inArena(uint64_t address, uint64_t bytes) const {
    return address - arenaBase <= arenaBytes - bytes && bytes <= arenaBytes;
  }
  uint64_t base() const { return arenaBase; }
  uint64_t capacity() const { return arenaBytes; }
  uint64_t bytesInUse() const { return inUse; }
  uint64_t sharedWindow() const { return sharedBase; }
  uint64_t localWindow() const { return localBase; }
  uint64_t constantWindow() const { return constants.begin; }

  /// Marks bytes as written, or as not written. The host's own count as written.
  void setInitialized(uint64_t address, uint64_t bytes, bool initialized);
  /// The offset in the range of the first byte that was not written; nothing where all were.
  std::optional<uint64_t> firstUninitialized(uint64_t address, uint64_t bytes) const;
  void setReadOnly(uint64_t address);
  /// From now on, `told(address, bytes)` is called when memory is given back.
  void onRelease(std::function<void(uint64_t, uint64_t)> told) { released = std::move(told); }

private:
  /// Addresses [begin, end), given out up to `next`.
  struct Range {
    uint64_t begin = 0, end = 0, next = 0;
  };
  std::optional<uint64_t> allocate(Range &range, uint64_t bytes, uint64_t alignment, std::string what);

  uint64_t arenaBase = 0, arenaBytes = 0, inUse = 0;
  Range constants, others;
  uint64_t sharedBase = 0, localBase = 0;
  uint64_t reservedBase = 0, reservedBytes = 0;
  /// One byte for each byte of the arena: 1 where that was written.
  uint8_t *initialized = nullptr;
  std::function<void(uint64_t, uint64_t)> released;
  mutable std::mutex mutex;
  std::map<uint64_t, Allocation> allocations;
};

} // namespace fp8emu

#endif // FP8EMU_MEMORY_DEVICEMEMORY_H
