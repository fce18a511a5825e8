// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the instructions of the bulk copy engine are decoded with: their operands have
// several addresses, of which each is an Op as decodeAddress makes it.

#ifndef FP8EMU_ISA_COPY_BULK_H
#define FP8EMU_ISA_COPY_BULK_H

#include "async/Transfer.h"
#include "isa/memory/Memory.h"
#include "isa/memory/Reductions.h"

namespace fp8emu {

/// Shared memory that is written to, and who is told.
struct BulkTarget {
  Op to, barrier;
  /// The blocks of a multicast, as bits; none where only the one with the address is
  /// written to.
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
/// The operand of .L2::cache_hint, which is checked and ignored; the next one's number.
unsigned skipCachePolicy(Decoder &decoder, unsigned operand);

uint64_t laneAddress(Warp &warp, const Op &op, unsigned lane);
/// Where a lane's copy goes. The address must be a multiple of `alignment`, and `bytes`
/// from it on must be in shared memory.
std::vector<TransferToShared::Destination> findDestinations(Warp &warp, const BulkTarget &target,
                                                            unsigned bytes, unsigned alignment, unsigned lane,
                                                            check::Proxy proxy = check::Proxy::Async);
/// The address of shared memory of the thread's own block.
SharedPlace findOwnShared(Warp &warp, const Op &op, unsigned bytes, unsigned alignment, unsigned lane);

/// A fault of a lane where it does not hold.
void requireOperand(Warp &warp, bool holds, unsigned lane, const std::string &message);
void start(Warp &warp, unsigned lane, std::unique_ptr<Operation> operation);

} // namespace fp8emu

#endif // FP8EMU_ISA_COPY_BULK_H
