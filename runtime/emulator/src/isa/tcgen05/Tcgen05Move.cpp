// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tcgen05.ld, .st and .wait (PTX ISA 9.7.16.8): between tensor memory and registers.
//
// A load is complete when the instruction is, as later instructions that read its
// registers must see them anyway; to the checks it is over when tcgen05.wait::ld is. A
// store goes on until some moment before tcgen05.wait::st ends.

#include "Tcgen05.h"

#include "exec/Launch.h"
#include "isa/matrix/Products.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// The shapes of PTX ISA 9.7.16.2.3.1: how many lanes of tensor memory, and how a
/// repetition of it lies in the registers.
enum class MoveShape : uint8_t { Lanes32, Bits64, Bits128, Bits256, Two };

struct Move {
  TensorOperand address;
  MoveShape shape;
  /// Two elements of 16 bits in a register, from neighbouring columns.
  bool halves;
  /// From the first half to the second one (.16x32bx2), in columns.
  unsigned split = 0;
  std::vector<Ref> registers;

  unsigned lanes() const { return shape == MoveShape::Lanes32 ? 32 : 16; }
  /// Columns that one half of .16x32bx2, or all of another shape, reaches.
  unsigned columns() const {
    unsigned each = shape == MoveShape::Lanes32 || shape == MoveShape::Two ? 1 : 2;
    return unsigned(registers.size()) * each * (halves ? 2 : 1);
  }
};

struct Cell {
  unsigned lane, column;
};

