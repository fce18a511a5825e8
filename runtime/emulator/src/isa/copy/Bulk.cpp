// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of bulk copies: directions, destinations, multicast.

#include "Bulk.h"

#include "exec/Block.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

BulkDirection fp8emu::takeDirection(Decoder &decoder) {
  // Modifiers are taken by name; their order decides the direction of the copy.
  const auto &modifiers = decoder.instruction().modifiers;
  auto at = [&](const char *name) {
    return std::find(modifiers.begin(), modifiers.end(), name) - modifiers.begin();
  };
  const auto global = at("global"), block = at("shared::cta"), cluster = at("shared::cluster");
  bool fromOrToGlobal = decoder.take("global"), ofBlock = decoder.take("shared::cta");
  bool toCluster = decoder.take("shared::cluster");
  if (fromOrToGlobal && ofBlock && !toCluster)
    return global < block ? BulkDirection::BlockToGlobal : BulkDirection::GlobalToBlock;
  if (fromOrToGlobal && toCluster && !ofBlock && cluster < global)
    return BulkDirection::GlobalToCluster;
  if (toCluster && ofBlock && !fromOrToGlobal && cluster < block)
    return BulkDirection::BlockToCluster;
  decoder.fail("the state spaces are not those of a bulk copy");
}

bool fp8emu::takeReduction(Decoder &decoder, ReductionKind &kind) {
  if (!decoder.take("reduce"))
    return false;
  kind = ReductionKind(decoder.needOneOf({"add", "min", "max", "inc", "dec", "and", "or", "xor"}));
  return true;
}

Op fp8emu::decodeAddressOp(Decoder &decoder, const Operand &operand, MemorySpace space) {
  decodeAddress(decoder, operand, space);
  return decoder.op();
}

bool fp8emu::decodeTarget(Decoder &decoder, BulkDirection direction, BulkTarget &target,
                          const Operand &barrier, unsigned mask) {
  if (!decoder.take("mbarrier::complete_tx::bytes"))
    decoder.fail(".mbarrier::complete_tx::bytes is missing");
  target.ownBlock = direction == BulkDirection::GlobalToBlock;
  target.barrier =
      decodeAddressOp(decoder, barrier, target.ownBlock ? MemorySpace::Shared : MemorySpace::SharedCluster);
  if (!decoder.take("multicast::cluster"))
    return false;
  if (direction != BulkDirection::GlobalToCluster)
    decoder.fail("copies from global to .shared::cluster are multicast only");
  target.blocks = decoder.source(mask, Type::U16);
  return true;
}

unsigned fp8emu::skipCachePolicy(Decoder &decoder, unsigned operand) {
  if (!decoder.take("L2::cache_hint"))
    return operand;
  decoder.source(operand, Type::U64);
  return operand + 1;
}

uint64_t fp8emu::laneAddress(Warp &warp, const Op &op, unsigned lane) {
  uint64_t addresses[kLanes];
  laneAddresses(warp, op, Mask(1) << lane, addresses);
  return addresses[lane];
}

void fp8emu::requireOperand(Warp &warp, bool holds, unsigned lane, const std::string &message) {
  if (!holds)
    warp.fault(FaultKind::IllegalOperand, message, Mask(1) << lane);
}

SharedPlace fp8emu::findOwnShared(Warp &warp, const Op &op, unsigned bytes, unsigned alignment,
                                  unsigned lane) {
  SharedPlace place = findShared(warp, spaceOf(op), laneAddress(warp, op, lane), bytes, alignment, lane);
  requireOperand(warp, place.block == &warp.block(), lane,
                 "the address is in the shared memory of block " + std::to_string(place.block->rank()) +
                     " of the cluster, .shared::cta is that of the thread's own");
  return place;
}

std::vector<TransferToShared::Destination> fp8emu::findDestinations(Warp &warp, const BulkTarget &target,
                                                                    unsigned bytes, unsigned alignment,
                                                                    unsigned lane, check::Proxy proxy) {
  SharedPlace to = target.ownBlock ? findOwnShared(warp, target.to, bytes, alignment, lane)
                                   : findShared(warp, spaceOf(target.to), laneAddress(warp, target.to, lane),
                                                bytes, alignment, lane);
  SharedPlace barrier =
      findShared(warp, spaceOf(target.barrier), laneAddress(warp, target.barrier, lane), 8, 8, lane);
  const unsigned apart = to.block->rank() ^ barrier.block->rank();
  if (!target.blocks) {
    requireOperand(warp, apart <= unsigned(target.pair), lane,
                   "the mbarrier must be in the block that is written to" +
                       std::string(target.pair ? " or its peer" : ""));
    return {{to, barrier, check::Agent::untilMbarrier(warp, lane, *barrier.block, barrier.offset, proxy)}};
  }
  auto &blocks = warp.block().cluster().blocks();
  std::vector<TransferToShared::Destination> out;
  const uint32_t mask = warp.values<uint16_t>(target.blocks)[lane];
  for (unsigned rank = 0; rank < 16; ++rank) {
    if (!(mask >> rank & 1))
      continue;
    requireOperand(warp, rank < blocks.size(), lane,
                   "the copy goes to block " + std::to_string(rank) + ", the cluster has " +
                       std::to_string(blocks.size()));
    // In a pair, blocks of the same parity as the one that was named are told.
    unsigned told = target.pair ? (rank & ~1u) | (barrier.block->rank() & 1) : rank;
    out.push_back({{blocks[rank].get(), to.offset},
                   {blocks[told].get(), barrier.offset},
                   check::Agent::untilMbarrier(warp, lane, *blocks[told], barrier.offset, proxy)});
  }
  std::shuffle(out.begin(), out.end(), warp.block().cluster().generator());
  return out;
}

void fp8emu::start(Warp &warp, unsigned lane, std::unique_ptr<Operation> operation) {
  warp.locate(operation->origin, Mask(1) << lane);
  warp.block().cluster().operations().start(std::move(operation));
}
