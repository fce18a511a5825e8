// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async.bulk and cp.reduce.async.bulk: copies and reductions of arrays (PTX ISA
// 9.7.9.25.4), and the groups that threads wait for (9.7.9.27.2).

#include "Bulk.h"
#include "CopyDecoders.h"

#include "exec/Block.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Type;

namespace {

constexpr unsigned kBulkAlignment = 16;

struct BulkCopy {
  BulkTarget target;
  /// The address in global memory, or in another block.
  Op other;
  /// The address in the thread's block, of copies from there.
  Op own;
  Ref size, bytes;
  Reduction reduction = nullptr;
};

void combine(Reduction reduction, uint8_t *to, const uint8_t *from, unsigned bytes) {
  reduction ? reduction(to, from, bytes) : void(std::copy_n(from, bytes, to));
}

AccessKind writing(Reduction reduction) { return reduction ? AccessKind::Atomic : AccessKind::Store; }

class ArrayToShared : public TransferToShared {
public:
  Block *block = nullptr;
  /// The source: shared memory where it has a block.
  SharedPlace own;
  uint64_t global = 0;
  unsigned bytes = 0;
  Reduction reduction = nullptr;

  /// Says what it reads and writes. The source of a multicast is over for whoever is
  /// told: of none in particular.
  void announce() const {
    if (destinations.size() == 1)
      destinations[0].agent.reads(own.block ? Target{own.block, own.offset} : Target{nullptr, global}, bytes);
    for (const Destination &to : destinations)
      reduction ? to.agent.updates({to.place.block, to.place.offset}, bytes)
                : to.agent.writes({to.place.block, to.place.offset}, bytes);
  }

private:
  uint32_t read() override {
    std::vector<GlobalRange> range{{global, bytes, nullptr}};
    if (!own.block)
      resolveGlobal(*block, range, AccessKind::Load);
    const uint8_t *from = own.block ? resolveShared(own, bytes, AccessKind::Load) : range[0].host;
    data.assign(from, from + bytes);
    return bytes;
  }
  void write(const SharedPlace &to) override {
    combine(reduction, resolveShared(to, bytes, writing(reduction)), data.data(), bytes);
  }
  std::vector<uint8_t> data;
};

class ArrayToGlobal : public TransferToGlobal {
public:
  SharedPlace own;
  uint64_t global = 0;
  unsigned bytes = 0;
  Reduction reduction = nullptr;
  /// The bytes of each 16 that are copied.
  uint16_t mask = 0xFFFF;

