// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses to memory, lane by lane.

#include "Access.h"

#include "Block.h"
#include "Launch.h"
#include "memory/DeviceMemory.h"

#include <cstring>

using namespace fp8emu;

MemorySpace fp8emu::classify(const Warp &warp, uint64_t &address) {
  const DeviceMemory &memory = warp.block().launch().memory();
  if (address - memory.sharedWindow() < kSharedWindowBytes) {
    address -= memory.sharedWindow();
    return MemorySpace::SharedCluster;
  }
  if (address - memory.localWindow() < kLocalWindowBytes) {
    address -= memory.localWindow();
    return MemorySpace::Local;
  }
  return MemorySpace::Global;
}

namespace {

std::string hex(uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

const char *verb(AccessKind kind) {
  return kind == AccessKind::Load ? "read" : kind == AccessKind::Store ? "written" : "updated";
}

/// One access of one warp, or of an asynchronous operation: then there is no warp.
class Resolver {
public:
  Resolver(Block &block, unsigned bytes, AccessKind kind)
      : block(block), memory(block.launch().memory()), bytes(bytes), kind(kind),
        checks(block.launch().settings().checks) {}
  Resolver(Warp &warp, unsigned bytes, AccessKind kind) : Resolver(warp.block(), bytes, kind) {
    this->warp = &warp;
  }

  /// The target found last; not set for local memory.
  Target target;
  bool isLocal = false;

  uint8_t *find(MemorySpace space, uint64_t address, unsigned lane) {
    if (space == MemorySpace::Generic)
      space = classify(*warp, address);
    switch (space) {
    case MemorySpace::Shared:
    case MemorySpace::SharedCluster:
      return shared(address, lane);
    case MemorySpace::Local:
      return local(address, lane);
    case MemorySpace::Const:
      return windowed(memory.constantWindow(), kConstantWindowBytes, "constant", address, lane);
    case MemorySpace::Parameter:
      return windowed(block.launch().parameterAddress(), block.launch().config().parameters.size(),
                      "parameter", address, lane);
    default:
      return global(address, lane);
    }
  }

private:
  uint8_t *global(uint64_t address, unsigned lane) {
    uint8_t *host = reinterpret_cast<uint8_t *>(address);
    target = {nullptr, address};
    if (!checks) {
      if (!memory.inArena(address, bytes) && !memory.find(address))
        outside(address, lane);
      return host;
    }
    if (!allocation || address - allocation->address >= allocation->bytes)
      allocation = memory.find(address);
    if (!allocation || allocation->bytes - (address - allocation->address) < bytes || allocation->freed)
      outside(address, lane);
    if (kind != AccessKind::Load && allocation->readOnly)
      fault(FaultKind::ReadOnlyWrite, range(address) + " are " + verb(kind) + ", in " + allocation->what,
            lane);
    if (kind != AccessKind::Store)
      if (auto first = memory.firstUninitialized(address, bytes))
        neverWritten(range(address), *first, " (" + where(*allocation, address) + ")", lane);
    if (kind != AccessKind::Load)
      memory.setInitialized(address, bytes, true);
    return host;
  }

  /// An address that counts from the start of `window`, which is device memory.
  uint8_t *windowed(uint64_t window, uint64_t size, const char *space, uint64_t address, unsigned lane) {
    if (address > size || size - address < bytes)
      fault(FaultKind::OutOfBounds,
            std::to_string(bytes) + " bytes at " + space + " address " + hex(address) + " are " + verb(kind) +
                ", the " + space + " space has " + std::to_string(size) + " bytes",
            lane);
    return global(window + address, lane);
  }

  SharedPlace place(uint64_t address, unsigned lane) {
    unsigned rank = unsigned(address >> kSharedRankShift);
    uint64_t offset = address & ((uint64_t(1) << kSharedRankShift) - 1);
    auto &blocks = block.cluster().blocks();
    if (rank >= blocks.size() || offset + bytes > blocks[rank]->sharedBytes())
      fault(FaultKind::OutOfBounds,
            std::to_string(bytes) + " bytes at shared address " + hex(address) + " are " + verb(kind) +
                ", the block has " + std::to_string(block.sharedBytes()) + " bytes of shared memory" +
                (rank < blocks.size() ? "" : " and the cluster " + std::to_string(blocks.size()) + " blocks"),
            lane);
    return {blocks[rank].get(), uint32_t(offset)};
  }

  uint8_t *shared(uint64_t address, unsigned lane) { return shared(place(address, lane), address, lane); }

  uint8_t *shared(const SharedPlace &at, uint64_t address, unsigned lane) {
    auto [owner, offset] = at;
    target = {owner, offset};
    uint8_t *written = owner->sharedInitialized() + offset;
    if (checks && kind != AccessKind::Store)
      if (const void *first = std::memchr(written, 0, bytes))
        neverWritten(std::to_string(bytes) + " bytes at shared address " + hex(address),
                     uint64_t(static_cast<const uint8_t *>(first) - written), "", lane);
    if (checks && kind != AccessKind::Load) {
      std::memset(written, 1, bytes);
      owner->overwriteMbarriers(offset, bytes);
    }
    return owner->shared() + offset;
  }

  uint8_t *local(uint64_t address, unsigned lane) {
    isLocal = true;
    uint64_t size = block.launch().localBytesPerThread();
    if (address > size || size - address < bytes)
      fault(FaultKind::OutOfBounds,
            std::to_string(bytes) + " bytes at local address " + hex(address) + " are " + verb(kind) +
                ", the thread has " + std::to_string(size) + " bytes of local memory",
            lane);
    return block.local(warp->index(), lane) + address;
  }

  std::string range(uint64_t address) const { return std::to_string(bytes) + " bytes at " + hex(address); }

  static std::string where(const Allocation &known, uint64_t address) {
    std::string size = std::to_string(known.bytes) + " bytes of " + known.what + " at " + hex(known.address);
    uint64_t offset = address - known.address;
    if (offset < known.bytes)
      return "offset " + std::to_string(offset) + " in the " + size;
    return std::to_string(offset - known.bytes) + " bytes behind the " + size;
  }

  [[noreturn]] void outside(uint64_t address, unsigned lane) {
    std::string text = range(address) + " are " + verb(kind);
    const Allocation *near = memory.below(address);
    if (near && address - near->address < near->bytes && near->freed)
      fault(FaultKind::UseAfterFree, text + ", " + where(*near, address) + ", which was freed", lane);
    fault(FaultKind::OutOfBounds,
          text + (near ? ", " + where(*near, address) : ", which is no device memory"), lane);
  }

  void neverWritten(const std::string &what, uint64_t first, const std::string &where, unsigned lane) {
    std::string message =
        what + " are read, byte " + std::to_string(first) + " of them was never written" + where;
    if (warp)
      return warp->finding(FaultKind::UninitializedRead, std::move(message), Mask(1) << lane);
    const Fault *origin = block.cluster().operations().runningOrigin();
    Fault found = origin ? *origin : Fault();
    found.kind = FaultKind::UninitializedRead;
    found.message = std::move(message);
    block.launch().find(found);
  }

  [[noreturn]] void fault(FaultKind fault, std::string message, unsigned lane) {
    if (warp)
      warp->fault(fault, std::move(message), Mask(1) << lane);
    Fault placeless;
    placeless.kind = fault;
    placeless.message = std::move(message);
    throw placeless;
  }

  friend void fp8emu::resolve(Warp &, MemorySpace, Mask, const uint64_t *, unsigned, unsigned, AccessKind,
                              uint8_t **);
  friend SharedPlace fp8emu::findShared(Warp &, MemorySpace, uint64_t, unsigned, unsigned, unsigned);
  friend uint8_t *fp8emu::resolveShared(const SharedPlace &, unsigned, AccessKind);
  friend void fp8emu::resolveGlobal(Block &, std::vector<GlobalRange> &, AccessKind);

  Warp *warp = nullptr;
  Block &block;
  DeviceMemory &memory;
  unsigned bytes;
  AccessKind kind;
  bool checks;
  const Allocation *allocation = nullptr;
};
} // namespace

/// Counts an access in the profile, generic addresses by the space in which they lie.
static void count(Profile &profile, const Warp &warp, MemorySpace space, Mask mask, const uint64_t *addresses,
                  unsigned bytes, AccessKind kind) {
  uint32_t pc = warp.block().cluster().countedPc(warp);
  if (space != MemorySpace::Generic)
    return profile.access(pc, space, mask, addresses, bytes, kind);
  uint64_t inSpace[kLanes];
  Mask global = 0, shared = 0, local = 0;
  forLanes(mask, [&](unsigned lane) {
    inSpace[lane] = addresses[lane];
    MemorySpace own = classify(warp, inSpace[lane]);
    Mask &lanes = own == MemorySpace::Global ? global : own == MemorySpace::Local ? local : shared;
    lanes |= Mask(1) << lane;
  });
  profile.access(pc, MemorySpace::Global, global, inSpace, bytes, kind);
  profile.access(pc, MemorySpace::Shared, shared, inSpace, bytes, kind);
  profile.access(pc, MemorySpace::Local, local, inSpace, bytes, kind);
}

void fp8emu::resolve(Warp &warp, MemorySpace space, Mask mask, const uint64_t *addresses, unsigned bytes,
                     unsigned alignment, AccessKind kind, uint8_t **host) {
  if (Profile *profile = warp.block().cluster().profile())
    count(*profile, warp, space, mask, addresses, bytes, kind);
  Resolver resolver(warp, bytes, kind);
  Target targets[kLanes];
  Observer *observer = warp.block().launch().observer();
  Mask observed = observer && space != MemorySpace::Parameter && space != MemorySpace::Const ? mask : 0;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    if (addresses[lane] % alignment)
      resolver.fault(FaultKind::Misaligned,
                     std::to_string(bytes) + " bytes at " + hex(addresses[lane]) + " are " + verb(kind) +
                         ", the address must be a multiple of " + std::to_string(alignment),
                     lane);
    host[lane] = resolver.find(space, addresses[lane], lane);
    targets[lane] = resolver.target;
    if (resolver.isLocal)
      observed &= ~(Mask(1) << lane);
    resolver.isLocal = false;
  }
  if (observed && !warp.isIdle())
    observer->access(warp, observed, targets, bytes, kind);
}

