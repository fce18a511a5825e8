// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding the instructions of the bulk copy engine. Their operands have several addresses;
// each is an Op as decodeAddress makes it.

#ifndef FP8EMU_ISA_COPY_BULK_H
#define FP8EMU_ISA_COPY_BULK_H

#include "async/Transfer.h"
#include "isa/memory/Memory.h"
#include "isa/memory/Reductions.h"

namespace fp8emu {

/// The shared memory that a copy writes to, and the mbarrier that it tells.
struct BulkTarget {
  Op to, barrier;
  /// The blocks of a multicast, as bits; absent where the copy writes only to the block of the
  /// address.
  Ref blocks;
  /// .shared::cta: the thread's own block.
  bool ownBlock = false;
  /// .cta_group::2: the mbarrier may be that of the block's peer.
  bool pair = false;
};

/// The spaces of a copy, in the order in which they are written.
enum class BulkDirection : uint8_t { GlobalToBlock, GlobalToCluster, BlockToCluster, BlockToGlobal };
BulkDirection takeDirection(Decoder &decoder);
bool takeReduction(Decoder &decoder, ReductionKind &kind);

Op decodeAddressOp(Decoder &decoder, const ptx::Operand &operand, MemorySpace space);
/// dst and mbarrier, and the modifiers that belong to them. `mask` is the operand of
/// a multicast, where there is one; true where it was used.
bool decodeTarget(Decoder &decoder, BulkDirection direction, BulkTarget &target, const ptx::Operand &barrier,
                  unsigned mask);
/// Checks and ignores the operand of .L2::cache_hint. Returns the number of the next operand.
unsigned skipCachePolicy(Decoder &decoder, unsigned operand);

uint64_t laneAddress(Warp &warp, const Op &op, unsigned lane);
/// The destinations of a lane's copy. The address must be a multiple of `alignment`, and
/// `bytes` from it on must be in shared memory.
std::vector<TransferToShared::Destination> findDestinations(Warp &warp, const BulkTarget &target,
                                                            unsigned bytes, unsigned alignment, unsigned lane,
                                                            check::Proxy proxy = check::Proxy::Async);
/// The address of shared memory of the thread's own block.
SharedPlace findOwnShared(Warp &warp, const Op &op, unsigned bytes, unsigned alignment, unsigned lane);

/// Faults at the lane where the condition does not hold.
void requireOperand(Warp &warp, bool holds, unsigned lane, const std::string &message);
void start(Warp &warp, unsigned lane, std::unique_ptr<Operation> operation);

} // namespace fp8emu

#endif // FP8EMU_ISA_COPY_BULK_H
