// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix, stmatrix and movmatrix (PTX ISA 9.7.14.5.15 to 17): small matrices between
// shared memory, one row of 16 bytes an address, and fragments of a warp.

#include "Products.h"

#include "isa/Families.h"
#include "isa/memory/Memory.h"

#include <array>
#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

constexpr unsigned kRowBytes = 16;

/// The part of shared memory that a lane's register holds: four bytes, each of a row and a
/// column of one matrix.
struct MoveShape {
  /// Rows with an address of their own, and registers, of one matrix.
  unsigned rows, registers;
  unsigned matrices;
  /// Bits of an element in memory, and bytes of one in a register.
  unsigned bits, bytes;
  bool transposed;

  /// Where byte `i` of register `reg` of a matrix comes from.
  Place place(unsigned lane, unsigned reg, unsigned i) const {
    unsigned along = lane % 4 * (4 / bytes), across = lane / 4 + 8 * reg;
    if (!transposed)
      return {across, along * bytes + i};
    // .m16n8 is stored as accumulators lie: two of a row, two of row + 8.
    if (bytes == 1 && rows == 8)
      return {lane % 4 * 2 + i % 2, lane / 4 + i / 2 * 8};
    return {along + i / bytes, across * bytes + i % bytes};
  }
  /// Bytes of a row that hold elements; the bytes behind them in memory are padding.
  unsigned dataBytes() const { return kRowBytes / bytes * bits / 8; }
  Mask lanes() const { return rows * matrices == kLanes ? kAllLanes : (Mask(1) << rows * matrices) - 1; }
};

using Rows = std::array<std::array<uint8_t, kRowBytes>, kLanes>;

/// Finds each row, by the addresses of the lanes that have one.
void findRows(Warp &warp, const Op &op, const MoveShape &shape, AccessKind kind, uint8_t **host) {
  uint64_t addresses[kLanes];
  laneAddresses(warp, op, shape.lanes(), addresses);
  MemorySpace space = spaceOf(op);
  if (space == MemorySpace::Generic)
    forLanes(shape.lanes(), [&](unsigned lane) {
      if (classify(warp, addresses[lane]) != MemorySpace::SharedCluster)
        warp.fault(FaultKind::IllegalOperand, "the address is not in shared memory", Mask(1) << lane);
    });
  resolve(warp, MemorySpace::Shared, shape.lanes(), addresses, shape.dataBytes(), kRowBytes, kind, host);
}

/// The elements of a row as bytes: those of 4 and 6 bits lie in the lower bits.
void expand(const MoveShape &shape, const uint8_t *from, uint8_t *to) {
  if (shape.bits >= 8)
    return void(std::memcpy(to, from, kRowBytes));
  uint8_t packed[kRowBytes] = {};
  std::memcpy(packed, from, shape.dataBytes());
  for (unsigned i = 0; i < kRowBytes; ++i) {
    unsigned bit = i * shape.bits;
    unsigned pair = packed[bit / 8] | (bit / 8 + 1 < kRowBytes ? unsigned(packed[bit / 8 + 1]) << 8 : 0);
    to[i] = uint8_t(pair >> bit % 8 & ((1U << shape.bits) - 1));
  }
}

void loadMatrix(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  const auto &shape = *static_cast<const MoveShape *>(op.payload);
  uint8_t *host[kLanes];
  findRows(warp, op, shape, AccessKind::Load, host);
  Rows rows;
  forLanes(shape.lanes(), [&](unsigned lane) { expand(shape, host[lane], rows[lane].data()); });
  for (unsigned i = 0; i < op.count; ++i) {
    auto *d = warp.values<std::array<uint8_t, 4>>(warp.list(op)[i]);
    unsigned first = i / shape.registers * shape.rows;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned byte = 0; byte < 4; ++byte) {
        Place place = shape.place(lane, i % shape.registers, byte);
        d[lane][byte] = rows[first + place.row][place.column];
      }
  }
}

