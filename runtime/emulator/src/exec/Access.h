// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the addresses of an access to the host's memory: the one way by which
// instructions reach memory, and the place where accesses are checked.

#ifndef FP8EMU_EXEC_ACCESS_H
#define FP8EMU_EXEC_ACCESS_H

#include "Warp.h"

#include <vector>

namespace fp8emu {

enum class MemorySpace : uint8_t { Generic, Global, Const, Parameter, Shared, SharedCluster, Local };

enum class AccessKind : uint8_t { Load, Store, Atomic };

/// Finds the `bytes` at each lane's address. Addresses are those of the space:
/// shared ones as in Block::sharedBase, local ones count from the thread's local
/// memory, all others are the device's. Faults on what no kernel may touch and on
/// addresses that are not a multiple of `alignment`.
void resolve(Warp &warp, MemorySpace space, Mask mask, const uint64_t *addresses, unsigned bytes,
             unsigned alignment, AccessKind kind, uint8_t **host);

inline void resolve(Warp &warp, MemorySpace space, Mask mask, const uint64_t *addresses, unsigned bytes,
                    AccessKind kind, uint8_t **host) {
  resolve(warp, space, mask, addresses, bytes, bytes, kind, host);
}

/// Where in which block of the cluster a shared address lies.
struct SharedPlace {
  Block *block = nullptr;
  uint32_t offset = 0;
};

/// Finds `bytes` of shared memory at a lane's address, as `resolve`; for objects that
/// live there, of which no byte is read or written here.
SharedPlace findShared(Warp &warp, MemorySpace space, uint64_t address, unsigned bytes, unsigned alignment,
                       unsigned lane);

// For asynchronous operations, which access memory when no instruction runs: a Fault has
// no place, that of the operation is added by who runs it.

/// The bytes from a place on. Faults where the block has exited.
uint8_t *resolveShared(const SharedPlace &place, unsigned bytes, AccessKind kind);

/// Bytes of global memory, and where they lie on the host.
struct GlobalRange {
  uint64_t address = 0;
  unsigned bytes = 0;
  uint8_t *host = nullptr;
};
void resolveGlobal(Block &block, std::vector<GlobalRange> &ranges, AccessKind kind);

/// The space of a generic address, the address in that space put into `address`.
MemorySpace classify(const Warp &warp, uint64_t &address);

} // namespace fp8emu

#endif // FP8EMU_EXEC_ACCESS_H
