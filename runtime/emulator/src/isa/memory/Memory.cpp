// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores (PTX ISA 9.7.9.8 to 9.7.9.15), prefetches and cache policies.

#include "Memory.h"

#include "check/Record.h"
#include "exec/Block.h"
#include "isa/Families.h"
#include "isa/copy/StoreAsync.h"

#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

MemorySpace fp8emu::takeSpace(Decoder &decoder) {
  static const MemorySpace spaces[] = {
      MemorySpace::Global,    MemorySpace::Const,         MemorySpace::Parameter,
      MemorySpace::Parameter, MemorySpace::Parameter,     MemorySpace::Shared,
      MemorySpace::Shared,    MemorySpace::SharedCluster, MemorySpace::Local};
  int index = decoder.takeOneOf({"global", "const", "param", "param::entry", "param::func", "shared",
                                 "shared::cta", "shared::cluster", "local"});
  return index < 0 ? MemorySpace::Generic : spaces[index];
}

Ordering fp8emu::takeOrdering(Decoder &decoder) {
  Ordering out;
  int semantics = decoder.takeOneOf({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel"});
  if (semantics >= 0)
    out.semantics = Semantics(semantics);
  int scope = decoder.takeOneOf({"cta", "cluster", "gpu", "sys"});
  out.scope = Scope(scope + 1);
  return out;
}

uint8_t fp8emu::orderingBits(const Ordering &ordering) {
  using check::Level;
  Semantics semantics = ordering.semantics;
  if (semantics == Semantics::Weak)
    return 0;
  // Without a scope, volatile ones are the system's.
  Level level = ordering.scope == Scope::Cta       ? Level::Block
                : ordering.scope == Scope::Cluster ? Level::Cluster
                                                   : Level::Device;
  bool both = semantics == Semantics::AcquireRelease;
  return check::ordering::strong(level, both || semantics == Semantics::Acquire,
                                 both || semantics == Semantics::Release);
}

namespace {
/// op.small: the base's bytes in the low bits, the space above, then the frame.
constexpr uint16_t kFrame = 0x1000;
} // namespace

void fp8emu::decodeAddress(Decoder &decoder, const Operand &operand, MemorySpace space) {
  AddressOperand address = decoder.address(operand);
  Op &op = decoder.op();
  if (space == MemorySpace::Parameter && (address.inFrame || !decoder.function().isEntry))
    space = MemorySpace::Local;
  op.a = address.base;
  op.immediate = address.offset;
  unsigned bytes = address.base ? address.baseBytes : 0;
  op.small = uint16_t(bytes | unsigned(space) << 8 | (address.inFrame ? kFrame : 0));
  const bool isWide = space == MemorySpace::Generic || space == MemorySpace::Global;
  if (isWide && bytes == 4 && decoder.program().tree->addressSize == 64)
    decoder.fail(operand, "generic and global addresses are 64 bits wide");
  if (address.inFrame && space != MemorySpace::Local)
    decoder.fail(operand, "the variable is not in that state space");
}

MemorySpace fp8emu::spaceOf(const Op &op) { return MemorySpace(op.small >> 8 & 0xF); }

void fp8emu::laneAddresses(Warp &warp, const Op &op, Mask mask, uint64_t *addresses) {
  uint64_t offset = uint64_t(op.immediate);
  if ((op.small & 0xFF) == 8) {
    const uint64_t *base = warp.values<uint64_t>(op.a);
    forIndependentLanes(mask, [=](unsigned lane) { addresses[lane] = base[lane] + offset; });
  } else if ((op.small & 0xFF) == 4) {
    const uint32_t *base = warp.values<uint32_t>(op.a);
    forIndependentLanes(mask,
                        [=](unsigned lane) { addresses[lane] = uint32_t(base[lane] + uint32_t(offset)); });
  } else if (op.small & kFrame) {
    const uint32_t *base = warp.frame().localBase.data();
    forIndependentLanes(mask, [=](unsigned lane) { addresses[lane] = base[lane] + offset; });
  } else {
    forIndependentLanes(mask, [=](unsigned lane) { addresses[lane] = offset; });
  }
}

namespace {

struct B128 {
  uint64_t low, high;
  B128() = default;
  explicit B128(uint64_t value) : low(value), high(0) {}
};

/// M in memory, R in a register; op.list holds the registers.
template <class M, class R>
void load(Warp &warp, const Op &op, Mask mask) {
  uint64_t addresses[kLanes];
  uint8_t *host[kLanes];
  laneAddresses(warp, op, mask, addresses);
  resolve(warp, spaceOf(op), mask, addresses, unsigned(sizeof(M)) * op.count, AccessKind::Load, host);
  const Ref *refs = warp.list(op);
  for (unsigned i = 0; i < op.count; ++i) {
    R *d = warp.values<R>(refs[i]);
    forLanes(mask, [&](unsigned lane) {
      M value;
      std::memcpy(&value, host[lane] + i * sizeof(M), sizeof(M));
      d[lane] = R(value);
    });
  }
}

/// Lane by lane, each compared with what it overwrites.
template <class M, class R>
void storeInOrder(Warp &warp, const Op &op, Mask mask, uint8_t **host) {
  const Ref *refs = warp.list(op);
  forLanes(mask, [&](unsigned lane) {
    bool changes = false;
    for (unsigned i = 0; i < op.count; ++i) {
      M value = M(warp.values<R>(refs[i])[lane]);
      changes |= std::memcmp(host[lane] + i * sizeof(M), &value, sizeof(M)) != 0;
      std::memcpy(host[lane] + i * sizeof(M), &value, sizeof(M));
    }
    check::confirm(warp, lane, changes);
  });
}

template <class M, class R>
void store(Warp &warp, const Op &op, Mask mask) {
  uint64_t addresses[kLanes];
  uint8_t *host[kLanes];
  laneAddresses(warp, op, mask, addresses);
  resolve(warp, spaceOf(op), mask, addresses, unsigned(sizeof(M)) * op.count, AccessKind::Store, host);
  const Ref *refs = warp.list(op);
  if (check::doubtful(warp))
    return storeInOrder<M, R>(warp, op, mask, host);
  for (unsigned i = 0; i < op.count; ++i) {
    const R *s = warp.values<R>(refs[i]);
    forLanes(mask, [&](unsigned lane) {
      M value = M(s[lane]);
      M *target = reinterpret_cast<M *>(host[lane] + i * sizeof(M));
      // The host may read memory that it shares with a kernel while this runs. On x86 it is a store as any
      // other.
      if constexpr (sizeof(M) <= 8)
        __atomic_store(target, &value, __ATOMIC_RELEASE);
      else
        std::memcpy(target, &value, sizeof(M));
    });
  }
}

struct Load {
  template <class M, class R>
  static Handler handler() {
    return &load<M, R>;
  }
};
struct Store {
  template <class M, class R>
  static Handler handler() {
    return &store<M, R>;
  }
};

/// The handler for a type in memory and a register of `bytes`.
template <class Kind, class M>
Handler forRegister(unsigned bytes) {
  // The handlers of two sizes may be one function.
  // NOLINTBEGIN(misc-redundant-expression)
  return bytes == 2   ? Kind::template handler<M, uint16_t>()
         : bytes == 4 ? Kind::template handler<M, uint32_t>()
                      : Kind::template handler<M, uint64_t>();
  // NOLINTEND(misc-redundant-expression)
}

template <class Kind>
Handler forTypes(Type type, unsigned bytes) {
  switch (ptx::byteSize(type)) {
  case 1:
    return type == Type::S8 ? forRegister<Kind, int8_t>(bytes) : forRegister<Kind, uint8_t>(bytes);
  case 2:
    return type == Type::S16 ? forRegister<Kind, int16_t>(bytes) : forRegister<Kind, uint16_t>(bytes);
  case 4:
    return type == Type::S32 ? forRegister<Kind, int32_t>(bytes) : forRegister<Kind, uint32_t>(bytes);
  case 8:
    return forRegister<Kind, uint64_t>(bytes);
  default:
    return Kind::template handler<B128, B128>();
  }
}

unsigned takeVectorWidth(Decoder &decoder) {
  switch (decoder.takeOneOf({"v2", "v4", "v8"})) {
  case 0:
    return 2;
  case 1:
    return 4;
  case 2:
    return 8;
  default:
    return 1;
  }
}

/// The registers of a load or store: one, or as many in braces as the vector has.
std::vector<Ref> decodeElements(Decoder &decoder, const Operand &operand, Type type, unsigned width,
                                bool isLoad, unsigned &bytes) {
  std::vector<const Operand *> elements;
  if (operand.kind == Operand::Kind::Vector)
    for (const Operand &part : operand.parts)
      elements.push_back(&part);
  else
    elements.push_back(&operand);
  if (elements.size() != width)
    decoder.fail(operand, std::to_string(width) + " registers are expected");
  if (width > 1 && type == Type::B128)
    decoder.fail("a vector has no elements of .b128");
  std::vector<Ref> refs;
  unsigned declared = 0;
  bytes = 0;
  for (const Operand *element : elements) {
    if (element->kind == Operand::Kind::Sink)
      continue;
    unsigned own = 0;
    isLoad ? decoder.wideDestination(*element, type, own) : decoder.wideSource(*element, type, own);
    // Registers of 8 bits have lanes of 16.
    const bool isRegister = element->kind == Operand::Kind::Register;
    const unsigned size = isRegister ? ptx::byteSize(decoder.registerType(element->index)) : own;
    if (declared && isRegister && size != declared)
      decoder.fail(*element, "the registers of a vector must be equally wide");
    declared = isRegister ? size : declared;
    bytes = own;
  }
  bytes = bytes ? bytes : laneBytes(type);
  for (const Operand *element : elements) {
    unsigned own = 0;
    refs.push_back(element->kind == Operand::Kind::Sink ? decoder.scratch(bytes)
                   : isLoad                             ? decoder.wideDestination(*element, type, own)
                                                        : decoder.wideSource(*element, type, own));
  }
  return refs;
}

/// {.weak}, .volatile, {.mmio}.relaxed.scope and, of loads, .acquire.scope, of stores
/// .release.scope (PTX ISA 9.7.9.8, 9.7.9.11), and what they mean for blocks.
Ordering takeAccessOrdering(Decoder &decoder, bool isLoad, MemorySpace space) {
  Ordering ordering = takeOrdering(decoder);
  const Semantics half = isLoad ? Semantics::Acquire : Semantics::Release;
  const bool scoped = ordering.semantics == Semantics::Relaxed || ordering.semantics == half;
  if (!scoped && ordering.semantics != Semantics::Weak && ordering.semantics != Semantics::Volatile)
    decoder.fail(isLoad ? "a load releases nothing" : "a store acquires nothing");
  if (scoped != (ordering.scope != Scope::None))
    decoder.fail(scoped ? "a scope is missing" : "a scope without an order");
  const bool mayBeGlobal = space == MemorySpace::Global || space == MemorySpace::Generic;
  // Every access happens once and whole here, as .mmio wants.
  if (decoder.take("mmio") &&
      (ordering.semantics != Semantics::Relaxed || ordering.scope != Scope::Sys || !mayBeGlobal))
    decoder.fail(".mmio needs .relaxed.sys, and global memory");
  // Ordered accesses to what other blocks see make them depend on each other.
  if (mayBeGlobal && ordering.semantics != Semantics::Weak && ordering.scope != Scope::Cta)
    decoder.blocksCommunicate();
  return ordering;
}

template <class Kind>
void decodeAccess(Decoder &decoder, bool isLoad) {
  MemorySpace space = takeSpace(decoder);
  Ordering ordering = takeAccessOrdering(decoder, isLoad, space);
  decoder.take("nc");
  decoder.take("unified");
  const bool hint = decoder.take("L2::cache_hint");
  decoder.ignoreCacheHints();
  unsigned width = takeVectorWidth(decoder);
  Type type = decoder.takeType();
  if (type == Type::Pred)
    decoder.fail("predicates are not loaded or stored");
  // The operand of .L2::cache_hint changes no value.
  decoder.expectOperands(2 + hint);
  if (hint)
    decoder.source(2, Type::U64);
  unsigned bytes = 0;
  std::vector<Ref> refs =
      decodeElements(decoder, decoder.operand(isLoad ? 0 : 1), type, width, isLoad, bytes);
  decodeAddress(decoder, decoder.operand(isLoad ? 1 : 0), space);
  decoder.list(refs);
  decoder.op().ordering = uint8_t(orderingBits(ordering) | (isLoad ? 0 : check::ordering::kConfirms));
  decoder.op().handler = forTypes<Kind>(type, bytes);
}

void decodeLoad(Decoder &decoder) { decodeAccess<Load>(decoder, /*isLoad=*/true); }
void decodeStore(Decoder &decoder) {
  if (decoder.take("async"))
    return decodeStoreAsync(decoder);
  if (decoder.take("bulk"))
    return decodeStoreBulk(decoder);
  decodeAccess<Store>(decoder, /*isLoad=*/false);
}

void doNothing(Warp &, const Op &, Mask) {}

/// Hints for caches: nothing to do, whatever their operands.
void decodeHint(Decoder &decoder) {
  takeSpace(decoder);
  decoder.takeOneOf({"L1", "L2"});
  decoder.take("tensormap");
  decoder.ignoreCacheHints();
  decoder.expectOperands(1, 2);
  decoder.address(decoder.operand(0));
  if (decoder.operands() > 1 && decoder.integer(decoder.operand(1)) != 128)
    decoder.fail(decoder.operand(1), "a size of 128 is expected");
  decoder.op().handler = &doNothing;
}

void zeroPolicy(Warp &warp, const Op &op, Mask mask) {
  uint64_t *d = warp.values<uint64_t>(op.d);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = 0; });
}

/// A cache policy: an opaque number that no instruction here looks at.
void decodeCreatePolicy(Decoder &decoder) {
  const int kind = decoder.needOneOf({"fractional", "range", "cvt"});
  const bool fractional = kind == 0, copied = kind == 2;
  decoder.take("L2");
  decoder.take("global");
  decoder.ignoreCacheHints();
  decoder.take("b64");
  decoder.op().d = decoder.destination(0, Type::U64);
  for (unsigned i = 1; i < decoder.operands(); ++i)
    if (decoder.operand(i).kind != Operand::Kind::Address)
      decoder.source(i, fractional ? Type::F32 : copied ? Type::U64 : Type::U32);
  decoder.op().handler = &zeroPolicy;
}

} // namespace

FamilyList fp8emu::memoryInstructions() {
  return {{"ld", decodeLoad},
          {"ldu", decodeLoad},
          {"st", decodeStore},
          {"prefetch", decodeHint},
          {"prefetchu", decodeHint},
          {"discard", decodeHint},
          {"applypriority", decodeHint},
          {"createpolicy", decodeCreatePolicy}};
}
