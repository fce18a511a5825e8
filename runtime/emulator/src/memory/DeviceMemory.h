// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device's memory. One range of virtual addresses is reserved; what the device
// calls an address is the host's address of the same byte, so that pinned and
// managed memory are the same on both sides. Windows without memory behind them
// stand for shared and local memory in generic addresses.

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
  /// What it is, for messages: "cuMemAlloc", a variable's name.
  std::string what;
};

/// Bytes of a shared address that number the block within its cluster begin here:
/// rank r's shared memory begins at r << 24 (as mapa and peer masks of existing
/// code expect).
constexpr unsigned kSharedRankShift = 24;
constexpr uint64_t kSharedWindowBytes = uint64_t(16) << kSharedRankShift;
constexpr uint64_t kLocalWindowBytes = uint64_t(1) << 30;

class DeviceMemory {
public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// Zero-filled memory with room around it that belongs to nothing; none where
  /// there is no more. Its bytes count as uninitialised until written.
  std::optional<uint64_t> allocate(uint64_t bytes, uint64_t alignment, std::string what);
  /// Gives it back; its addresses are never used again. False where no allocation
  /// begins there, or it was freed.
  bool release(uint64_t address);
  /// The allocation that holds the address, freed ones too; null for none.
  const Allocation *find(uint64_t address) const;
  /// The nearest allocation below the address, for messages.
  const Allocation *below(uint64_t address) const;

  bool inArena(uint64_t address, uint64_t bytes) const {
    return address - arenaBase <= arenaBytes - bytes && bytes <= arenaBytes;
  }
  uint64_t base() const { return arenaBase; }
  uint64_t capacity() const { return arenaBytes; }
  uint64_t bytesInUse() const { return inUse; }
  uint64_t sharedWindow() const { return sharedBase; }
  uint64_t localWindow() const { return localBase; }

  /// Marks bytes as written, or as not written.
  void setInitialized(uint64_t address, uint64_t bytes, bool initialized);
  /// Offset in the range of the first byte not written; none where all are.
  std::optional<uint64_t> firstUninitialized(uint64_t address, uint64_t bytes) const;
  void setReadOnly(uint64_t address);
  /// Calls `told(address, bytes)` when memory is given back from now on.
  void onRelease(std::function<void(uint64_t, uint64_t)> told) { released = std::move(told); }

private:
  uint64_t arenaBase = 0, arenaBytes = 0, next = 0, inUse = 0;
  uint64_t sharedBase = 0, localBase = 0;
  uint64_t reservedBase = 0, reservedBytes = 0;
  /// A byte for each of the arena, 1 where it was written.
  uint8_t *initialized = nullptr;
  std::function<void(uint64_t, uint64_t)> released;
  mutable std::mutex mutex;
  std::map<uint64_t, Allocation> allocations;
};

} // namespace fp8emu

#endif // FP8EMU_MEMORY_DEVICEMEMORY_H
