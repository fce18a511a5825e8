// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions by which the lanes of a warp exchange values: shfl (PTX ISA 9.7.9.5,
// 9.7.9.6), vote, match, activemask, redux, elect and bar.warp.sync (9.7.13).
//
// In all, op.e is the member mask, null in the old forms without .sync, and the op's
// list holds the predicate of a destination d|p where there is one.

#include "WarpOps.h"

#include "WarpGroup.h"

#include "check/Races.h"
#include "isa/Families.h"
#include "isa/Lanes.h"
#include "num/Arith.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// Calls `f(group)` for lanes that name the same members, when all of those are here or
/// at copies of the instruction: lanes of one instruction may form several groups, each
/// with a mask of its own. The others wait. A lane outside of its mask leaves the
/// behaviour undefined (PTX ISA 9.7.9.6): a fault.
template <class F>
void forGroups(Warp &warp, const Op &op, Mask mask, F f) {
  if (!op.e)
    return f(WarpGroup(warp, warp.gather(0, mask)));
  const uint32_t *members = warp.values<uint32_t>(op.e);
  for (Mask rest = mask; rest;) {
    Mask needed = members[__builtin_ctz(rest)] & warp.existing(), here = 0;
    forLanes(rest, [&](unsigned lane) { here |= Mask((members[lane] & warp.existing()) == needed) << lane; });
    rest &= ~here;
    if (Mask outside = here & ~needed)
      warp.fault(FaultKind::IllegalOperand, "the member mask does not name the lane that executes it",
                 outside);
    WarpGroup group(warp, warp.gather(needed, here));
    if (!group.lanes())
      continue;
    check::exchanged(warp, group.lanes());
    f(group);
  }
}

/// The first operand, d or d|p.
void decodeResult(Decoder &decoder, Type type) {
  const Operand &operand = decoder.operand(0);
  bool pair = operand.kind == Operand::Kind::Pair;
  decoder.op().d = decoder.destination(pair ? operand.parts[0] : operand, type);
  if (pair)
    decoder.list({decoder.predicateDestination(operand.parts[1])});
}

/// The last operand of the forms with .sync; `others` come before it.
void decodeMembers(Decoder &decoder, unsigned others, bool sync) {
  decoder.expectOperands(others + sync);
  if (sync)
    decoder.op().e = decoder.source(others, Type::U32);
}

// shfl

/// The value that a lane reads from one that is not there, which PTX leaves undefined: no small
/// integer and a NaN, so that it is not mistaken for a value.
constexpr uint32_t kUndefined = 0xFFFFFFFF;

enum ShuffleMode : uint16_t { Up, Down, Butterfly, Index };

/// The lane that `lane` reads, and whether it is in range (PTX ISA 9.7.9.6).
bool sourceLane(ShuffleMode mode, int lane, uint32_t b, uint32_t c, int &j) {
  int value = int(b & 31), clamp = int(c & 31), segment = int(c >> 8 & 31);
  int least = lane & segment, last = least | (clamp & ~segment);
  j = mode == Up          ? lane - value
      : mode == Down      ? lane + value
      : mode == Butterfly ? lane ^ value
                          : least | (value & ~segment);
  return mode == Up ? j >= last : j <= last;
}

/// op.small is the mode.
void shuffle(Warp &warp, const Op &op, Mask mask) {
  forGroups(warp, op, mask, [&](const WarpGroup &group) {
    const auto a = group.read<uint32_t>(&Op::a), b = group.read<uint32_t>(&Op::b),
               c = group.read<uint32_t>(&Op::c);
    LaneValues<uint32_t> d;
    Mask inRange = 0;
    forLanes(group.lanes(), [&](unsigned lane) {
      int j;
      bool valid = sourceLane(ShuffleMode(op.small), int(lane), b[lane], c[lane], j);
      j = valid ? j : int(lane);
      inRange |= Mask(valid) << lane;
      d[lane] = group.lanes() >> j & 1 ? a[unsigned(j)] : kUndefined;
    });
    group.write(&Op::d, d);
    group.writeSecond(inRange);
  });
}

