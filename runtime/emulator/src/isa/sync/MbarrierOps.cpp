// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions on mbarrier objects (PTX ISA 9.7.13.15).

#include "async/Mbarrier.h"
#include "check/Record.h"
#include "exec/Block.h"
#include "isa/Families.h"
#include "isa/Lanes.h"
#include "isa/memory/Memory.h"

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

void initialize(Warp &warp, const Op &op, Mask mask);
void invalidate(Warp &warp, const Op &op, Mask mask);

/// Beginning its life is a write like any other, all else is atomic; a thread that ends
/// it may know by other means that it is not used any more.
void lookAtObject(Warp &warp, const Op &op, const SharedPlace &place, unsigned lane) {
  Target targets[kLanes];
  targets[lane] = {place.block, place.offset};
  if (op.handler == &invalidate)
    return;
  if (op.handler == &initialize)
    check::access(warp, Mask(1) << lane, targets, 8, AccessKind::Store, 0);
  else
    check::access(warp, Mask(1) << lane, targets, 8, AccessKind::Atomic,
                  check::ordering::strong(check::Level::Device) | check::ordering::kNoPattern);
}

/// The object at a lane's address. Its mistakes are reported at this instruction.
template <class F>
void withBarrier(Warp &warp, const Op &op, const uint64_t *addresses, unsigned lane, F f) {
  SharedPlace place = findShared(warp, spaceOf(op), addresses[lane], 8, 8, lane);
  Mbarrier barrier(*place.block, place.offset);
  lookAtObject(warp, op, place, lane);
  try {
    f(barrier);
  } catch (Fault &fault) {
    if (fault.kernel.empty())
      warp.locate(fault, Mask(1) << lane);
    throw;
  }
}

uint32_t countOf(Warp &warp, const Op &op, unsigned lane) {
  return op.b ? warp.values<uint32_t>(op.b)[lane] : 1;
}

/// One lane after the other does `f(barrier, lane)`.
template <class F>
void eachLane(Warp &warp, const Op &op, Mask mask, F f) {
  uint64_t addresses[kLanes];
  laneAddresses(warp, op, mask, addresses);
  forLanes(mask, [&](unsigned lane) {
    withBarrier(warp, op, addresses, lane, [&](Mbarrier &barrier) { f(barrier, lane); });
  });
}

void initialize(Warp &warp, const Op &op, Mask mask) {
  eachLane(warp, op, mask,
           [&](Mbarrier &barrier, unsigned lane) { barrier.initialize(countOf(warp, op, lane)); });
}
void invalidate(Warp &warp, const Op &op, Mask mask) {
  eachLane(warp, op, mask, [&](Mbarrier &barrier, unsigned) { barrier.invalidate(); });
}
void expectBytes(Warp &warp, const Op &op, Mask mask) {
  eachLane(warp, op, mask,
           [&](Mbarrier &barrier, unsigned lane) { barrier.expectBytes(countOf(warp, op, lane)); });
}
void completeBytes(Warp &warp, const Op &op, Mask mask) {
  eachLane(warp, op, mask,
           [&](Mbarrier &barrier, unsigned lane) { barrier.completeBytes(countOf(warp, op, lane)); });
}

/// Arrivals release and waits acquire unless they are relaxed.
uint8_t phaseOrdering(const Ordering &ordering) {
  bool orders = ordering.semantics != Semantics::Relaxed;
  return check::ordering::strong(check::Level::Device, orders, orders);
}

enum Arrive : uint8_t { Plain, ExpectBytes, Drop = 2, NoComplete = 4 };

void arrive(Warp &warp, const Op &op, Mask mask) {
  uint64_t *tokens = op.d ? warp.values<uint64_t>(op.d) : nullptr;
  eachLane(warp, op, mask, [&](Mbarrier &barrier, unsigned lane) {
    uint32_t count = 1;
    if (op.flags & ExpectBytes)
      barrier.expectBytes(countOf(warp, op, lane));
    else
      count = countOf(warp, op, lane);
    check::arriveAtMbarrier(warp, lane, barrier.owner(), barrier.place(), op.ordering);
    uint64_t token = barrier.arrive(count, op.flags & Drop);
    if (tokens)
      tokens[lane] = token;
  });
}

void decodeArrive(Decoder &decoder, uint8_t flags) {
  Op &op = decoder.op();
  if (decoder.take("expect_tx"))
    flags |= ExpectBytes;
  if (decoder.take("noComplete"))
    flags |= NoComplete;
  op.ordering = phaseOrdering(takeOrdering(decoder));
  MemorySpace space = takeSpace(decoder);
  decoder.take("b64");
  // Without a token: state is `_`, or missing altogether.
  unsigned first = decoder.operand(0).kind == Operand::Kind::Address ? 0 : 1;
  decodeAddress(decoder, decoder.operand(first), space);
  const bool hasToken = first && decoder.operand(0).kind != Operand::Kind::Sink;
  if (hasToken && space == MemorySpace::SharedCluster)
    decoder.fail(decoder.operand(0), "an arrival in .shared::cluster has no token: the sink _ is expected");
  if (hasToken)
    op.d = decoder.destination(0, Type::U64);
  if (decoder.operands() > first + 1)
    op.b = decoder.source(first + 1, Type::U32);
  else if (flags & ExpectBytes)
    decoder.fail("the number of bytes is missing");
  op.flags = flags;
  op.handler = &arrive;
}

