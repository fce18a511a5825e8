// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the addresses of an access into the host's. Instructions reach memory in no other
// way, and accesses are checked here.

#ifndef FP8EMU_EXEC_ACCESS_H
#define FP8EMU_EXEC_ACCESS_H

#include "Warp.h"

#include <vector>

namespace fp8emu {

enum class MemorySpace : uint8_t { Generic, Global, Const, Parameter, Shared, SharedCluster, Local };

enum class AccessKind : uint8_t { Load, Store, Atomic };

/// Finds the `bytes` at each lane's address and puts their places on the host into `host`.
/// Addresses are those of the space: shared ones begin at Block::sharedBase, local ones count
/// from the thread's local memory, those of parameters from the launch's, those of constants
/// from DeviceMemory::constantWindow, all others are the device's. Faults on memory that a
/// kernel may not touch and on addresses that are not a multiple of `alignment`.
void resolve(Warp &warp, MemorySpace space, Mask mask, const uint64_t *addresses, unsigned bytes,
             unsigned alignment, AccessKind kind, uint8_t **host);

inline void resolve(Warp &warp, MemorySpace space, Mask mask, const uint64_t *addresses, unsigned bytes,
                    AccessKind kind, uint8_t **host) {
  resolve(warp, space, mask, addresses, bytes, bytes, kind, host);
}

/// The block of the cluster that a shared address lies in, and the offset in its memory.
struct SharedPlace {
  Block *block = nullptr;
  uint32_t offset = 0;
};

/// Finds an object of `bytes` in shared memory at a lane's address, with the faults of
/// `resolve`. Nothing of the object is read or written.
SharedPlace findShared(Warp &warp, MemorySpace space, uint64_t address, unsigned bytes, unsigned alignment,
                       unsigned lane);

// For asynchronous operations, which access memory when no instruction runs. A Fault has no
// place; OperationQueue::step adds the place where the operation was started.

/// The host's address of the bytes from a place on. Faults where the block has exited.
uint8_t *resolveShared(const SharedPlace &place, unsigned bytes, AccessKind kind);

/// Bytes of global memory, and where they lie on the host.
struct GlobalRange {
  uint64_t address = 0;
  unsigned bytes = 0;
  uint8_t *host = nullptr;
};
void resolveGlobal(Block &block, std::vector<GlobalRange> &ranges, AccessKind kind);

/// The space of a generic address; `address` becomes the address in that space.
MemorySpace classify(const Warp &warp, uint64_t &address);

} // namespace fp8emu

#endif // FP8EMU_EXEC_ACCESS_H
