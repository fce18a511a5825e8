// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma (PTX ISA 9.7.15): the instruction's forms, its fence, groups and waits. Its
// product: WgmmaProduct.cpp.

#include "Wgmma.h"

#include "check/Agent.h"
#include "exec/Block.h"
#include "isa/Families.h"

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// Orders accesses to registers before products after it. The registers of those in
/// flight are guarded whether or not there is one in between.
void fence(Warp &warp, const Op &, Mask mask) {
  if (wholeWarp(warp, mask))
    warp.matrixQueue().fence();
}

void commit(Warp &warp, const Op &, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  warp.matrixGroups().commit();
  warp.matrixQueue().commit();
  check::commitGroup(warp, 1, check::GroupKind::Matrix);
}

/// Until all groups but the last op.immediate have ended.
void waitGroup(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  if (!warp.matrixGroups().complete(uint64_t(op.immediate)))
    return warp.wait(mask, Wait::Async, 0, 0, /*repeat=*/true);
  check::waitedForGroups(warp, mask, check::GroupKind::Matrix, uint64_t(op.immediate));
  warp.matrixQueue().waited(uint64_t(op.immediate));
  warp.guardedRegistersChanged();
}

bool validTypes(const Product &p) {
  bool same = p.a.format == p.b.format, fp8 = p.a.bits == 8;
  switch (p.a.kind) {
  case Element::Float:
    if (p.a.kind != p.b.kind || p.a.bits != p.b.bits || !(same || fp8))
      return false;
    for (const num::Format *format : {p.a.format, p.b.format})
      if (fp8 && format != &num::E4M3 && format != &num::E5M2)
        return false;
    return p.d == Accumulator::F32 || (p.d == Accumulator::F16 && (fp8 || p.a.format == &num::F16));
  case Element::Integer:
  case Element::Bit:
    return p.b.kind == p.a.kind && p.b.bits == p.a.bits && p.a.bits != 4 && p.d == Accumulator::S32;
  default:
    return false;
  }
}

/// The shapes of 9.7.15.2.
bool validShape(const Shape &shape, const Element &element) {
  bool n = shape.n >= 8 && shape.n <= 256 && shape.n % 8 == 0;
  if (element.kind != Element::Float)
    n = n && (shape.n <= 32 || shape.n % 16 == 0);
  return shape.m == 64 && n && shape.k == 256U / element.bits;
}

/// 1, or -1 where elements are negated.
bool takeNegation(Decoder &decoder, const Operand &operand) {
  int64_t scale = decoder.integer(operand);
  if (scale != 1 && scale != -1)
    decoder.fail(operand, "a scale of a multiplicand is 1 or -1");
  return scale == -1;
}

bool takeTransposition(Decoder &decoder, const Operand &operand) {
  int64_t value = decoder.integer(operand);
  if (value != 0 && value != 1)
    decoder.fail(operand, "a transposition is 0 or 1");
  return value == 1;
}

/// The immediates after scale-d, of floats: the signs of A and B, and of 16 bits whether those in
/// shared memory are transposed.
void decodeImmediates(Decoder &decoder, WgmmaProduct &decoded) {
  Product &p = decoded.product;
  bool isFloat = p.a.kind == Element::Float, is16 = isFloat && p.a.bits == 16;
  decoder.expectOperands(4 + 2 * isFloat + (is16 ? 1 + !decoded.aInRegisters : 0));
  if (isFloat) {
    p.negateA = takeNegation(decoder, decoder.operand(4));
    p.negateB = takeNegation(decoder, decoder.operand(5));
  }
  if (!is16)
    return;
  if (!decoded.aInRegisters)
    decoded.transposeA = takeTransposition(decoder, decoder.operand(6));
  decoded.transposeB = takeTransposition(decoder, decoder.operand(decoder.operands() - 1));
}

void takeTypes(Decoder &decoder, Product &p) {
  p.satfinite = decoder.take("satfinite");
  bool bits = decoder.take("popc");
  if (bits)
    decoder.needOneOf({"and"});
  p.c = p.d = takeAccumulator(decoder);
  p.a = findElement(decoder, decoder.takeAny());
  p.b = findElement(decoder, decoder.takeAny());
  if (!validTypes(p) || bits != (p.a.kind == Element::Bit) || (p.satfinite && p.a.kind != Element::Integer))
    decoder.fail("there is no such combination of types (PTX ISA 9.7.15.3)");
}

void decodeProduct(Decoder &decoder) {
  auto decoded = std::make_shared<WgmmaProduct>();
  Product &p = decoded->product;
  p.shape = takeShape(decoder);
  takeTypes(decoder, p);
  if (!validShape(p.shape, p.a))
    decoder.fail("there is no such shape for these types (PTX ISA 9.7.15.2)");
  // Of one warp.
  p.shape.m = 16;
  setSum(p, num::TensorUnit::HopperWarpgroup);
  Op &op = decoder.op();
  decoder.list(fragmentDestination(decoder, decoder.operand(0), p.registersOf(p.d), registerType(p.d)));
  // It adds to what they hold: read as well.
  fragmentSource(decoder, decoder.operand(0), p.registersOf(p.d), registerType(p.d));
  decoded->aInRegisters = decoder.operand(1).kind == Operand::Kind::Vector;
  if (decoded->aInRegisters)
    decoder.list(fragmentSource(decoder, decoder.operand(1), p.registersA()));
  else
    op.a = decoder.source(1, Type::U64);
  op.b = decoder.source(2, Type::U64);
  bool negated = false;
  op.c = decoder.predicate(decoder.operand(3), &negated);
  op.flags = negated;
  decodeImmediates(decoder, *decoded);
  op.mayTouchInFlight = true;
  decoder.keep<WgmmaProduct>(decoded);
  op.ordering = check::ordering::kInFlight;
  op.handler = &startProduct;
}

void decodeWgmma(Decoder &decoder) {
  int form = decoder.needOneOf({"mma_async", "fence", "commit_group", "wait_group"});
  takeAligned(decoder);
  if (form == 0)
    return decodeProduct(decoder);
  decoder.expectOperands(form == 3 ? 1 : 0);
  if (form == 3)
    decoder.op().immediate = decoder.count(decoder.operand(0));
  decoder.op().handler = form == 1 ? &fence : form == 2 ? &commit : &waitGroup;
}

} // namespace

FamilyList fp8emu::wgmmaInstructions() { return {{"wgmma", decodeWgmma}}; }
