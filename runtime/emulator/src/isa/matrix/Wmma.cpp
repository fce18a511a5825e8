// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wmma.load, wmma.store and wmma.mma (PTX ISA 9.7.14.4). PTX leaves open which elements of a
// matrix a register holds; here they are those that a register of mma holds (Fragments.h).

#include "Mma.h"

#include "isa/Families.h"
#include "isa/memory/Memory.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;
using ptx::Type;

namespace {

/// A matrix that is loaded or stored: A, the transpose of B, or an accumulator.
struct WmmaMatrix {
  Shape shape;
  bool isSum = false;
  unsigned rows = 0, columns = 0;
  unsigned bits = 0, registerBytes = 4, registers = 0;
  /// Whether rows of it are contiguous in memory.
  bool byRows = true;

  unsigned perRegister() const { return registerBytes * 8 / bits; }
  /// The unit that is read or written at once: an element, or a register full of smaller ones.
  unsigned unitBytes() const { return std::max(bits / 8, bits < 8 ? registerBytes : 0); }
  unsigned unitsPerRegister() const { return registerBytes / unitBytes(); }
  unsigned defaultStride() const { return byRows ? columns : rows; }

  Place place(unsigned lane, unsigned reg, unsigned unit) const {
    if (isSum)
      return accumulatorPlace(rows, columns, lane, reg * unitsPerRegister() + unit);
    Place first = multiplicandPlace(rows, columns, perRegister(), lane, reg);
    return {first.row, first.column + unit};
  }
};

/// Calls `f` with each unit of each register: its bytes in lane 0, and where each lane's
/// lies in memory.
template <class F>
void forUnits(Warp &warp, const Op &op, AccessKind kind, F f) {
  const auto &matrix = *static_cast<const WmmaMatrix *>(op.payload);
  uint64_t base[kLanes], addresses[kLanes];
  uint8_t *host[kLanes];
  laneAddresses(warp, op, kAllLanes, base);
  const uint32_t *strides = warp.values<uint32_t>(op.b);
  for (unsigned reg = 0; reg < op.count; ++reg)
    for (unsigned unit = 0; unit < matrix.unitsPerRegister(); ++unit) {
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        Place place = matrix.place(lane, reg, unit);
        uint64_t stride = strides[lane];
        uint64_t element =
            matrix.byRows ? place.row * stride + place.column : place.column * stride + place.row;
        addresses[lane] = base[lane] + element * matrix.bits / 8;
      }
      resolve(warp, spaceOf(op), kAllLanes, addresses, matrix.unitBytes(), kind, host);
      f(warp.values<uint8_t>(warp.list(op)[reg]) + unit * matrix.unitBytes(), matrix, host);
    }
}

void load(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  forUnits(warp, op, AccessKind::Load, [](uint8_t *d, const WmmaMatrix &matrix, uint8_t *const *host) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(d + lane * matrix.registerBytes, host[lane], matrix.unitBytes());
  });
}

void store(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  forUnits(warp, op, AccessKind::Store, [](uint8_t *s, const WmmaMatrix &matrix, uint8_t *const *host) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(host[lane], s + lane * matrix.registerBytes, matrix.unitBytes());
  });
}

/// The shapes of 9.7.14.1, by the bits of a multiplicand's element; 0 for any.
bool hasShape(const Shape &shape, unsigned bits) {
  const std::pair<unsigned, Shape> shapes[] = {
      {16, {16, 16, 16}}, {16, {8, 32, 16}}, {16, {32, 8, 16}}, {8, {16, 16, 16}}, {8, {8, 32, 16}},
      {8, {32, 8, 16}},   {32, {16, 16, 8}}, {64, {8, 8, 4}},   {4, {8, 8, 32}},   {1, {8, 8, 128}}};
  return std::any_of(std::begin(shapes), std::end(shapes), [&](const auto &known) {
    return known.second == shape && (bits == 0 || bits == known.first);
  });
}

void checkShape(Decoder &decoder, const Shape &shape, unsigned bits) {
  if (!hasShape(shape, bits))
    decoder.fail("there is no such shape for these types (PTX ISA 9.7.14.1)");
}

/// wmma has FP8 nowhere.
Element findMultiplicand(Decoder &decoder, const std::string &name) {
  Element element = findElement(decoder, name);
  if (element.kind == Element::Float && element.bits == 8)
    decoder.fail("." + name + " is not a type of wmma");
  return element;
}

