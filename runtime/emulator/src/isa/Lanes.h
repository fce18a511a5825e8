// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handlers of instructions that do the same in every lane: `F` is a function object
// on values.

#ifndef FP8EMU_ISA_LANES_H
#define FP8EMU_ISA_LANES_H

#include "Decoder.h"

#include "exec/Warp.h"

namespace fp8emu {

template <class R, class A, class F>
void unaryLanes(Warp &warp, const Op &op, Mask mask) {
  R *d = warp.values<R>(op.d);
  const A *a = warp.values<A>(op.a);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = R(F()(a[lane])); });
}

template <class R, class A, class B, class F>
void binaryLanes(Warp &warp, const Op &op, Mask mask) {
  R *d = warp.values<R>(op.d);
  const A *a = warp.values<A>(op.a);
  const B *b = warp.values<B>(op.b);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = R(F()(a[lane], b[lane])); });
}

template <class R, class A, class B, class C, class F>
void ternaryLanes(Warp &warp, const Op &op, Mask mask) {
  R *d = warp.values<R>(op.d);
  const A *a = warp.values<A>(op.a);
  const B *b = warp.values<B>(op.b);
  const C *c = warp.values<C>(op.c);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = R(F()(a[lane], b[lane], c[lane])); });
}

/// Operands of an instruction that has one type: d, a; d, a, b; d, a, b, c.
inline void decodeLanes(Decoder &decoder, ptx::Type type, unsigned sources) {
  decoder.expectOperands(sources + 1);
  Op &op = decoder.op();
  op.d = decoder.destination(0, type);
  op.a = decoder.source(1, type);
  if (sources > 1)
    op.b = decoder.source(2, type);
  if (sources > 2)
    op.c = decoder.source(3, type);
}

/// Whether the type is .b16, .b32 or .b64.
inline bool isBits(ptx::Type type) {
  return type == ptx::Type::B16 || type == ptx::Type::B32 || type == ptx::Type::B64;
}

/// Takes an untyped type of at least `leastBytes`.
inline ptx::Type takeBits(Decoder &decoder, unsigned leastBytes) {
  ptx::Type type = decoder.takeType();
  if (!isBits(type) || ptx::byteSize(type) < leastBytes)
    decoder.fail(leastBytes == 2 ? ".b16, .b32 or .b64 is expected" : ".b32 or .b64 is expected");
  return type;
}

/// Calls `make` with a value of the integer type, for the handler it chooses.
template <class Make>
Handler forInteger(Decoder &decoder, ptx::Type type, Make make) {
  switch (type) {
  case ptx::Type::U16:
    return make(uint16_t());
  case ptx::Type::S16:
    return make(int16_t());
  case ptx::Type::U32:
    return make(uint32_t());
  case ptx::Type::S32:
    return make(int32_t());
  case ptx::Type::U64:
    return make(uint64_t());
  case ptx::Type::S64:
    return make(int64_t());
  default:
    decoder.fail("." + std::string(ptx::name(type)) + " is not a type of this instruction");
  }
}

/// The same for untyped bits of 16, 32 and 64.
template <class Make>
Handler forBits(Decoder &decoder, ptx::Type type, Make make) {
  switch (ptx::byteSize(type)) {
  case 2:
    return make(uint16_t());
  case 4:
    return make(uint32_t());
  case 8:
    return make(uint64_t());
  default:
    decoder.fail("." + std::string(ptx::name(type)) + " is not a type of this instruction");
  }
}

} // namespace fp8emu

#endif // FP8EMU_ISA_LANES_H
