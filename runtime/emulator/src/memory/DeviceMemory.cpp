// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device's memory: a reserved range of addresses, given out from its start and
// never twice, so that a stale pointer is known as one.

#include "DeviceMemory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>

using namespace fp8emu;

namespace {
constexpr uint64_t kArenaBytes = uint64_t(1) << 38;
/// cuMemAlloc promises 256; more lets textures and TMA descriptors be happy.
constexpr uint64_t kMinAlignment = 512;
/// Nobody's bytes between two allocations, so that running off one is seen.
constexpr uint64_t kGap = 512;
/// No variable asks for more, so that offsets in a window are aligned as addresses are.
constexpr uint64_t kWindowAlignment = 65536;

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Address space whose pages the system provides when they are first touched.
uint64_t reserve(uint64_t bytes, int protection) {
  void *address = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    throw std::bad_alloc();
  return reinterpret_cast<uint64_t>(address);
}
} // namespace

DeviceMemory::DeviceMemory() {
  // Windows are aligned to their size, so that an address in one is told by its
  // upper bits, and come from address space of the process, so that no allocation
  // of the host can lie there.
  const uint64_t windows = kLocalWindowBytes + kSharedWindowBytes;
  reservedBytes = windows + kLocalWindowBytes;
  reservedBase = reserve(reservedBytes, PROT_NONE);
  localBase = alignUp(reservedBase, kLocalWindowBytes);
  sharedBase = localBase + kLocalWindowBytes;
  if (sharedBase + kSharedWindowBytes > reservedBase + reservedBytes)
    sharedBase = alignUp(reservedBase, kSharedWindowBytes);
  arenaBytes = kArenaBytes;
  arenaBase = reserve(arenaBytes, PROT_READ | PROT_WRITE);
  const uint64_t window = alignUp(arenaBase, kWindowAlignment);
  constants = {window, window + kConstantWindowBytes, window + kGap};
  others = {constants.end, arenaBase + arenaBytes, constants.end + kGap};
  initialized = reinterpret_cast<uint8_t *>(reserve(arenaBytes, PROT_READ | PROT_WRITE));
}

DeviceMemory::~DeviceMemory() {
  munmap(reinterpret_cast<void *>(reservedBase), reservedBytes);
  munmap(reinterpret_cast<void *>(arenaBase), arenaBytes);
  munmap(initialized, arenaBytes);
}

std::optional<uint64_t> DeviceMemory::allocate(Range &range, uint64_t bytes, uint64_t alignment,
                                               std::string what) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t address = alignUp(range.next, std::max(alignment, kMinAlignment));
  if (bytes > arenaBytes || address > range.end - kGap || bytes > range.end - kGap - address)
    return std::nullopt;
  range.next = address + bytes + kGap;
  inUse += bytes;
  allocations[address] = {address, bytes, /*freed=*/false, /*readOnly=*/false, std::move(what)};
  return address;
}

std::optional<uint64_t> DeviceMemory::allocate(uint64_t bytes, uint64_t alignment, std::string what) {
  return allocate(others, bytes, alignment, std::move(what));
}

std::optional<uint64_t> DeviceMemory::allocateConstant(uint64_t bytes, uint64_t alignment, std::string what) {
  return allocate(constants, bytes, alignment, std::move(what));
}

bool DeviceMemory::addHosts(uint64_t address, uint64_t bytes, std::string what) {
  std::lock_guard<std::mutex> lock(mutex);
  auto after = allocations.lower_bound(address);
  const bool meetsNext = after != allocations.end() && after->first - address < bytes;
  const bool meetsLast =
      after != allocations.begin() && address - std::prev(after)->first < std::prev(after)->second.bytes;
  if (meetsNext || meetsLast || inArena(address, 0))
    return false;
  allocations[address] = {address, bytes, /*freed=*/false, /*readOnly=*/false, std::move(what)};
  return true;
}

bool DeviceMemory::removeHosts(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex);
  return !inArena(address, 0) && allocations.erase(address);
}

bool DeviceMemory::release(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = allocations.find(address);
  if (found == allocations.end() || found->second.freed || !inArena(address, 0))
    return false;
  found->second.freed = true;
  inUse -= found->second.bytes;
  // Whole pages inside go back to the system.
  constexpr uint64_t page = 4096;
  uint64_t begin = alignUp(address, page), end = (address + found->second.bytes) / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  if (released)
    released(address, found->second.bytes);
  return true;
}

const Allocation *DeviceMemory::below(uint64_t address) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto after = allocations.upper_bound(address);
  return after == allocations.begin() ? nullptr : &std::prev(after)->second;
}

const Allocation *DeviceMemory::find(uint64_t address) const {
  const Allocation *allocation = below(address);
  return allocation && address - allocation->address < allocation->bytes ? allocation : nullptr;
}

void DeviceMemory::setReadOnly(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations[address].readOnly = true;
}

void DeviceMemory::setInitialized(uint64_t address, uint64_t bytes, bool value) {
  if (inArena(address, bytes))
    std::memset(initialized + (address - arenaBase), value, bytes);
}

std::optional<uint64_t> DeviceMemory::firstUninitialized(uint64_t address, uint64_t bytes) const {
  if (!inArena(address, bytes))
    return std::nullopt;
  const void *found = std::memchr(initialized + (address - arenaBase), 0, bytes);
  if (!found)
    return std::nullopt;
  return uint64_t(static_cast<const uint8_t *>(found) - initialized) - (address - arenaBase);
}
