// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mov of special registers (PTX ISA 10), and of vectors of registers.

#include "Move.h"

#include "exec/Block.h"
#include "exec/Launch.h"
#include "isa/Lanes.h"
#include "isa/OperandTypes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// Special registers that are read when the instruction runs. Zero: what is counted by a
/// profiler alone, and the graph that a kernel belongs to, which is none.
enum Counter : uint8_t { Clock, GlobalTimer, GridId, Zero };

uint64_t valueOf(Counter counter, Warp &warp) {
  switch (counter) {
  case Clock:
    return warp.clock();
  case GlobalTimer:
    return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count());
  case GridId:
    return warp.block().launch().number();
  case Zero:
    break;
  }
  return 0;
}

template <class T>
void readCounter(Warp &warp, const Op &op, Mask mask) {
  const uint64_t value = valueOf(Counter(op.flags), warp) >> op.immediate;
  T *d = warp.values<T>(op.d);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = T(value); });
}

/// The widths that a register is read in: its own, and those of older versions of PTX.
struct CounterRegister {
  const char *name;
  Counter counter;
  unsigned shift;
  std::array<Type, 3> widths;
};

constexpr std::array kWord = {Type::U32, Type::U32, Type::U32}, kLong = {Type::U64, Type::U64, Type::U64};

constexpr CounterRegister kCounters[] = {
    {"%clock", Clock, 0, kWord},
    {"%clock64", Clock, 0, kLong},
    {"%clock_hi", Clock, 32, kWord},
    {"%globaltimer", GlobalTimer, 0, kLong},
    {"%globaltimer_lo", GlobalTimer, 0, kWord},
    {"%globaltimer_hi", GlobalTimer, 32, kWord},
    {"%gridid", GridId, 0, {Type::U64, Type::U32, Type::U16}},
    {"%current_graph_exec", Zero, 0, kLong},
};

/// Of %pm0 to %pm7 and %pm0_64 to %pm7_64, which have no name of their own in the table.
constexpr CounterRegister kMonitor = {"%pm", Zero, 0, kWord}, kLongMonitor = {"%pm_64", Zero, 0, kLong};

const CounterRegister *findCounter(const std::string &name) {
  for (const CounterRegister &known : kCounters)
    if (name == known.name)
      return &known;
  if (name.rfind("%pm", 0) != 0)
    return nullptr;
  return name.find('_') == std::string::npos ? &kMonitor : &kLongMonitor;
}

void decodeCounter(Decoder &decoder, const CounterRegister &counter, Type type) {
  const auto &widths = counter.widths;
  if (std::none_of(widths.begin(), widths.end(), [=](Type own) { return takesRegister(type, own); }))
    decoder.fail(decoder.operand(1), decoder.operand(1).text + " is a ." + ptx::name(widths[0]) +
                                         " register, ." + ptx::name(type) + " is expected");
  Op &op = decoder.op();
  op.d = decoder.destination(0, type);
  op.flags = counter.counter;
  op.immediate = counter.shift;
  op.handler = ptx::byteSize(type) == 8   ? &readCounter<uint64_t>
               : ptx::byteSize(type) == 4 ? &readCounter<uint32_t>
                                          : &readCounter<uint16_t>;
}

/// d = the lower bits of a.
struct Narrow {
  uint16_t operator()(uint32_t a) const { return uint16_t(a); }
};

/// The list has the destinations, then the sources: op.flags bytes of each go to a place of
/// op.small bytes less or as many. All are read before one is written.
void moveVector(Warp &warp, const Op &op, Mask mask) {
  const Ref *refs = warp.list(op);
  const unsigned width = op.count / 2, bytes = op.small, stride = op.flags;
  std::array<uint8_t, 4 * 8 * kLanes> copy;
  for (unsigned i = 0; i < width; ++i)
    std::memcpy(copy.data() + i * 8 * kLanes, warp.values<uint8_t>(refs[width + i]), stride * kLanes);
  for (unsigned i = 0; i < width; ++i) {
    uint8_t *d = warp.values<uint8_t>(refs[i]);
    const uint8_t *a = copy.data() + i * 8 * kLanes;
    forLanes(mask, [=](unsigned lane) { std::memcpy(d + lane * bytes, a + lane * stride, bytes); });
  }
}

} // namespace

bool fp8emu::decodeSpecialMove(Decoder &decoder, Type type) {
  const Operand &operand = decoder.operand(1);
  if (operand.kind != Operand::Kind::Special)
    return false;
  if (const CounterRegister *counter = findCounter(operand.text)) {
    decodeCounter(decoder, *counter, type);
    return true;
  }
  // Parts of %tid and the like have 16 bits in old versions of PTX.
  if (operand.text.find('.') == std::string::npos || !takesRegister(type, Type::U16))
    return false;
  decoder.op().d = decoder.destination(0, type);
  decoder.op().a = decoder.source(1, Type::U32);
  decoder.op().handler = &unaryLanes<uint16_t, uint32_t, Narrow>;
  return true;
}

void fp8emu::decodeVectorMove(Decoder &decoder, Type type, unsigned width) {
  const Operand &to = decoder.operand(0), &from = decoder.operand(1);
  if (ptx::byteSize(type) == 1 || ptx::byteSize(type) == 16)
    decoder.fail("the registers of a vector have 16, 32 or 64 bits");
  const bool isSpecial = from.kind == Operand::Kind::Special;
  if (to.kind != Operand::Kind::Vector || to.parts.size() != width)
    decoder.fail(to, std::to_string(width) + " registers in braces are expected");
  if (isSpecial ? width != 4 : from.kind != Operand::Kind::Vector || from.parts.size() != width)
    decoder.fail(from,
                 std::to_string(width) + " registers in braces are expected, or %tid and the like of four");
  std::vector<Ref> refs, sources;
  for (unsigned i = 0; i < width; ++i) {
    refs.push_back(decoder.destination(to.parts[i], type));
    Operand part = isSpecial ? from : from.parts[i];
    if (isSpecial)
      part.text += std::string(".") + "xyzw"[i];
    sources.push_back(decoder.source(part, isSpecial && ptx::byteSize(type) == 2 ? Type::U32 : type));
  }
  refs.insert(refs.end(), sources.begin(), sources.end());
  Op &op = decoder.op();
  decoder.list(refs);
  op.small = uint16_t(laneBytes(type));
  op.flags = isSpecial ? 4 : uint8_t(op.small);
  op.handler = &moveVector;
}
