// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps that kernels use and change: tensormap.replace (PTX ISA 9.7.9.28) and
// tensormap.cp_fenceproxy (9.7.13.16).

#include "Tensor.h"

#include "check/Record.h"
#include "exec/Block.h"
#include "isa/Families.h"

#include <cstring>

#include <algorithm>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

TensorMap fp8emu::readTensorMap(Warp &warp, const Op &op, unsigned lane) {
  const Mask mask = Mask(1) << lane;
  uint64_t addresses[kLanes];
  uint8_t *host[kLanes];
  laneAddresses(warp, op, mask, addresses);
  uint64_t address = addresses[lane];
  if (classify(warp, address) != MemorySpace::Global)
    warp.fault(FaultKind::IllegalOperand,
               "a tensor map in shared or local memory cannot be used; a parameter must be __grid_constant__ "
               "not to be copied there",
               mask);
  resolve(warp, MemorySpace::Global, mask, addresses, kTensorMapBytes, kTensorMapAlignment, AccessKind::Load,
          host);
  check::readMap(warp, lane, address, kTensorMapBytes);
  TensorMap map;
  if (!TensorMap::decode(host[lane], map))
    warp.fault(FaultKind::IllegalOperand, "these 128 bytes are not a tensor map of cuTensorMapEncodeTiled",
               mask);
  std::string problem = map.problem();
  if (problem.empty() && map.interleave)
    problem = "interleaved tensors are not supported";
  if (!problem.empty())
    warp.fault(FaultKind::IllegalOperand, "the tensor map cannot be used: " + problem, mask);
  return map;
}

