// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async: copies of 4, 8 or 16 bytes a thread from global to shared memory, which
// go on while the thread does (PTX ISA 9.7.9.25.3). Bulk copies: CopyBulk.cpp and CopyTensor.cpp.

#include "CopyDecoders.h"

#include "async/Mbarrier.h"
#include "check/Agent.h"
#include "check/Record.h"
#include "exec/Block.h"
#include "isa/Families.h"
#include "isa/Lanes.h"
#include "isa/memory/Memory.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// The copies that one instruction starts.
class Copies : public Operation {
public:
  struct Copy {
    const uint8_t *from;
    uint8_t *to;
    unsigned bytes, size;
    std::shared_ptr<Groups::Group> group;
    uint8_t data[16];
  };
  std::vector<Copy> copies;

  bool step() override {
    if (!hasRead) {
      for (Copy &copy : copies) {
        std::memset(copy.data, 0, sizeof copy.data);
        std::copy_n(copy.from, copy.bytes, copy.data);
        --copy.group->unread;
      }
      hasRead = true;
      return false;
    }
    for (Copy &copy : copies) {
      std::memcpy(copy.to, copy.data, copy.size);
      --copy.group->unfinished;
    }
    return true;
  }

private:
  bool hasRead = false;
};

/// op.d is the address in shared memory, op.a in global; op.flags the bytes, op.b how
/// many of them are read (the rest is zero), op.c a predicate of lanes that read none, op.e of
/// the lanes that read.
void copy(Warp &warp, const Op &op, Mask mask) {
  uint64_t from[kLanes], to[kLanes];
  uint8_t *source[kLanes] = {}, *target[kLanes];
  laneAddresses(warp, op, mask, from);
  const auto *shared = static_cast<const Op *>(op.payload);
  laneAddresses(warp, *shared, mask, to);
  resolve(warp, spaceOf(*shared), mask, to, op.flags, AccessKind::Store, target);
  uint32_t bytes[kLanes];
  const uint32_t *read = op.b ? warp.values<uint32_t>(op.b) : nullptr;
  Mask ignored = op.c ? warp.predicate(op.c) : op.e ? ~warp.predicate(op.e) : 0;
  forLanes(mask, [&](unsigned lane) {
    bytes[lane] = ignored >> lane & 1 ? 0 : read ? read[lane] : op.flags;
    if (bytes[lane] > op.flags)
      warp.fault(FaultKind::IllegalOperand,
                 std::to_string(bytes[lane]) + " bytes are to be read of a copy of " +
                     std::to_string(op.flags),
                 Mask(1) << lane);
  });
  // One access for lanes that read the same number of bytes.
  for (Mask rest = mask; rest;) {
    uint32_t own = bytes[__builtin_ctz(rest)];
    Mask same = 0;
    forLanes(rest, [&](unsigned lane) { same |= Mask(bytes[lane] == own) << lane; });
    if (own)
      resolve(warp, spaceOf(op), same, from, own, op.flags, AccessKind::Load, source);
    rest &= ~same;
  }
  auto operation = std::make_unique<Copies>();
  warp.locate(operation->origin, mask);
  forLanes(mask, [&](unsigned lane) {
    operation->copies.push_back(
        {source[lane], target[lane], bytes[lane], op.flags, warp.copyGroups(lane).add(), {}});
    // cp.async accesses memory by the generic proxy.
    auto agent = check::Agent::inGroup(warp, lane, check::GroupKind::Copies, check::Proxy::Generic);
    if (bytes[lane])
      agent.reads(check::targetOf(warp, spaceOf(op), from[lane]), bytes[lane]);
    agent.writes(check::targetOf(warp, spaceOf(*shared), to[lane]), op.flags);
  });
  warp.block().cluster().operations().start(std::move(operation));
}

void commit(Warp &warp, const Op &, Mask mask) {
  forLanes(mask, [&](unsigned lane) { warp.copyGroups(lane).commit(); });
  check::commitGroup(warp, mask, check::GroupKind::Copies);
}

/// Waits until all but the last op.immediate groups have finished; -1: everything.
void waitGroups(Warp &warp, const Op &op, Mask mask) {
  Mask unfinished = 0;
  forLanes(mask, [&](unsigned lane) {
    Groups &groups = warp.copyGroups(lane);
    bool complete = op.immediate < 0 ? groups.allComplete() : groups.complete(uint64_t(op.immediate));
    unfinished |= Mask(!complete) << lane;
  });
  check::waitedForGroups(warp, mask & ~unfinished, check::GroupKind::Copies,
                         op.immediate < 0 ? check::kEverything : uint64_t(op.immediate));
  if (unfinished)
    warp.wait(unfinished, Wait::Async, 0, 0, /*repeat=*/true);
}