void setSumMatrix(Decoder &decoder, WmmaMatrix &matrix, bool byRows) {
  Accumulator type = takeAccumulator(decoder);
  matrix.isSum = true;
  matrix.rows = matrix.shape.m;
  matrix.columns = matrix.shape.n;
  matrix.bits = type == Accumulator::F16 ? 16 : type == Accumulator::F64 ? 64 : 32;
  matrix.registerBytes = type == Accumulator::F64 ? 8 : 4;
  matrix.byRows = byRows;
  checkShape(decoder, matrix.shape, 0);
  matrix.registers = matrix.rows * matrix.columns / kLanes / matrix.perRegister();
}

void setMultiplicand(Decoder &decoder, WmmaMatrix &matrix, bool isB, bool byRows) {
  Element element = findMultiplicand(decoder, decoder.takeAny());
  matrix.rows = isB ? matrix.shape.n : matrix.shape.m;
  matrix.columns = matrix.shape.k;
  matrix.bits = element.bits;
  matrix.registerBytes = element.registerBytes();
  matrix.byRows = isB != byRows;
  checkShape(decoder, matrix.shape, matrix.bits);
  if (matrix.bits < 8 && !matrix.byRows)
    decoder.fail("A of these types lies by rows, B by columns");
  matrix.registers = matrix.rows * matrix.columns / kLanes / matrix.perRegister();
  if (element.format == &num::F16)
    matrix.registers = 8;
}

/// load.{a,b,c} and store.d, .layout, .shape, {.ss}, .type; registers, address, {stride}.
void decodeAccess(Decoder &decoder, int role, bool isLoad) {
  takeAligned(decoder);
  WmmaMatrix matrix;
  matrix.shape = takeShape(decoder);
  bool byRows = decoder.needOneOf({"row", "col"}) == 0;
  MemorySpace space = takeSpace(decoder);
  decoder.expectOperands(2, 3);
  decodeAddress(decoder, decoder.operand(isLoad ? 1 : 0), space);
  if (role == 2)
    setSumMatrix(decoder, matrix, byRows);
  else
    setMultiplicand(decoder, matrix, role == 1, byRows);
  Type type = matrix.registerBytes == 8 ? Type::F64 : Type::B32;
  decoder.list(isLoad ? fragmentDestination(decoder, decoder.operand(0), matrix.registers, type)
                      : fragmentSource(decoder, decoder.operand(1), matrix.registers, type));
  decoder.op().b =
      decoder.operands() == 3 ? decoder.source(2, Type::U32) : decoder.constant(matrix.defaultStride(), 4);
  decoder.keep(std::make_shared<const WmmaMatrix>(matrix));
  decoder.op().handler = isLoad ? &load : &store;
}

void checkTypes(Decoder &decoder, const Product &p) {
  bool half = p.a.format == &num::F16;
  auto fits = [&](Accumulator type) {
    return p.a.kind == Element::Double  ? type == Accumulator::F64
           : p.a.kind != Element::Float ? type == Accumulator::S32
                                        : type == Accumulator::F32 || (half && type == Accumulator::F16);
  };
  bool same = p.a.kind == p.b.kind && p.a.format == p.b.format && p.a.bits == p.b.bits &&
              p.a.isSigned == p.b.isSigned;
  if (!same || !fits(p.c) || !fits(p.d) || (p.a.kind == Element::Float && p.a.bits == 8))
    decoder.fail("there is no such combination of types (PTX ISA 9.7.14.4.5)");
  checkShape(decoder, p.shape, p.a.bits);
}

/// Layouts are what they were when A and B were loaded: fragments hold the same for both.
void decodeProduct(Decoder &decoder) {
  takeAligned(decoder);
  Product p;
  p.shape = takeShape(decoder);
  bool byRows = takeNext(decoder, {"row", "col"}) == 0, byColumns = takeNext(decoder, {"row", "col"}) == 1;
  takeProductTypes(decoder, p);
  checkTypes(decoder, p);
  if (p.a.bits < 8 && !(byRows && byColumns))
    decoder.fail("A of these types lies by rows, B by columns");
  p.leastRegisters = p.a.format == &num::F16 ? 8 : 0;
  setSum(p, warpUnit(decoder));
  decoder.expectOperands(4);
  decodeFragments(decoder, p);
  keepProduct(decoder, p);
}

void decodeWmma(Decoder &decoder) {
  switch (decoder.needOneOf({"load", "store", "mma"})) {
  case 0: {
    int role = decoder.needOneOf({"a", "b", "c"});
    return decodeAccess(decoder, role, /*isLoad=*/true);
  }
  case 1:
    decoder.needOneOf({"d"});
    return decodeAccess(decoder, 2, /*isLoad=*/false);
  default:
    return decodeProduct(decoder);
  }
}

} // namespace

FamilyList fp8emu::wmmaInstructions() { return {{"wmma", decodeWmma}}; }
