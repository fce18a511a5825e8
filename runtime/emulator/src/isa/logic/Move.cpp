// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mov but of special registers (MoveSpecial.cpp), and what turns addresses of one space into another's
// (PTX ISA 9.7.9.4 to 9.7.9.7, 9.7.9.21 to 9.7.9.24).

#include "Move.h"

#include "exec/Block.h"
#include "exec/Launch.h"
#include "isa/Families.h"
#include "isa/Lanes.h"
#include "isa/OperandTypes.h"
#include "isa/memory/Memory.h"

#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

struct Identity {
  template <class T>
  T operator()(T a) const {
    return a;
  }
};

struct Wide {
  uint64_t words[2];
};

/// op.flags is whether a is negated.
void movePredicate(Warp &warp, const Op &op, Mask mask) {
  Mask &d = warp.predicate(op.d), a = warp.predicate(op.a);
  d = (d & ~mask) | ((op.flags ? ~a : a) & mask);
}

/// d = the pieces in op.list, lowest first; op.flags is the bytes of one.
void pack(Warp &warp, const Op &op, Mask mask) {
  const Ref *refs = warp.list(op);
  uint8_t *d = warp.values<uint8_t>(op.d);
  unsigned bytes = op.flags, stride = op.flags * op.count;
  for (unsigned i = 0; i < op.count; ++i) {
    const uint8_t *s = warp.values<uint8_t>(refs[i]);
    unsigned from = std::max(bytes, 2u);
    forLanes(mask,
             [=](unsigned lane) { std::memcpy(d + lane * stride + i * bytes, s + lane * from, bytes); });
  }
}

/// The same the other way: pieces of op.a into the registers of op.list.
void unpack(Warp &warp, const Op &op, Mask mask) {
  const Ref *refs = warp.list(op);
  unsigned bytes = op.flags, stride = op.flags * op.count;
  // A piece may be the register itself.
  uint8_t copy[16 * kLanes];
  std::memcpy(copy, warp.values<uint8_t>(op.a), stride * kLanes);
  for (unsigned i = 0; i < op.count; ++i) {
    uint8_t *d = warp.values<uint8_t>(refs[i]);
    unsigned to = std::max(bytes, 2u);
    const uint8_t *s = copy;
    forLanes(mask, [=](unsigned lane) {
      std::memset(d + lane * to, 0, to);
      std::memcpy(d + lane * to, s + lane * stride + i * bytes, bytes);
    });
  }
}

Type pieceType(Decoder &decoder, const Operand &operand, unsigned bytes) {
  switch (bytes) {
  case 1:
    return Type::B8;
  case 2:
    return Type::B16;
  case 4:
    return Type::B32;
  case 8:
    return Type::B64;
  default:
    decoder.fail(operand, "the pieces do not fill the register");
  }
}

void decodePack(Decoder &decoder, Type type, bool packs) {
  const Operand &pieces = decoder.operand(packs ? 1 : 0);
  unsigned count = unsigned(pieces.parts.size());
  if (count != 2 && count != 4 && count != 8)
    decoder.fail(pieces, "2, 4 or 8 pieces are expected");
  if (!isBits(type) && type != Type::B128)
    decoder.fail("the type of packed registers is one of bits: .b16, .b32, .b64 or .b128");
  Op &op = decoder.op();
  op.flags = uint8_t(ptx::byteSize(type) / count);
  Type piece = pieceType(decoder, pieces, op.flags);
  std::vector<Ref> refs;
  for (const Operand &part : pieces.parts)
    refs.push_back(packs ? decoder.source(part, piece) : decoder.destination(part, piece));
  if (packs)
    op.d = decoder.destination(0, type);
  else
    op.a = decoder.source(1, type);
  decoder.list(refs);
  op.handler = packs ? &pack : &unpack;
}

/// The address of a variable in the frame, in the local window where `Generic`.
template <class T>
void frameAddress(Warp &warp, const Op &op, Mask mask) {
  T *d = warp.values<T>(op.d);
  const uint32_t *base = warp.frame().localBase.data();
  uint64_t offset = uint64_t(op.immediate);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = T(base[lane] + offset); });
}

/// Addresses, and counters, are of 32 or 64 bits.
void requireWord(Decoder &decoder, Type type) {
  if (ptx::byteSize(type) != 4 && ptx::byteSize(type) != 8)
    decoder.fail("a type of 32 or 64 bits is expected");
}