SharedPlace fp8emu::findShared(Warp &warp, MemorySpace space, uint64_t address, unsigned bytes,
                               unsigned alignment, unsigned lane) {
  Resolver resolver(warp, bytes, AccessKind::Atomic);
  if (space == MemorySpace::Generic && classify(warp, address) != MemorySpace::SharedCluster)
    warp.fault(FaultKind::IllegalOperand, "the address " + hex(address) + " is not in shared memory",
               Mask(1) << lane);
  if (address % alignment)
    resolver.fault(FaultKind::Misaligned,
                   "the object at shared address " + hex(address) + " must lie at a multiple of " +
                       std::to_string(alignment),
                   lane);
  return resolver.place(address, lane);
}

/// Counts an access of an operation in flight for the instruction that started it.
static void count(Block &block, MemorySpace space, uint64_t address, unsigned bytes, AccessKind kind) {
  Cluster &cluster = block.cluster();
  if (Profile *profile = cluster.profile())
    profile->copy(cluster.operations().runningPc(), space, address, bytes, kind);
}

uint8_t *fp8emu::resolveShared(const SharedPlace &place, unsigned bytes, AccessKind kind) {
  count(*place.block, MemorySpace::Shared, place.offset, bytes, kind);
  Resolver resolver(*place.block, bytes, kind);
  uint64_t address = place.block->sharedBase() + uint64_t(place.offset);
  if (resolver.checks && place.block->done())
    resolver.fault(FaultKind::UseAfterFree,
                   std::to_string(bytes) + " bytes at shared address " + hex(address) + " are " + verb(kind) +
                       " after the block's last thread has exited",
                   0);
  return resolver.shared(resolver.place(address, 0), address, 0);
}

void fp8emu::resolveGlobal(Block &block, std::vector<GlobalRange> &ranges, AccessKind kind) {
  Resolver resolver(block, 0, kind);
  for (GlobalRange &range : ranges) {
    count(block, MemorySpace::Global, range.address, range.bytes, kind);
    resolver.bytes = range.bytes;
    range.host = resolver.global(range.address, 0);
  }
}
