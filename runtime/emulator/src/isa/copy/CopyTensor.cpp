// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async.bulk.tensor and its kin: boxes of tensors that a tensor map describes (PTX
// ISA 9.7.9.27.1), in tile mode. The map is read when the copy starts.

#include "Bulk.h"
#include "CopyDecoders.h"
#include "Tensor.h"

#include "async/TensorCopy.h"
#include "exec/Block.h"

#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// Of a box in shared memory (the CUDA programming guide's table of alignments).
constexpr unsigned kBoxAlignment = 128;

struct TensorCopy {
  BulkTarget target;
  Op map;
  /// The box that is stored.
  Op own;
  unsigned rank = 0;
  /// .tile::gather4 and .tile::scatter4.
  bool fourRows = false;
  bool reduces = false;
  ReductionKind kind{};
  std::vector<Ref> coordinates;
};

const TensorCopy &copyOf(const Op &op) { return *static_cast<const TensorCopy *>(op.payload); }

/// A map and a place in its tensor, as a lane names them.
struct Place {
  TensorMap map;
  std::vector<TensorRow> rows;
};

/// The first coordinate of packed elements (PTX ISA 9.7.9.27.1.1), and of others: their box begins at 16
/// bytes of a row, any other place is an illegal instruction on an H100.
void checkColumn(Warp &warp, const TensorMap &map, int32_t column, unsigned lane) {
  const TensorUnit unit = unitOf(map.type);
  const int32_t multiple =
      isPadded(map.type) ? 128 : int32_t(unit.elements * std::max(16 / unit.globalBytes, 1u));
  requireOperand(warp, column % multiple == 0, lane,
                 "the first coordinate is " + std::to_string(column) + ", of ." + name(map.type) +
                     " it must be a multiple of " + std::to_string(multiple));
}

/// A box that is stored may end behind the tensor, not begin before it (CUDA programming guide, on TMA): an
/// H100 takes such a store for an illegal instruction.
void checkStart(Warp &warp, const TensorCopy &copy, unsigned lane) {
  for (const Ref &coordinate : copy.coordinates) {
    const int32_t start = warp.values<int32_t>(coordinate)[lane];
    requireOperand(warp, start >= 0, lane,
                   "a coordinate is " + std::to_string(start) + ", of a store none may be negative");
  }
}

Place findPlace(Warp &warp, const TensorCopy &copy, unsigned lane) {
  Place place;
  place.map = readTensorMap(warp, copy.map, lane);
  requireOperand(warp, place.map.rank == copy.rank, lane,
                 "the tensor map has " + std::to_string(place.map.rank) + " dimensions, the instruction " +
                     std::to_string(copy.rank));
  requireOperand(warp, !copy.fourRows || place.map.box[1] == 1, lane,
                 "to gather or scatter rows the box must have one, it has " +
                     std::to_string(place.map.box[1]));
  int32_t coordinates[kMaxTensorRank] = {};
  for (size_t i = 0; i < copy.coordinates.size(); ++i)
    coordinates[i] = warp.values<int32_t>(copy.coordinates[i])[lane];
  checkColumn(warp, place.map, coordinates[0], lane);
  place.rows = copy.fourRows ? place.map.fourRows(coordinates) : place.map.rows(coordinates);
  return place;
}

void load(Warp &warp, const Op &op, Mask mask) {
  const TensorCopy &copy = copyOf(op);
  forLanes(mask, [&](unsigned lane) {
    Place place = findPlace(warp, copy, lane);
    auto operation = std::make_unique<BoxToShared>(warp.block(), place.map, std::move(place.rows));
    operation->destinations = findDestinations(warp, copy.target, 1, kBoxAlignment, lane);
    operation->announce();
    start(warp, lane, std::move(operation));
  });
}

/// The type whose reductions elements have; none for types without any.
Type reducedType(TensorType type, ReductionKind kind) {
  const bool isLogic = kind >= ReductionKind::And;
  switch (type) {
  case TensorType::U32:
    return isLogic ? Type::B32 : Type::U32;
  case TensorType::S32:
    return isLogic ? Type::B32 : Type::S32;
  case TensorType::U64:
    return isLogic ? Type::B64 : Type::U64;
  case TensorType::S64:
    return isLogic ? Type::B64 : Type::S64;
  case TensorType::F16:
    return Type::F16;
  case TensorType::BF16:
    return Type::BF16;
  case TensorType::F32:
  case TensorType::F32Ftz:
    return Type::F32;
  default:
    return Type::Pred;
  }
}

void store(Warp &warp, const Op &op, Mask mask) {
  const TensorCopy &copy = copyOf(op);
  forLanes(mask, [&](unsigned lane) {
    Place place = findPlace(warp, copy, lane);
    checkStart(warp, copy, lane);
    const std::string type = std::string(".") + name(place.map.type);
    requireOperand(warp, place.map.type != TensorType::B4x16P64, lane, type + " cannot be stored");
    SharedPlace own = findOwnShared(warp, copy.own, 1, kBoxAlignment, lane);
    auto operation = std::make_unique<BoxToGlobal>(own, place.map, std::move(place.rows));
    if (copy.reduces) {
      operation->reduction = findReduction(copy.kind, reducedType(place.map.type, copy.kind));
      requireOperand(warp, operation->reduction, lane,
                     "there is no ." + std::string(name(copy.kind)) + " of " + type);
    }
    operation->group = warp.bulkGroups(lane).add();
    operation->announce(check::Agent::inGroup(warp, lane, check::GroupKind::Bulk, check::Proxy::Async));
    start(warp, lane, std::move(operation));
  });
}

