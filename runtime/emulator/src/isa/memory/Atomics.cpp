// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// atom and red (PTX ISA 9.7.13.5, 9.7.13.6). Lanes take effect one after the other in
// an order drawn from the seed, as PTX promises none. Each is atomic on the host too,
// for blocks may run on several of its threads.

#include "Memory.h"
#include "Reductions.h"

#include "exec/Block.h"
#include "isa/Families.h"
#include "isa/Lanes.h"
#include "isa/copy/StoreAsync.h"

#include <cstring>
#include <type_traits>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

struct B128 {
  uint64_t low, high;
  bool operator==(const B128 &other) const { return low == other.low && high == other.high; }
};

/// On both halves of a pair.
template <class F>
struct Pair {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    return F()(uint16_t(a), uint16_t(b)) | uint32_t(F()(uint16_t(a >> 16), uint16_t(b >> 16))) << 16;
  }
};

// Handlers. op.flags is the number of elements, 1 but for vectors; the op's list
// holds the registers of b, then those of d where it is asked for.

/// Where each lane's access goes.
struct Places {
  uint8_t *host[kLanes];
  Mask global = 0;

  Places(Warp &warp, const Op &op, Mask mask, unsigned bytes) {
    uint64_t addresses[kLanes];
    laneAddresses(warp, op, mask, addresses);
    MemorySpace space = spaceOf(op);
    for (Mask rest = mask; rest; rest &= rest - 1) {
      unsigned lane = unsigned(__builtin_ctz(rest));
      uint64_t address = addresses[lane];
      MemorySpace where = space == MemorySpace::Generic ? classify(warp, address) : space;
      if (where == MemorySpace::Local)
        warp.fault(FaultKind::IllegalOperand, "atomic operations on local memory are not allowed",
                   Mask(1) << lane);
      global |= Mask(where == MemorySpace::Global) << lane;
    }
    resolve(warp, space, mask, addresses, bytes, AccessKind::Atomic, host);
  }
};

/// Calls `f(lane)` for each lane, beginning with any.
template <class F>
void inAnyOrder(Warp &warp, Mask mask, F f) {
  if ((mask & (mask - 1)) == 0)
    return f(unsigned(__builtin_ctz(mask)));
  unsigned draw = unsigned(warp.block().random()), first = draw % kLanes,
           step = draw & kLanes ? 1 : kLanes - 1;
  for (unsigned i = 0; i < kLanes; ++i) {
    unsigned lane = (first + i * step) % kLanes;
    if (mask >> lane & 1)
      f(lane);
  }
}

template <class T, class Global, class Shared = Global>
void atomic(Warp &warp, const Op &op, Mask mask) {
  unsigned width = op.flags;
  Places places(warp, op, mask, unsigned(sizeof(T)) * width);
  const Ref *refs = warp.list(op);
  bool wanted = op.count > width;
  inAnyOrder(warp, mask, [&](unsigned lane) {
    // All read before any is written: d may be registers of b.
    T operands[8];
    for (unsigned i = 0; i < width; ++i)
      operands[i] = warp.values<T>(refs[i])[lane];
    for (unsigned i = 0; i < width; ++i) {
      uint8_t *at = places.host[lane] + i * sizeof(T);
      T b = operands[i];
      T old = places.global >> lane & 1 ? update<T>(at, [b](T a) { return Global()(a, b); })
                                        : update<T>(at, [b](T a) { return Shared()(a, b); });
      if (wanted)
        warp.values<T>(refs[width + i])[lane] = old;
    }
  });
}

/// The list is b, c, and d where it is asked for. Where no lane finds what it compares
/// with, it may be a lock that they wait for: others run first.
template <class T>
void compareAndSwap(Warp &warp, const Op &op, Mask mask) {
  Places places(warp, op, mask, sizeof(T));
  const Ref *refs = warp.list(op);
  bool swapped = false;
  inAnyOrder(warp, mask, [&](unsigned lane) {
    T b = warp.values<T>(refs[0])[lane], c = warp.values<T>(refs[1])[lane];
    T old = update<T>(places.host[lane], [=](T a) { return a == b ? c : a; });
    swapped |= old == b;
    if (op.count > 2)
      warp.values<T>(refs[2])[lane] = old;
  });
  if (!swapped)
    warp.yield();
}