namespace {

enum Field : uint8_t {
  GlobalAddress,
  Rank,
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  ElementType,
  InterleaveLayout,
  SwizzleMode,
  SwizzleAtomicity,
  FillMode
};

/// Writes one field; returns the mistake of the value, empty where there is none. Its fit
/// with the other fields is checked when the map is used.
std::string setField(TensorMap &map, Field field, unsigned ordinal, uint64_t value) {
  switch (field) {
  case GlobalAddress:
    map.address = value;
    return "";
  case Rank:
    // Numbered from zero.
    if (value >= kMaxTensorRank)
      return "the rank less one is 0 to 4";
    map.rank = uint8_t(value + 1);
    return "";
  case BoxDim:
    map.box[ordinal] = uint32_t(value);
    return value <= 256 ? "" : "a box has at most 256 elements in a dimension";
  case GlobalDim:
    map.size[ordinal] = value;
    return value ? "" : "the size of a dimension is not 0";
  case GlobalStride:
    map.stride[ordinal] = value;
    return "";
  case ElementStride:
    map.step[ordinal] = uint32_t(value);
    return value <= 8 ? "" : "an element stride is at most 8";
  case ElementType:
    map.type = TensorType(value);
    return "";
  case InterleaveLayout:
    map.interleave = uint8_t(value);
    return "";
  case SwizzleMode:
    map.swizzle = Swizzle(value);
    return "";
  case SwizzleAtomicity:
    map.atom = SwizzleAtom(value);
    return "";
  case FillMode:
    map.fillNaN = value;
    return "";
  }
  return "";
}

/// op.flags is the field and, from bit 4 on, the ordinal; op.immediate that of the address.
void replace(Warp &warp, const Op &op, Mask mask) {
  uint64_t addresses[kLanes];
  uint8_t *host[kLanes];
  laneAddresses(warp, op, mask, addresses);
  resolve(warp, spaceOf(op), mask, addresses, kTensorMapBytes, kTensorMapAlignment, AccessKind::Atomic, host);
  const Field field = Field(op.flags & 15);
  const bool isWide = field == GlobalAddress || field == GlobalStride;
  forLanes(mask, [&](unsigned lane) {
    TensorMap map;
    std::string problem = "these 128 bytes are not a tensor map";
    // One that is made from nothing begins with zeros: its fields follow one by one.
    const bool isBlank =
        std::all_of(host[lane], host[lane] + kTensorMapBytes, [](uint8_t b) { return b == 0; });
    if (isBlank || TensorMap::decode(host[lane], map)) {
      uint64_t value = isWide ? warp.values<uint64_t>(op.b)[lane] : warp.values<uint32_t>(op.b)[lane];
      problem = setField(map, field, op.flags >> 4, value);
    }
    if (!problem.empty())
      warp.fault(FaultKind::IllegalOperand, problem, Mask(1) << lane);
    map.encode(host[lane]);
  });
}

/// Of the fields with immediate values, how many values each has.
unsigned valuesOf(Field field) {
  switch (field) {
  case ElementType:
    return unsigned(TensorType::Count);
  case InterleaveLayout:
    return 3;
  case SwizzleMode:
    return unsigned(Swizzle::Count);
  case SwizzleAtomicity:
    return unsigned(SwizzleAtom::Count);
  default:
    return 2;
  }
}

void decodeReplace(Decoder &decoder) {
  Op &op = decoder.op();
  if (!decoder.take("tile"))
    decoder.fail("only maps in .tile mode can be changed");
  const auto field = Field(
      decoder.needOneOf({"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
                         "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"}));
  const MemorySpace space = takeSpace(decoder);
  if (!decoder.take("b1024"))
    decoder.fail(".b1024 is missing");
  const Type type = decoder.takeType();
  if (type != (field == GlobalAddress || field == GlobalStride ? Type::B64 : Type::B32))
    decoder.fail("addresses and strides are .b64, other fields .b32");
  const bool hasOrdinal = field >= BoxDim && field <= ElementStride;
  decoder.expectOperands(2 + hasOrdinal);
  decodeAddress(decoder, decoder.operand(0), space);
  const Operand &value = decoder.operand(1 + hasOrdinal);
  op.b = decoder.source(value, type);
  op.flags = field;
  if (hasOrdinal) {
    const int64_t ordinal = decoder.integer(decoder.operand(1));
    if (ordinal < 0 || ordinal >= int64_t(kMaxTensorRank) - (field == GlobalStride))
      decoder.fail(decoder.operand(1), "there is no such dimension");
    op.flags = uint8_t(field | ordinal << 4);
  }
  if (field >= ElementType && uint64_t(decoder.integer(value)) >= valuesOf(field))
    decoder.fail(value, "the field has the values 0 to " + std::to_string(valuesOf(field) - 1));
  op.handler = &replace;
}

/// op.a is the address in shared memory, the payload that in global.
void copyAndFence(Warp &warp, const Op &op, Mask mask) {
  if (!warp.converged(warp.existing(), mask))
    return;
  uint64_t from[kLanes], to[kLanes];
  uint8_t *source[kLanes], *target[kLanes];
  const Op &global = *static_cast<const Op *>(op.payload);
  laneAddresses(warp, op, mask, from);
  laneAddresses(warp, global, mask, to);
  // The warp copies together: lanes that name the same map copy it once.
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    forLanes(rest & (rest - 1), [&](unsigned i) {
      if (from[i] == from[lane] && to[i] == to[lane])
        mask &= ~(Mask(1) << i);
    });
  }
  resolve(warp, spaceOf(op), mask, from, kTensorMapBytes, kTensorMapAlignment, AccessKind::Load, source);
  resolve(warp, spaceOf(global), mask, to, kTensorMapBytes, kTensorMapAlignment, AccessKind::Store, target);
  forLanes(mask, [&](unsigned lane) { std::memcpy(target[lane], source[lane], kTensorMapBytes); });
}

void decodeCopyAndFence(Decoder &decoder) {
  for (const char *needed : {"global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"})
    if (!decoder.take(needed))
      decoder.fail(std::string(".") + needed + " is missing");
  decoder.needOneOf({"cta", "cluster", "gpu", "sys"});
  decoder.expectOperands(3);
  if (decoder.integer(decoder.operand(2)) != int64_t(kTensorMapBytes))
    decoder.fail(decoder.operand(2), "128 bytes are copied");
  decodeAddress(decoder, decoder.operand(0), MemorySpace::Global);
  auto global = std::make_shared<Op>(decoder.op());
  decodeAddress(decoder, decoder.operand(1), MemorySpace::Shared);
  decoder.keep<Op>(global);
  decoder.op().handler = &copyAndFence;
}

void decodeTensorMap(Decoder &decoder) {
  decoder.needOneOf({"replace", "cp_fenceproxy"}) == 0 ? decodeReplace(decoder) : decodeCopyAndFence(decoder);
}

} // namespace

FamilyList fp8emu::tensorMapInstructions() { return {{"tensormap", decodeTensorMap}}; }