  /// Says what it reads and writes.
  void announce(const check::Agent &agent) const {
    eachPiece([&](unsigned at, unsigned count) {
      agent.reads({own.block, own.offset + at}, count);
      reduction ? agent.updates({nullptr, global + at}, count) : agent.writes({nullptr, global + at}, count);
    });
  }

private:
  void read() override {
    data.resize(bytes);
    eachPiece([&](unsigned at, unsigned count) {
      std::copy_n(resolveShared({own.block, own.offset + at}, count, AccessKind::Load), count,
                  data.data() + at);
    });
  }
  void write() override {
    std::vector<GlobalRange> ranges;
    std::vector<unsigned> offsets;
    eachPiece([&](unsigned at, unsigned count) {
      ranges.push_back({global + at, count, nullptr});
      offsets.push_back(at);
    });
    resolveGlobal(*own.block, ranges, writing(reduction));
    for (size_t i = 0; i < ranges.size(); ++i)
      combine(reduction, ranges[i].host, data.data() + offsets[i], ranges[i].bytes);
  }
  /// All of it, or byte by byte what the mask names.
  template <class F>
  void eachPiece(F f) const {
    if (mask == 0xFFFF)
      return f(0u, bytes);
    for (unsigned at = 0; at < bytes; ++at)
      if (mask >> at % 16 & 1)
        f(at, 1u);
  }
  std::vector<uint8_t> data;
};

uint64_t globalAddress(Warp &warp, const Op &op, unsigned lane) {
  uint64_t address = laneAddress(warp, op, lane);
  if (address % kBulkAlignment)
    warp.fault(FaultKind::Misaligned, "the address in global memory must be a multiple of 16",
               Mask(1) << lane);
  return address;
}

unsigned sizeOf(Warp &warp, Ref size, unsigned lane) {
  uint32_t bytes = warp.values<uint32_t>(size)[lane];
  requireOperand(warp, bytes % 16 == 0, lane,
                 std::to_string(bytes) + " bytes are to be copied, they must be a multiple of 16");
  return bytes;
}

const BulkCopy &copyOf(const Op &op) { return *static_cast<const BulkCopy *>(op.payload); }

void copyToShared(Warp &warp, const Op &op, Mask mask) {
  const BulkCopy &copy = copyOf(op);
  forLanes(mask, [&](unsigned lane) {
    auto operation = std::make_unique<ArrayToShared>();
    operation->block = &warp.block();
    operation->bytes = sizeOf(warp, copy.size, lane);
    operation->reduction = copy.reduction;
    operation->destinations = findDestinations(warp, copy.target, operation->bytes, kBulkAlignment, lane);
    if (op.flags) {
      operation->own = findOwnShared(warp, copy.own, operation->bytes, kBulkAlignment, lane);
      requireOperand(warp, operation->destinations[0].place.block != &warp.block(), lane,
                     "copies from .shared::cta to .shared::cluster go to another block");
    } else {
      operation->global = globalAddress(warp, copy.other, lane);
    }
    operation->announce();
    start(warp, lane, std::move(operation));
  });
}

void copyToGlobal(Warp &warp, const Op &op, Mask mask) {
  const BulkCopy &copy = copyOf(op);
  forLanes(mask, [&](unsigned lane) {
    auto operation = std::make_unique<ArrayToGlobal>();
    operation->bytes = sizeOf(warp, copy.size, lane);
    operation->reduction = copy.reduction;
    operation->own = findOwnShared(warp, copy.own, operation->bytes, kBulkAlignment, lane);
    operation->global = globalAddress(warp, copy.other, lane);
    if (copy.bytes)
      operation->mask = warp.values<uint16_t>(copy.bytes)[lane];
    operation->group = warp.bulkGroups(lane).add();
    operation->announce(check::Agent::inGroup(warp, lane, check::GroupKind::Bulk, check::Proxy::Async));
    start(warp, lane, std::move(operation));
  });
}

void commit(Warp &warp, const Op &, Mask mask) {
  forLanes(mask, [&](unsigned lane) { warp.bulkGroups(lane).commit(); });
  check::commitGroup(warp, mask, check::GroupKind::Bulk);
}

/// Waits until all but the last op.immediate groups are over; op.flags: have read.
void waitGroups(Warp &warp, const Op &op, Mask mask) {
  Mask unfinished = 0;
  forLanes(mask, [&](unsigned lane) {
    bool complete = warp.bulkGroups(lane).complete(uint64_t(op.immediate), op.flags);
    unfinished |= Mask(!complete) << lane;
  });
  check::waitedForGroups(warp, mask & ~unfinished, check::GroupKind::Bulk, uint64_t(op.immediate), op.flags);
  if (unfinished)
    warp.wait(unfinished, Wait::Async, 0, 0, /*repeat=*/true);
}

void doNothing(Warp &, const Op &, Mask) {}

Reduction decodeReduction(Decoder &decoder, ReductionKind kind, bool inShared) {
  const bool noftz = decoder.take("noftz");
  const Type type = decoder.takeType();
  Reduction reduction = findReduction(kind, type);
  if (!reduction || (inShared && !reducesInShared(kind, type)))
    decoder.fail("there is no ." + std::string(name(kind)) + " of ." + ptx::name(type) +
                 (inShared ? " in shared memory" : ""));
  const bool half = type == Type::F16 || type == Type::BF16;
  if (noftz != (half && kind == ReductionKind::Add))
    decoder.fail(noftz ? ".noftz is for .add of f16 and bf16" : ".noftz is missing");
  // The order of the others changes no result.
  if (!inShared && (isFloat(type) || kind == ReductionKind::Inc || kind == ReductionKind::Dec))
    decoder.blocksCommunicate();
  return reduction;
}

void decodePrefetch(Decoder &decoder) {
  if (!decoder.take("L2") || !decoder.take("global"))
    decoder.fail("bulks are prefetched from .global into .L2");
  decodeAddress(decoder, decoder.operand(0), MemorySpace::Global);
  decoder.source(1, Type::U32);
  decoder.expectOperands(skipCachePolicy(decoder, 2));
  decoder.op().handler = &doNothing;
}

void decodeToShared(Decoder &decoder, BulkDirection direction, BulkCopy &copy) {
  const bool ownBlock = direction == BulkDirection::GlobalToBlock;
  copy.target.to = decodeAddressOp(decoder, decoder.operand(0),
                                   ownBlock ? MemorySpace::Shared : MemorySpace::SharedCluster);
  const bool fromBlock = direction == BulkDirection::BlockToCluster;
  (fromBlock ? copy.own : copy.other) =
      decodeAddressOp(decoder, decoder.operand(1), fromBlock ? MemorySpace::Shared : MemorySpace::Global);
  unsigned next = 4 + decodeTarget(decoder, direction, copy.target, decoder.operand(3), 4);
  decoder.expectOperands(skipCachePolicy(decoder, next));
  decoder.op().flags = fromBlock;
  decoder.op().handler = &copyToShared;
}

void decodeToGlobal(Decoder &decoder, BulkCopy &copy) {
  if (!decoder.take("bulk_group"))
    decoder.fail(".bulk_group is missing");
  copy.other = decodeAddressOp(decoder, decoder.operand(0), MemorySpace::Global);
  copy.own = decodeAddressOp(decoder, decoder.operand(1), MemorySpace::Shared);
  unsigned next = skipCachePolicy(decoder, 3);
  if (decoder.take("cp_mask"))
    copy.bytes = decoder.source(next++, Type::U16);
  decoder.expectOperands(next);
  decoder.op().handler = &copyToGlobal;
}

void decodeCopy(Decoder &decoder) {
  BulkCopy copy;
  ReductionKind kind{};
  const bool reduces = takeReduction(decoder, kind);
  const BulkDirection direction = takeDirection(decoder);
  const bool toGlobal = direction == BulkDirection::BlockToGlobal;
  if (reduces && direction != BulkDirection::BlockToCluster && !toGlobal)
    decoder.fail("reductions read .shared::cta");
  if (reduces)
    copy.reduction = decodeReduction(decoder, kind, !toGlobal);
  copy.size = decoder.source(2, Type::U32);
  toGlobal ? decodeToGlobal(decoder, copy) : decodeToShared(decoder, direction, copy);
  if (reduces && copy.bytes)
    decoder.fail("reductions have no .cp_mask");
  decoder.keep<BulkCopy>(std::make_shared<BulkCopy>(copy));
}

} // namespace

void fp8emu::decodeCopyBulk(Decoder &decoder) {
  if (decoder.take("tensor"))
    return decodeCopyTensor(decoder);
  if (decoder.take("prefetch"))
    return decodePrefetch(decoder);
  if (decoder.take("commit_group")) {
    decoder.expectOperands(0);
    decoder.op().handler = &commit;
  } else if (decoder.take("wait_group")) {
    decoder.op().flags = decoder.take("read");
    decoder.expectOperands(1);
    decoder.op().immediate = decoder.count(decoder.operand(0));
    decoder.op().handler = &waitGroups;
  } else {
    decodeCopy(decoder);
  }
}