// Decoding.

const char *const kOperations[] = {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"};
enum Operation { AddOp, MinOp, MaxOp, AndOp, OrOp, XorOp, IncOp, DecOp, ExchOp, CasOp };

template <class T>
Handler integerHandler(Operation operation) {
  switch (operation) {
  case AddOp:
    // Signed 64-bit integers have .u64's.
    return std::is_same<T, int64_t>::value ? nullptr : &atomic<std::make_unsigned_t<T>, Add>;
  case MinOp:
    return &atomic<T, Min>;
  case MaxOp:
    return &atomic<T, Max>;
  default:
    return nullptr;
  }
}

template <class T>
Handler bitsHandler(Operation operation) {
  switch (operation) {
  case AndOp:
    return &atomic<T, And>;
  case OrOp:
    return &atomic<T, Or>;
  case XorOp:
    return &atomic<T, Xor>;
  case ExchOp:
    return &atomic<T, Exchange>;
  case CasOp:
    return &compareAndSwap<T>;
  default:
    return nullptr;
  }
}

/// min and max of the 16-bit floats are for vectors only.
template <const num::Format &format>
Handler halfHandler(Operation operation, bool pairs, unsigned width) {
  if (operation == AddOp)
    return pairs ? &atomic<uint32_t, Pair<HalfAdd<format>>> : &atomic<uint16_t, HalfAdd<format>>;
  if (operation == MinOp && width > 1)
    return pairs ? &atomic<uint32_t, Pair<HalfMin<format>>> : &atomic<uint16_t, HalfMin<format>>;
  if (operation == MaxOp && width > 1)
    return pairs ? &atomic<uint32_t, Pair<HalfMax<format>>> : &atomic<uint16_t, HalfMax<format>>;
  return nullptr;
}

/// Null for what there is not.
Handler findHandler(Operation operation, Type type, unsigned width) {
  switch (type) {
  case Type::U32:
    if (operation == IncOp || operation == DecOp)
      return operation == IncOp ? &atomic<uint32_t, Increment> : &atomic<uint32_t, Decrement>;
    return integerHandler<uint32_t>(operation);
  case Type::S32:
    return integerHandler<int32_t>(operation);
  case Type::U64:
    return integerHandler<uint64_t>(operation);
  case Type::S64:
    return integerHandler<int64_t>(operation);
  case Type::B16:
    return operation == CasOp ? &compareAndSwap<uint16_t> : nullptr;
  case Type::B32:
    return bitsHandler<uint32_t>(operation);
  case Type::B64:
    return bitsHandler<uint64_t>(operation);
  case Type::B128:
    return operation == CasOp    ? &compareAndSwap<B128>
           : operation == ExchOp ? &atomic<B128, Exchange>
                                 : nullptr;
  case Type::F32:
    return operation == AddOp ? &atomic<float, FlushingAdd, FloatAdd> : nullptr;
  case Type::F64:
    return operation == AddOp ? &atomic<double, FloatAdd> : nullptr;
  case Type::F16:
  case Type::F16x2:
    return halfHandler<num::F16>(operation, type == Type::F16x2, width);
  case Type::BF16:
  case Type::BF16x2:
    return halfHandler<num::BF16>(operation, type == Type::BF16x2, width);
  default:
    return nullptr;
  }
}

/// Elements of 2 and 4 bytes may be vectors of up to 16 bytes (the table of PTX ISA
/// 9.7.13.5), of floats only.
unsigned takeWidth(Decoder &decoder, Type type, MemorySpace space) {
  int index = decoder.takeOneOf({"v2", "v4", "v8"});
  if (index < 0)
    return 1;
  unsigned width = 2u << index;
  if (!isFloat(type) || type == Type::F64 || width * ptx::byteSize(type) > 16)
    decoder.fail("there is no such vector of ." + std::string(ptx::name(type)));
  if (space != MemorySpace::Generic && space != MemorySpace::Global)
    decoder.fail("vectors are for global memory");
  return width;
}

using OperandRef = Ref (Decoder::*)(const Operand &, Type);

/// A register, or `width` of them in braces.
void decodeElements(Decoder &decoder, const Operand &operand, Type type, unsigned width, OperandRef refOf) {
  if (width == 1)
    return decoder.list({(decoder.*refOf)(operand, type)});
  if (operand.kind != Operand::Kind::Vector || operand.parts.size() != width)
    decoder.fail(operand, std::to_string(width) + " registers in braces are expected");
  for (const Operand &part : operand.parts)
    decoder.list({(decoder.*refOf)(part, type)});
}

Operation takeOperation(Decoder &decoder) {
  for (unsigned i = 0; i < std::size(kOperations); ++i)
    if (decoder.take(kOperations[i]))
      return Operation(i);
  decoder.fail("an operation is missing");
}

/// Without semantics, atomic operations are relaxed; without a scope, of .gpu.
uint8_t atomicOrdering(Ordering ordering, bool hasResult) {
  if (ordering.semantics == Semantics::Weak)
    ordering.semantics = Semantics::Relaxed;
  return orderingBits(ordering) | (hasResult ? 0 : check::ordering::kNoPattern);
}

MemorySpace takeAtomicSpace(Decoder &decoder, bool hasResult) {
  MemorySpace space = takeSpace(decoder);
  Ordering ordering = takeOrdering(decoder);
  Semantics semantics = ordering.semantics;
  decoder.op().ordering = atomicOrdering(ordering, hasResult);
  bool acquires = semantics == Semantics::Acquire || semantics == Semantics::AcquireRelease;
  if (semantics == Semantics::Volatile || (acquires && !hasResult))
    decoder.fail(hasResult ? "atom is relaxed, acquire, release or acq_rel" : "red is relaxed or release");
  if (space == MemorySpace::Local || space == MemorySpace::Const || space == MemorySpace::Parameter)
    decoder.fail("atomic operations are for global and shared memory");
  return space;
}

/// Whether the order in which blocks execute it changes nothing in memory, and orders
/// nothing else.
bool commutes(const Op &op, Operation operation, Type type) {
  using namespace check::ordering;
  return operation <= XorOp && !isFloat(type) && !(op.ordering & (kAcquire | kRelease));
}

/// atom d, [a], b{, c}{, cache-policy}; red without d.
void decodeAtomic(Decoder &decoder, bool hasResult) {
  MemorySpace space = takeAtomicSpace(decoder, hasResult);
  Operation operation = takeOperation(decoder);
  bool hint = decoder.take("L2::cache_hint"), noftz = decoder.take("noftz");
  Type type = decoder.takeType();
  unsigned width = takeWidth(decoder, type, space), first = hasResult;
  bool half = isFloat(type) && type != Type::F32 && type != Type::F64;
  if (noftz != half)
    decoder.fail(half ? ".noftz is missing" : ".noftz is for f16 and bf16");
  Op &op = decoder.op();
  op.handler = findHandler(operation, type, width);
  if (!op.handler || (!hasResult && operation >= ExchOp))
    decoder.fail("there is no ." + std::string(kOperations[operation]) + " of ." + ptx::name(type));
  decoder.expectOperands(first + 2 + (operation == CasOp) + hint);
  decodeAddress(decoder, decoder.operand(first), space);
  decodeElements(decoder, decoder.operand(first + 1), type, width, &Decoder::source);
  if (operation == CasOp)
    decoder.list({decoder.source(first + 2, type)});
  if (hint)
    decoder.source(decoder.operands() - 1, Type::U64);
  op.flags = uint8_t(width);
  const bool isShared = space == MemorySpace::Shared || space == MemorySpace::SharedCluster;
  if (!isShared && (hasResult || !commutes(op, operation, type)))
    decoder.blocksCommunicate();
  if (hasResult && decoder.operand(0).kind != Operand::Kind::Sink)
    decodeElements(decoder, decoder.operand(0), type, width, &Decoder::destination);
}

void decodeAtom(Decoder &decoder) { decodeAtomic(decoder, /*hasResult=*/true); }
void decodeRed(Decoder &decoder) {
  decoder.take("async") ? decodeReduceAsync(decoder) : decodeAtomic(decoder, /*hasResult=*/false);
}

} // namespace

FamilyList fp8emu::atomicInstructions() { return {{"atom", decodeAtom}, {"red", decodeRed}}; }