void decodeShuffle(Decoder &decoder) {
  bool sync = decoder.take("sync");
  Op &op = decoder.op();
  op.small = uint16_t(decoder.needOneOf({"up", "down", "bfly", "idx"}));
  decoder.needOneOf({"b32"});
  decodeMembers(decoder, 4, sync);
  decodeResult(decoder, Type::B32);
  op.a = decoder.source(1, Type::B32);
  op.b = decoder.source(2, Type::B32);
  op.c = decoder.source(3, Type::B32);
  op.handler = &shuffle;
}

// vote

enum VoteMode : uint16_t { All, Any, Uniform, Ballot };

/// op.small is the mode, op.flags whether the source is negated.
void vote(Warp &warp, const Op &op, Mask mask) {
  forGroups(warp, op, mask, [&](const WarpGroup &group) {
    Mask votes = group.readPredicate(&Op::a, [](const Op &part) { return part.flags != 0; });
    if (op.small == Ballot)
      return group.writeAll(&Op::d, votes);
    bool all = votes == group.lanes(), any = votes != 0;
    bool result = op.small == All ? all : op.small == Any ? any : all || !any;
    group.writePredicate(&Op::d, result ? kAllLanes : 0);
  });
}

void decodeVote(Decoder &decoder) {
  bool sync = decoder.take("sync"), negated = false;
  Op &op = decoder.op();
  op.small = uint16_t(decoder.needOneOf({"all", "any", "uni", "ballot"}));
  decoder.needOneOf({op.small == Ballot ? "b32" : "pred"});
  decodeMembers(decoder, 2, sync);
  op.d = op.small == Ballot ? decoder.destination(0, Type::B32)
                            : decoder.predicateDestination(decoder.operand(0));
  op.a = decoder.predicate(decoder.operand(1), &negated);
  op.flags = negated;
  op.handler = &vote;
}

// match

template <class T>
void matchAny(Warp &warp, const Op &op, Mask mask) {
  forGroups(warp, op, mask, [&](const WarpGroup &group) {
    const auto a = group.read<T>(&Op::a);
    LaneValues<Mask> d{};
    forLanes(group.lanes(), [&](unsigned lane) {
      forLanes(group.lanes(), [&](unsigned other) { d[lane] |= Mask(a[other] == a[lane]) << other; });
    });
    group.write(&Op::d, d);
  });
}

template <class T>
void matchAll(Warp &warp, const Op &op, Mask mask) {
  forGroups(warp, op, mask, [&](const WarpGroup &group) {
    const auto a = group.read<T>(&Op::a);
    bool same = true;
    forLanes(group.lanes(), [&](unsigned lane) { same &= a[lane] == a[group.first()]; });
    group.writeAll(&Op::d, same ? group.lanes() : 0);
    group.writeSecond(same ? kAllLanes : 0);
  });
}

void decodeMatch(Decoder &decoder) {
  decoder.needOneOf({"sync"});
  bool all = decoder.needOneOf({"any", "all"}) == 1;
  Type type = takeBits(decoder, 4);
  decodeMembers(decoder, 2, /*sync=*/true);
  decodeResult(decoder, Type::U32);
  Op &op = decoder.op();
  if (op.count && !all)
    decoder.fail(decoder.operand(0), ".any has no predicate");
  op.a = decoder.source(1, type);
  op.handler = type == Type::B32 ? all ? &matchAll<uint32_t> : &matchAny<uint32_t>
               : all             ? &matchAll<uint64_t>
                                 : &matchAny<uint64_t>;
}

// redux