/// Where register `i` of a lane lies in the shape (figures 183 to 187); columns are of
/// 32 bits of a register.
Cell placeOf(MoveShape shape, unsigned lane, unsigned i) {
  switch (shape) {
  case MoveShape::Lanes32:
    return {lane, i};
  case MoveShape::Bits64:
    return {lane / 4 + lane % 2 * 8, i * 2 + lane / 2 % 2};
  case MoveShape::Bits128:
    return {lane / 4 + i % 2 * 8, i / 2 * 4 + lane % 4};
  case MoveShape::Bits256:
    return {lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
  case MoveShape::Two:
    return {lane % 16, i};
  }
  return {0, 0};
}

/// Calls `f(register, lane, cell)` for all of the warp.
template <class F>
void forCells(const Move &move, uint32_t address, F f) {
  for (unsigned i = 0; i < move.registers.size(); ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      Cell cell = placeOf(move.shape, lane, i);
      cell.column *= move.halves ? 2 : 1;
      cell.column += tensorColumn(address) + (move.shape == MoveShape::Two && lane >= 16 ? move.split : 0);
      cell.lane += tensorLane(address);
      f(i, lane, cell);
    }
}

std::vector<TensorRange> rangesOf(const Move &move, uint32_t address) {
  TensorRange first{tensorLane(address), tensorColumn(address), move.lanes(), move.columns()};
  if (move.shape != MoveShape::Two)
    return {first};
  TensorRange second = first;
  second.column += move.split;
  return {first, second};
}

/// A warp reaches the lanes of its quarter alone (PTX ISA 9.7.16.8.1).
void checkLanes(Warp &warp, const Move &move, uint32_t address, Mask mask) {
  unsigned lane = tensorLane(address), quarter = warp.index() % 4;
  if (lane / 32 != quarter || lane % move.lanes())
    warp.fault(FaultKind::IllegalOperand,
               "lane " + std::to_string(lane) + " of tensor memory is named; warp " +
                   std::to_string(warp.index()) + " reaches lanes " + std::to_string(quarter * 32) + " to " +
                   std::to_string(quarter * 32 + 31) +
                   (move.lanes() == 16 ? ", from the first or the 16th on" : ", from the first on"),
               mask);
}

/// The address, checked.
uint32_t begin(Warp &warp, const Move &move, Mask mask) {
  uint32_t addresses[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    addresses[lane] = move.address.address(warp, lane);
  uint32_t address = sameInAll(warp, addresses, mask, "addresses");
  checkLanes(warp, move, address, mask);
  const TensorMemory &memory = warp.block().tensorMemory();
  for (const TensorRange &range : rangesOf(move, address))
    if (std::string wrong = wrongWith(memory, range); !wrong.empty())
      warp.fault(FaultKind::OutOfBounds, wrong, mask);
  return address;
}

void load(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  const auto &move = *static_cast<const Move *>(op.payload);
  uint32_t address = begin(warp, move, mask);
  auto agent = check::Agent::inGroup(warp, 0, check::GroupKind::TensorLoads, check::Proxy::Generic);
  for (const TensorRange &range : rangesOf(move, address))
    agent.readsTensor(warp.block(), range);
  TensorMemory &memory = warp.block().tensorMemory();
  forCells(move, address, [&](unsigned i, unsigned lane, Cell cell) {
    uint32_t value = memory.cell(cell.lane, cell.column);
    if (move.halves)
      value = (value & 0xFFFF) | memory.cell(cell.lane, cell.column + 1) << 16;
    warp.values<uint32_t>(move.registers[i])[lane] = value;
  });
}

/// The writes of a tcgen05.st.
class TensorStore : public Operation {
public:
  struct Value {
    uint32_t *cell;
    uint32_t bits;
  };
  TensorStore(TensorMemory &memory, unsigned warp) : memory(memory), warp(warp) { memory.storeStarts(warp); }
  bool step() override {
    for (const Value &value : values)
      *value.cell = value.bits;
    memory.storeEnds(warp);
    return true;
  }
  std::vector<Value> values;

private:
  TensorMemory &memory;
  unsigned warp;
};

void store(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  const auto &move = *static_cast<const Move *>(op.payload);
  uint32_t address = begin(warp, move, mask);
  auto agent = check::Agent::inGroup(warp, 0, check::GroupKind::TensorStores, check::Proxy::Generic);
  for (const TensorRange &range : rangesOf(move, address))
    agent.writesTensor(warp.block(), range);
  TensorMemory &memory = warp.block().tensorMemory();
  auto operation = std::make_unique<TensorStore>(memory, warp.index());
  warp.locate(operation->origin, mask);
  forCells(move, address, [&](unsigned i, unsigned lane, Cell cell) {
    uint32_t value = warp.values<uint32_t>(move.registers[i])[lane];
    uint32_t *at = &memory.cell(cell.lane, cell.column);
    operation->values.push_back({at, move.halves ? value & 0xFFFF : value});
    if (move.halves)
      operation->values.push_back({at + 1, value >> 16});
  });
  warp.block().cluster().operations().start(std::move(operation));
}

void waitForLoads(Warp &warp, const Op &, Mask mask) {
  if (wholeWarp(warp, mask))
    check::waitedForGroups(warp, mask, check::GroupKind::TensorLoads, check::kEverything);
}

void waitForStores(Warp &warp, const Op &, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  if (warp.block().tensorMemory().storesInFlight(warp.index()))
    return warp.wait(mask, Wait::Async, 0, 0, /*repeat=*/true);
  check::waitedForGroups(warp, mask, check::GroupKind::TensorStores, check::kEverything);
}

MoveShape takeMoveShape(Decoder &decoder) {
  return MoveShape(decoder.needOneOf({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"}));
}

/// Registers of a lane by shape and repetition (tables 49 and 50).
unsigned takeRegisterCount(Decoder &decoder, MoveShape shape) {
  unsigned times = 1U << decoder.needOneOf({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  unsigned count = times * (shape == MoveShape::Bits256 ? 4 : shape == MoveShape::Bits128 ? 2 : 1);
  if (count > 128)
    decoder.fail(".x" + std::to_string(times) + " is too many for this shape: 128 registers are the most");
  return count;
}

std::vector<Ref> registersOf(Decoder &decoder, const Operand &operand, unsigned count, bool isLoad) {
  std::vector<Ref> refs;
  auto add = [&](const Operand &part) {
    refs.push_back(isLoad ? decoder.destination(part, Type::B32) : decoder.source(part, Type::B32));
  };
  if (operand.kind == Operand::Kind::Vector)
    for (const Operand &part : operand.parts)
      add(part);
  else
    add(operand);
  if (refs.size() != count)
    decoder.fail(operand,
                 std::to_string(count) + " registers are expected, there are " + std::to_string(refs.size()));
  return refs;
}

void decodeMove(Decoder &decoder, bool isLoad) {
  decoder.needOneOf({"sync"});
  decoder.needOneOf({"aligned"});
  auto move = std::make_shared<Move>();
  move->shape = takeMoveShape(decoder);
  unsigned count = takeRegisterCount(decoder, move->shape);
  move->halves = decoder.take(isLoad ? "pack::16b" : "unpack::16b");
  decoder.needOneOf({"b32"});
  bool two = move->shape == MoveShape::Two;
  decoder.expectOperands(two ? 3 : 2);
  unsigned address = isLoad ? 1 : 0;
  move->address = tensorOperand(decoder, decoder.operand(address));
  if (two) {
    int64_t split = decoder.integer(decoder.operand(address + 1));
    if (split < 0 || split > kTensorColumns)
      decoder.fail(decoder.operand(address + 1), "the second half lies outside of tensor memory");
    move->split = unsigned(split);
  }
  move->registers = registersOf(decoder, decoder.operand(isLoad ? 0 : two ? 2 : 1), count, isLoad);
  decoder.keep<Move>(move);
  decoder.op().handler = isLoad ? &load : &store;
}

} // namespace

void fp8emu::decodeTensorLoad(Decoder &decoder) { decodeMove(decoder, /*isLoad=*/true); }
void fp8emu::decodeTensorStore(Decoder &decoder) { decodeMove(decoder, /*isLoad=*/false); }

void fp8emu::decodeTensorWait(Decoder &decoder, bool loads) {
  decoder.needOneOf({"sync"});
  decoder.needOneOf({"aligned"});
  decoder.expectOperands(0);
  decoder.op().handler = loads ? &waitForLoads : &waitForStores;
}