/// Waits: op.b is the token or the parity; lanes whose phase has not completed wait
/// (try_wait) or go on without success (test_wait).
template <bool Parity, bool Waits>
void wait(Warp &warp, const Op &op, Mask mask) {
  uint64_t addresses[kLanes];
  laneAddresses(warp, op, mask, addresses);
  Mask complete = 0, late = Waits ? warp.takeTimedOut(mask) : 0;
  Mask waiting = 0;
  SharedPlace place;
  forLanes(mask, [&](unsigned lane) {
    withBarrier(warp, op, addresses, lane, [&](Mbarrier &barrier) {
      bool is = Parity ? barrier.parityIsComplete(warp.values<uint32_t>(op.b)[lane] & 1)
                       : barrier.tokenIsComplete(warp.values<uint64_t>(op.b)[lane]);
      complete |= Mask(is) << lane;
      if (is)
        check::waitedForMbarrier(warp, lane, barrier.owner(), barrier.place(), op.ordering);
      if (!is && Waits && !(late >> lane & 1))
        waiting |= Mask(1) << lane;
    });
  });
  Mask answered = mask & ~waiting;
  Mask &d = warp.predicate(op.d);
  d = (d & ~answered) | (complete & answered);
  if (!Waits && mask & ~complete)
    warp.yield();
  // Lanes wait in groups by the object, which may differ between them.
  while (waiting) {
    unsigned lane = unsigned(__builtin_ctz(waiting));
    Mask same = 0;
    forLanes(waiting, [&](unsigned i) { same |= Mask(addresses[i] == addresses[lane]) << i; });
    place = findShared(warp, spaceOf(op), addresses[lane], 8, 8, lane);
    warp.wait(same, Wait::Mbarrier, place.offset, 0, /*repeat=*/true);
    waiting &= ~same;
  }
}

void decodeWait(Decoder &decoder, bool waits) {
  Op &op = decoder.op();
  bool parity = decoder.take("parity");
  op.ordering = phaseOrdering(takeOrdering(decoder));
  MemorySpace space = takeSpace(decoder);
  decoder.take("b64");
  // The hint how long to wait at most changes nothing.
  decoder.expectOperands(3, 4);
  op.d = decoder.predicateDestination(decoder.operand(0));
  decodeAddress(decoder, decoder.operand(1), space);
  op.b = decoder.source(2, parity ? Type::U32 : Type::U64);
  op.handler = parity ? (waits ? &wait<true, true> : &wait<true, false>)
                      : (waits ? &wait<false, true> : &wait<false, false>);
}

struct PendingCount {
  uint32_t operator()(uint64_t token) const { return Mbarrier::pendingCount(token); }
};

void decodeObject(Decoder &decoder, Handler handler, bool hasCount) {
  Op &op = decoder.op();
  takeOrdering(decoder);
  MemorySpace space = takeSpace(decoder);
  decoder.take("b64");
  decoder.expectOperands(hasCount ? 2 : 1);
  decodeAddress(decoder, decoder.operand(0), space);
  if (hasCount)
    op.b = decoder.source(1, Type::U32);
  op.handler = handler;
}

void decodeMbarrier(Decoder &decoder) {
  switch (decoder.needOneOf({"init", "inval", "expect_tx", "complete_tx", "arrive_drop", "arrive",
                             "test_wait", "try_wait", "pending_count"})) {
  case 0:
    return decodeObject(decoder, &initialize, true);
  case 1:
    return decodeObject(decoder, &invalidate, false);
  case 2:
    // arrive.expect_tx begins with what is an instruction of its own, too.
    if (decoder.take("arrive"))
      return decodeArrive(decoder, ExpectBytes);
    if (decoder.take("arrive_drop"))
      return decodeArrive(decoder, ExpectBytes | Drop);
    return decodeObject(decoder, &expectBytes, true);
  case 3:
    return decodeObject(decoder, &completeBytes, true);
  case 4:
    return decodeArrive(decoder, Drop);
  case 5:
    return decodeArrive(decoder, Plain);
  case 6:
    return decodeWait(decoder, false);
  case 7:
    return decodeWait(decoder, true);
  default:
    decoder.take("b64");
    decoder.expectOperands(2);
    decoder.op().d = decoder.destination(0, Type::U32);
    decoder.op().a = decoder.source(1, Type::U64);
    decoder.op().handler = &unaryLanes<uint32_t, uint64_t, PendingCount>;
  }
}

} // namespace

FamilyList fp8emu::mbarrierInstructions() { return {{"mbarrier", decodeMbarrier}}; }