void moveActive(Warp &warp, const Op &op, Mask mask) {
  Mask &d = warp.predicate(op.d);
  bool value =
      warp.block().cluster().blocks().size() > 1 || warp.block().launch().kernel().tree->explicitCluster;
  d = value ? d | mask : d & ~mask;
}

bool isFrameVariable(Decoder &decoder, const Operand &operand) {
  if (operand.kind != Operand::Kind::Variable || !operand.local)
    return false;
  const ptx::Function &tree = *decoder.function().tree;
  ptx::Space space = tree.variables[operand.index].space;
  bool kernelParameter = decoder.function().isEntry && operand.index < tree.parameters.size();
  return space == ptx::Space::Local || (space == ptx::Space::Param && !kernelParameter);
}

void decodeFrameAddress(Decoder &decoder, Type type) {
  const Operand &variable = decoder.operand(1);
  requireWord(decoder, type);
  if (!takesInteger(type))
    decoder.fail(variable, "an address is an integer, ." + std::string(ptx::name(type)) + " is expected");
  Op &op = decoder.op();
  op.d = decoder.destination(0, type);
  op.immediate = int64_t(decoder.function().variableOffsets[variable.index] + uint64_t(variable.value));
  op.handler = ptx::byteSize(type) == 8 ? &frameAddress<uint64_t> : &frameAddress<uint32_t>;
}

void decodePredicateMove(Decoder &decoder) {
  Op &op = decoder.op();
  op.d = decoder.predicateDestination(decoder.operand(0));
  if (decoder.operand(1).text == "%is_explicit_cluster") {
    op.handler = &moveActive;
    return;
  }
  bool negated = false;
  op.a = decoder.predicate(decoder.operand(1), &negated);
  op.flags = negated;
  op.handler = &movePredicate;
}

void decodeMove(Decoder &decoder) {
  Type type = decoder.takeType();
  decoder.expectOperands(2);
  if (type == Type::Pred)
    return decodePredicateMove(decoder);
  if (int vector = decoder.takeOneOf({"v2", "v4"}); vector >= 0)
    return decodeVectorMove(decoder, type, vector == 0 ? 2 : 4);
  if (decoder.operand(1).kind == Operand::Kind::Vector)
    return decodePack(decoder, type, /*packs=*/true);
  if (decoder.operand(0).kind == Operand::Kind::Vector)
    return decodePack(decoder, type, /*packs=*/false);
  if (decodeSpecialMove(decoder, type))
    return;
  if (isFrameVariable(decoder, decoder.operand(1)))
    return decodeFrameAddress(decoder, type);
  decodeLanes(decoder, type, 1);
  decoder.op().handler = type == Type::B128 ? Handler(&unaryLanes<Wide, Wide, Identity>)
                                            : forBits(decoder, type, [](auto v) -> Handler {
                                                using T = decltype(v);
                                                return &unaryLanes<T, T, Identity>;
                                              });
}

/// Where a space begins in generic addresses.
uint64_t windowOf(const Launch &launch, MemorySpace space) {
  switch (space) {
  case MemorySpace::Local:
    return launch.memory().localWindow();
  case MemorySpace::Shared:
  case MemorySpace::SharedCluster:
    return launch.memory().sharedWindow();
  case MemorySpace::Const:
    return launch.memory().constantWindow();
  case MemorySpace::Parameter:
    return launch.parameterAddress();
  default:
    return 0;
  }
}

/// From a space's address to a generic one (op.flags 0) and back.
template <class T>
void convertAddress(Warp &warp, const Op &op, Mask mask) {
  uint64_t window = windowOf(warp.block().launch(), MemorySpace(op.small));
  if (op.flags)
    window = 0 - window;
  const T *a = warp.values<T>(op.a);
  T *d = warp.values<T>(op.d);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = T(a[lane] + window); });
}

/// The address operand of cvta may be a variable in the frame, too.
template <class T>
void frameToGeneric(Warp &warp, const Op &op, Mask mask) {
  frameAddress<T>(warp, op, mask);
  uint64_t window = warp.block().launch().memory().localWindow();
  T *d = warp.values<T>(op.d);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = T(d[lane] + window); });
}

void decodeConvertAddress(Decoder &decoder) {
  bool fromGeneric = decoder.take("to");
  MemorySpace space = takeSpace(decoder);
  Type type = decoder.takeType();
  if (ptx::byteSize(type) != 8)
    decoder.fail("generic addresses are 64 bits wide");
  decoder.expectOperands(2);
  Op &op = decoder.op();
  if (isFrameVariable(decoder, decoder.operand(1))) {
    decodeFrameAddress(decoder, type);
    op.handler = &frameToGeneric<uint64_t>;
    return;
  }
  decodeLanes(decoder, type, 1);
  op.small = uint16_t(space);
  op.flags = fromGeneric;
  op.handler = &convertAddress<uint64_t>;
}