/// A hint; that the map is one is seen all the same.
void prefetch(Warp &warp, const Op &op, Mask mask) {
  forLanes(mask, [&](unsigned lane) { findPlace(warp, copyOf(op), lane); });
}

void takeMode(Decoder &decoder, TensorCopy &copy, bool isStore) {
  if (decoder.takeOneOf({"im2col", "im2col::w", "im2col::w::128", "im2col_no_offs"}) >= 0)
    decoder.fail("im2col is not supported, only tiles are");
  copy.fourRows = decoder.take(isStore ? "tile::scatter4" : "tile::gather4");
  if (!copy.fourRows)
    decoder.take("tile");
  if (copy.fourRows && copy.rank != 2)
    decoder.fail("rows of .2d tensors only are gathered and scattered");
}

/// [map, {coordinates}].
void decodeMap(Decoder &decoder, const Operand &operand, TensorCopy &copy) {
  const AddressOperand address = decoder.address(operand);
  copy.map = decodeAddressOp(decoder, operand, MemorySpace::Generic);
  decoder.op().ordering = check::ordering::kInFlight;
  if (address.rest.size() != 1 || address.rest[0].kind != Operand::Kind::Vector)
    decoder.fail(operand, "a tensor map and coordinates in braces are expected");
  const unsigned expected = copy.fourRows ? 5 : copy.rank;
  if (address.rest[0].parts.size() != expected)
    decoder.fail(operand, std::to_string(expected) + " coordinates are expected");
  for (const Operand &coordinate : address.rest[0].parts)
    copy.coordinates.push_back(decoder.source(coordinate, Type::S32));
}

void decodePrefetch(Decoder &decoder, TensorCopy &copy) {
  if (!decoder.take("L2") || !decoder.take("global"))
    decoder.fail("tensors are prefetched from .global into .L2");
  takeMode(decoder, copy, /*isStore=*/false);
  decodeMap(decoder, decoder.operand(0), copy);
  decoder.expectOperands(skipCachePolicy(decoder, 1));
  decoder.op().handler = &prefetch;
}

void decodeLoad(Decoder &decoder, BulkDirection direction, TensorCopy &copy) {
  takeMode(decoder, copy, /*isStore=*/false);
  const bool ownBlock = direction == BulkDirection::GlobalToBlock;
  copy.target.to = decodeAddressOp(decoder, decoder.operand(0),
                                   ownBlock ? MemorySpace::Shared : MemorySpace::SharedCluster);
  decodeMap(decoder, decoder.operand(1), copy);
  copy.target.pair = decoder.takeOneOf({"cta_group::1", "cta_group::2"}) == 1;
  unsigned next = 3 + decodeTarget(decoder, direction, copy.target, decoder.operand(2), 3);
  // With .cta_group::2 the mbarrier may be another block's even where the box is not.
  if (copy.target.pair && ownBlock)
    copy.target.barrier = decodeAddressOp(decoder, decoder.operand(2), MemorySpace::SharedCluster);
  decoder.expectOperands(skipCachePolicy(decoder, next));
  decoder.op().handler = &load;
}

void decodeStore(Decoder &decoder, TensorCopy &copy) {
  takeMode(decoder, copy, /*isStore=*/true);
  if (!decoder.take("bulk_group"))
    decoder.fail(".bulk_group is missing");
  decodeMap(decoder, decoder.operand(0), copy);
  copy.own = decodeAddressOp(decoder, decoder.operand(1), MemorySpace::Shared);
  decoder.expectOperands(skipCachePolicy(decoder, 2));
  if (copy.reduces)
    decoder.blocksCommunicate();
  decoder.op().handler = &store;
}

} // namespace

void fp8emu::decodeCopyTensor(Decoder &decoder) {
  TensorCopy copy;
  copy.reduces = takeReduction(decoder, copy.kind);
  copy.rank = 1 + unsigned(decoder.needOneOf({"1d", "2d", "3d", "4d", "5d"}));
  if (decoder.take("prefetch")) {
    decodePrefetch(decoder, copy);
  } else {
    const BulkDirection direction = takeDirection(decoder);
    const bool isStore = direction == BulkDirection::BlockToGlobal;
    if (direction == BulkDirection::BlockToCluster || (copy.reduces && !isStore))
      decoder.fail("tensors are copied from and to .global, and reduced in it");
    isStore ? decodeStore(decoder, copy) : decodeLoad(decoder, direction, copy);
  }
  decoder.keep<TensorCopy>(std::make_shared<TensorCopy>(copy));
}