/// cp.async.mbarrier.arrive: arrives once all copies of the thread so far are over.
class ArriveAfter : public Operation {
public:
  ArriveAfter(Groups &groups, SharedPlace place, std::function<void()> release)
      : groups(groups), place(place), release(std::move(release)) {}
  bool ready() const override { return groups.allComplete(); }
  bool step() override {
    release();
    Mbarrier(*place.block, place.offset).arrive(1);
    return true;
  }

private:
  Groups &groups;
  SharedPlace place;
  /// Releases the writes of the copies.
  std::function<void()> release;
};

void arriveAfter(Warp &warp, const Op &op, Mask mask) {
  uint64_t addresses[kLanes];
  laneAddresses(warp, op, mask, addresses);
  forLanes(mask, [&](unsigned lane) {
    SharedPlace place = findShared(warp, spaceOf(op), addresses[lane], 8, 8, lane);
    if (!op.flags)
      Mbarrier(*place.block, place.offset).incrementPending();
    auto operation = std::make_unique<ArriveAfter>(
        warp.copyGroups(lane), place,
        check::releaseGroups(warp, lane, check::GroupKind::Copies, *place.block, place.offset));
    warp.locate(operation->origin, Mask(1) << lane);
    warp.block().cluster().operations().start(std::move(operation));
  });
}

void decodeArriveAfter(Decoder &decoder) {
  decoder.take("arrive");
  decoder.op().flags = decoder.take("noinc");
  MemorySpace space = takeSpace(decoder);
  decoder.take("b64");
  decoder.expectOperands(1);
  decodeAddress(decoder, decoder.operand(0), space);
  decoder.op().handler = &arriveAfter;
}

/// The operand between the size and a cache policy: a predicate of lanes that read nothing, or
/// the bytes to read.
void decodeIgnored(Decoder &decoder, const Operand &operand) {
  Op &op = decoder.op();
  if (operand.kind != Operand::Kind::Register || decoder.registerType(operand.index) != Type::Pred) {
    op.b = decoder.source(operand, Type::U32);
    return;
  }
  bool negated = false;
  const Ref predicate = decoder.predicate(operand, &negated);
  (negated ? op.e : op.c) = predicate;
}

void decodeCopy(Decoder &decoder) {
  const bool hint = decoder.take("L2::cache_hint"), bypassesL1 = decoder.take("cg");
  decoder.ignoreCacheHints();
  MemorySpace to = takeSpace(decoder), from = takeSpace(decoder);
  // takeSpace finds .global first, whatever the order.
  if (to == MemorySpace::Global)
    std::swap(to, from);
  decoder.expectOperands(3 + hint, 4 + hint);
  Op &op = decoder.op();
  decodeAddress(decoder, decoder.operand(0), to);
  auto shared = std::make_shared<Op>(op);
  decodeAddress(decoder, decoder.operand(1), from);
  decoder.keep<Op>(shared);
  int64_t bytes = decoder.integer(decoder.operand(2));
  op.flags = uint8_t(bytes);
  if (bytes != 16 && (bypassesL1 || (bytes != 4 && bytes != 8)))
    decoder.fail(decoder.operand(2), bypassesL1 ? "16 bytes are copied" : "4, 8 or 16 bytes are copied");
  if (decoder.operands() == 4 + hint)
    decodeIgnored(decoder, decoder.operand(3));
  if (hint)
    decoder.source(decoder.operands() - 1, Type::U64);
  op.ordering = check::ordering::kInFlight;
  op.handler = &copy;
}

void decodeCopyAsync(Decoder &decoder) {
  if (!decoder.take("async"))
    decoder.fail("cp.async or one of its kin is expected");
  if (decoder.take("bulk"))
    return decodeCopyBulk(decoder);
  if (decoder.take("mbarrier"))
    return decodeArriveAfter(decoder);
  if (decoder.take("commit_group")) {
    decoder.op().handler = &commit;
  } else if (decoder.take("wait_all")) {
    decoder.op().immediate = -1;
    decoder.op().handler = &waitGroups;
  } else if (decoder.take("wait_group")) {
    decoder.expectOperands(1);
    decoder.op().immediate = decoder.count(decoder.operand(0));
    decoder.op().handler = &waitGroups;
  } else {
    decodeCopy(decoder);
  }
}

} // namespace

FamilyList fp8emu::copyInstructions() { return {{"cp", decodeCopyAsync}}; }