/// isspacep: whether a generic address lies in a space.
void isInSpace(Warp &warp, const Op &op, Mask mask) {
  const uint64_t *a = warp.values<uint64_t>(op.a);
  Mask result = 0;
  forLanes(mask, [&](unsigned lane) {
    uint64_t address = a[lane];
    MemorySpace wanted = MemorySpace(op.small), space = classify(warp, address);
    bool own = space == MemorySpace::SharedCluster && address >> kSharedRankShift == warp.block().rank();
    bool is = wanted == MemorySpace::Shared ? own : wanted == space;
    const Launch &launch = warp.block().launch();
    if (wanted == MemorySpace::Parameter)
      is = address - launch.parameterAddress() < launch.kernel().parameterBytes;
    // The window of parameters lies in that of global memory (PTX ISA 9.7.9.22), that of constants does not.
    const bool isConstant = address - launch.memory().constantWindow() < kConstantWindowBytes;
    if (wanted == MemorySpace::Const || isConstant)
      is = isConstant && wanted == MemorySpace::Const;
    result |= Mask(is) << lane;
  });
  Mask &d = warp.predicate(op.d);
  d = (d & ~mask) | result;
}

void decodeIsInSpace(Decoder &decoder) {
  decoder.expectOperands(2);
  Op &op = decoder.op();
  op.small = uint16_t(takeSpace(decoder));
  op.d = decoder.predicateDestination(decoder.operand(0));
  op.a = decoder.source(1, Type::U64);
  op.handler = &isInSpace;
}

/// mapa: the same offset in another block's shared memory.
template <class T, bool Generic>
void mapAddress(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.values<T>(op.a);
  const uint32_t *rank = warp.values<uint32_t>(op.b);
  T *d = warp.values<T>(op.d);
  size_t blocks = warp.block().cluster().blocks().size();
  uint64_t window = Generic ? warp.block().launch().memory().sharedWindow() : 0;
  forLanes(mask, [&](unsigned lane) {
    if (rank[lane] >= blocks)
      warp.fault(FaultKind::IllegalOperand,
                 "block " + std::to_string(rank[lane]) + " of the cluster is asked for, it has " +
                     std::to_string(blocks),
                 Mask(1) << lane);
    uint64_t offset = (uint64_t(a[lane]) - window) & ((uint64_t(1) << kSharedRankShift) - 1);
    d[lane] = T(window + (uint64_t(rank[lane]) << kSharedRankShift) + offset);
  });
}

void decodeMapAddress(Decoder &decoder) {
  bool shared = decoder.take("shared::cluster");
  Type type = decoder.takeType();
  requireWord(decoder, type);
  decoder.expectOperands(3);
  Op &op = decoder.op();
  op.d = decoder.destination(0, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, Type::U32);
  bool wide = ptx::byteSize(type) == 8;
  if (!shared && !wide)
    decoder.fail("generic addresses are 64 bits wide");
  op.handler = !wide    ? &mapAddress<uint32_t, false>
               : shared ? &mapAddress<uint64_t, false>
                        : &mapAddress<uint64_t, true>;
}

template <class T, bool Generic>
void rankOf(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.values<T>(op.a);
  uint32_t *d = warp.values<uint32_t>(op.d);
  uint64_t window = Generic ? warp.block().launch().memory().sharedWindow() : 0;
  forLanes(mask,
           [=](unsigned lane) { d[lane] = uint32_t((uint64_t(a[lane]) - window) >> kSharedRankShift); });
}

void decodeGetRank(Decoder &decoder) {
  bool shared = decoder.take("shared::cluster");
  Type type = decoder.takeType();
  requireWord(decoder, type);
  decoder.expectOperands(2);
  Op &op = decoder.op();
  op.d = decoder.destination(0, Type::U32);
  op.a = decoder.source(1, type);
  bool wide = ptx::byteSize(type) == 8;
  op.handler = !wide ? &rankOf<uint32_t, false> : shared ? &rankOf<uint64_t, false> : &rankOf<uint64_t, true>;
}

} // namespace

FamilyList fp8emu::moveInstructions() {
  return {{"mov", decodeMove},
          {"cvta", decodeConvertAddress},
          {"isspacep", decodeIsInSpace},
          {"mapa", decodeMapAddress},
          {"getctarank", decodeGetRank}};
}