void storeMatrix(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  const auto &shape = *static_cast<const MoveShape *>(op.payload);
  uint8_t *host[kLanes];
  findRows(warp, op, shape, AccessKind::Store, host);
  for (unsigned i = 0; i < op.count; ++i) {
    const auto *s = warp.values<std::array<uint8_t, 4>>(warp.list(op)[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned byte = 0; byte < 4; ++byte) {
        Place place = shape.place(lane, 0, byte);
        host[i * shape.rows + place.row][place.column] = s[lane][byte];
      }
  }
}

/// The transpose of an 8 x 8 matrix of 16 bits: lane 4 g + t has d[g][2 t] of what is
/// a[2 t][g], and its neighbour.
void moveMatrix(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  uint16_t a[kLanes * 2];
  std::memcpy(a, warp.values<uint16_t>(op.a), sizeof a);
  uint16_t *d = warp.values<uint16_t>(op.d);
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned column = 0; column < 8; ++column)
      d[row * 8 + column] = a[column * 8 + row];
}

unsigned takeCount(Decoder &decoder) { return 1U << decoder.needOneOf({"x1", "x2", "x4"}); }

void takeSharedSpace(Decoder &decoder, const Operand &address) {
  MemorySpace space = takeSpace(decoder);
  if (space != MemorySpace::Shared && space != MemorySpace::Generic)
    decoder.fail(address, "matrices are in shared memory");
  decodeAddress(decoder, address, space);
}

/// .type, or .dst_fmt.src_fmt.
unsigned takeLoadBits(Decoder &decoder) {
  if (!decoder.take("b8x16"))
    return decoder.needOneOf({"b16", "b8"}) == 0 ? 16 : 8;
  return decoder.needOneOf({"b6x16_p32", "b4x16_p64"}) == 0 ? 6 : 4;
}

void decodeLoadMatrix(Decoder &decoder) {
  takeAligned(decoder);
  decoder.expectOperands(2);
  int form = decoder.needOneOf({"m8n8", "m8n16", "m16n16"});
  MoveShape shape;
  shape.matrices = takeCount(decoder);
  shape.transposed = decoder.take("trans");
  takeSharedSpace(decoder, decoder.operand(1));
  shape.bits = takeLoadBits(decoder);
  shape.bytes = shape.bits == 16 ? 2 : 1;
  shape.rows = form == 2 ? 16 : 8;
  shape.registers = form == 2 ? 2 : 1;
  bool valid = form == 0   ? shape.bits == 16
               : form == 1 ? shape.bits < 8 && !shape.transposed
                           : shape.bits <= 8 && shape.transposed && shape.matrices <= 2;
  if (!valid)
    decoder.fail("there is no such combination of shape, number, .trans and type (PTX ISA 9.7.14.5.15)");
  decoder.list(fragmentDestination(decoder, decoder.operand(0), shape.matrices * shape.registers));
  decoder.keep(std::make_shared<const MoveShape>(shape));
  decoder.op().handler = &loadMatrix;
}

void decodeStoreMatrix(Decoder &decoder) {
  takeAligned(decoder);
  decoder.expectOperands(2);
  bool small = decoder.needOneOf({"m8n8", "m16n8"}) == 1;
  MoveShape shape;
  shape.matrices = takeCount(decoder);
  shape.transposed = decoder.take("trans");
  takeSharedSpace(decoder, decoder.operand(0));
  shape.bits = decoder.needOneOf({"b16", "b8"}) == 0 ? 16 : 8;
  shape.bytes = shape.bits / 8;
  shape.rows = 8;
  shape.registers = 1;
  if (small ? shape.bits != 8 || !shape.transposed : shape.bits != 16)
    decoder.fail("there is no such combination of shape, .trans and type (PTX ISA 9.7.14.5.16)");
  decoder.list(fragmentSource(decoder, decoder.operand(1), shape.matrices));
  decoder.keep(std::make_shared<const MoveShape>(shape));
  decoder.op().handler = &storeMatrix;
}

void decodeMoveMatrix(Decoder &decoder) {
  takeAligned(decoder);
  decoder.needOneOf({"m8n8"});
  decoder.needOneOf({"trans"});
  decoder.needOneOf({"b16"});
  decoder.expectOperands(2);
  decoder.op().d = decoder.destination(0, Type::B32);
  decoder.op().a = decoder.source(1, Type::B32);
  decoder.op().handler = &moveMatrix;
}

} // namespace

FamilyList fp8emu::matrixMoveInstructions() {
  return {{"ldmatrix", decodeLoadMatrix}, {"stmatrix", decodeStoreMatrix}, {"movmatrix", decodeMoveMatrix}};
}