template <class T>
struct Add {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct Min {
  T operator()(T a, T b) const { return std::min(a, b); }
};
template <class T>
struct Max {
  T operator()(T a, T b) const { return std::max(a, b); }
};
template <class T>
struct And {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct Or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct Xor {
  T operator()(T a, T b) const { return a ^ b; }
};

template <class T, template <class> class F>
void reduce(Warp &warp, const Op &op, Mask mask) {
  forGroups(warp, op, mask, [&](const WarpGroup &group) {
    const auto a = group.read<T>(&Op::a);
    T result = a[group.first()];
    forLanes(group.lanes() & (group.lanes() - 1), [&](unsigned lane) { result = F<T>()(result, a[lane]); });
    group.writeAll(&Op::d, uint32_t(result));
  });
}

/// op.flags: 1 for .abs, 2 for .NaN.
template <bool isMax>
void reduceFloat(Warp &warp, const Op &op, Mask mask) {
  num::MinMax mod;
  mod.abs = op.flags & 1;
  mod.nan = op.flags & 2;
  forGroups(warp, op, mask, [&](const WarpGroup &group) {
    const auto a = group.read<float>(&Op::a);
    // The first with itself: alone it is made absolute, or the canonical NaN, too.
    float result = a[group.first()];
    forLanes(group.lanes(), [&](unsigned lane) {
      result = isMax ? num::max(result, a[lane], mod) : num::min(result, a[lane], mod);
    });
    group.writeAll(&Op::d, num::bitsOf(result));
  });
}

Handler reduction(Decoder &decoder, int operation, Type type) {
  static const Handler unsignedOnes[] = {&reduce<uint32_t, Add>, &reduce<uint32_t, Min>,
                                         &reduce<uint32_t, Max>};
  static const Handler signedOnes[] = {&reduce<uint32_t, Add>, &reduce<int32_t, Min>, &reduce<int32_t, Max>};
  static const Handler bits[] = {&reduce<uint32_t, And>, &reduce<uint32_t, Or>, &reduce<uint32_t, Xor>};
  if (type == Type::U32 && operation < 3)
    return unsignedOnes[operation];
  if (type == Type::S32 && operation < 3)
    return signedOnes[operation];
  if (type == Type::B32 && operation >= 3)
    return bits[operation - 3];
  decoder.fail("there is no such reduction of ." + std::string(ptx::name(type)));
}

void decodeRedux(Decoder &decoder) {
  decoder.needOneOf({"sync"});
  int operation = decoder.needOneOf({"add", "min", "max", "and", "or", "xor"});
  Op &op = decoder.op();
  Type type = decoder.takeType();
  if (type == Type::F32 && (operation == 1 || operation == 2)) {
    op.flags = uint8_t(decoder.take("abs") | decoder.take("NaN") << 1);
    op.handler = operation == 2 ? &reduceFloat<true> : &reduceFloat<false>;
  } else {
    op.handler = reduction(decoder, operation, type);
  }
  decodeMembers(decoder, 2, /*sync=*/true);
  // Bits here are those of integers.
  const Type own = type == Type::B32 ? Type::U32 : type;
  op.d = decoder.destination(0, own);
  op.a = decoder.source(1, own);
}

// activemask, elect, bar.warp.sync

void activeMask(Warp &warp, const Op &op, Mask mask) {
  uint32_t *d = warp.values<uint32_t>(op.d);
  forLanes(mask, [=](unsigned lane) { d[lane] = mask; });
}

void decodeActiveMask(Decoder &decoder) {
  decoder.needOneOf({"b32"});
  decoder.expectOperands(1);
  decoder.op().d = decoder.destination(0, Type::B32);
  decoder.op().handler = &activeMask;
}

/// The lowest lane is the leader: any would do that is always the same for a mask.
void elect(Warp &warp, const Op &op, Mask mask) {
  forGroups(warp, op, mask, [&](const WarpGroup &group) {
    group.writeAll(&Op::d, uint32_t(group.first()));
    group.writeSecond(Mask(1) << group.first());
  });
}

void decodeElect(Decoder &decoder) {
  decoder.needOneOf({"sync"});
  decodeMembers(decoder, 1, /*sync=*/true);
  decodeResult(decoder, Type::U32);
  if (!decoder.op().count)
    decoder.fail(decoder.operand(0), "d|p is expected");
  decoder.op().handler = &elect;
}

void syncWarp(Warp &warp, const Op &op, Mask mask) {
  forGroups(warp, op, mask, [&](const WarpGroup &group) { check::syncWarp(warp, group.lanes()); });
}

} // namespace

void fp8emu::decodeWarpBarrier(Decoder &decoder) {
  decoder.needOneOf({"sync"});
  decodeMembers(decoder, 0, /*sync=*/true);
  decoder.op().handler = &syncWarp;
}

FamilyList fp8emu::warpInstructions() {
  return {{"shfl", decodeShuffle}, {"vote", decodeVote},   {"match", decodeMatch},
          {"redux", decodeRedux},  {"elect", decodeElect}, {"activemask", decodeActiveMask}};
}
