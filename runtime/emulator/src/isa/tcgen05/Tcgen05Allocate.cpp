// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tcgen05.alloc, .dealloc and .relinquish_alloc_permit (PTX ISA 9.7.16.7).

#include "Tcgen05.h"

#include "check/Races.h"
#include "isa/matrix/Products.h"
#include "isa/memory/Memory.h"

#include <cstring>
#include <optional>

using namespace fp8emu;
using ptx::Type;

namespace {

enum Flags : uint8_t { Pair = 1 };

/// op.b is the number of columns.
uint32_t columnsOf(Warp &warp, const Op &op, Mask mask) {
  uint32_t columns = sameInAll(warp, warp.values<uint32_t>(op.b), mask, "numbers of columns");
  if (columns < kTensorUnit || columns > kTensorColumns || (columns & (columns - 1)))
    warp.fault(FaultKind::IllegalOperand,
               std::to_string(columns) + " columns are named, it must be a power of two from 32 to 512",
               mask);
  return columns;
}

void checkPermit(Warp &warp, uint32_t columns, Mask mask) {
  TensorMemory &memory = warp.block().tensorMemory();
  if (memory.relinquished)
    warp.fault(FaultKind::IllegalOperand, "the block has given up the right to allocate tensor memory", mask);
  if (columns > memory.leastAllocation)
    warp.fault(FaultKind::IllegalOperand,
               std::to_string(columns) + " columns are to be allocated, the block's last allocation was of " +
                   std::to_string(memory.leastAllocation) + ": the number may not increase",
               mask);
}

/// The first columns that are free in all of the blocks.
std::optional<unsigned> findFree(const std::vector<Block *> &blocks, uint32_t columns) {
  for (unsigned first = 0; first + columns <= kTensorColumns; first += kTensorUnit) {
    bool free = true;
    for (Block *block : blocks)
      free &= block->tensorMemory().isFree(first, columns);
    if (free)
      return first;
  }
  return std::nullopt;
}

void allocateIn(Warp &warp, const std::vector<Block *> &blocks, unsigned first, uint32_t columns) {
  for (Block *block : blocks) {
    Fault where;
    warp.locate(where, 0);
    where.block = block->index();
    block->tensorMemory().allocate(first, columns, where);
    if (check::BlockRaces *races = check::racesOf(*block))
      races->tensor.forget(first, columns);
    block->tensorMemory().leastAllocation = columns;
  }
}

void waitForMemory(Warp &warp, Mask mask) { warp.wait(mask, Wait::TensorMemory, 0, 0, /*repeat=*/true); }

void wakeBlocks(const std::vector<Block *> &blocks) {
  for (Block *block : blocks)
    block->wake(Wait::TensorMemory, 0);
  blocks[0]->cluster().noteProgress();
}

using Request = PairRequest TensorMemory::*;

/// Both blocks of a pair ask for the same, each with one warp: the second of them does
/// it by `act`, whose result, if there is one, both get. Nothing where the warp must
/// wait; it waits then.
template <class Act>
std::optional<uint32_t> together(Warp &warp, Mask mask, Request kind, uint32_t columns, uint32_t address,
                                 Act act) {
  PairRequest &own = warp.block().tensorMemory().*kind, &other = peerOf(warp.block()).tensorMemory().*kind;
  std::vector<Block *> blocks = tensorBlocks(warp, /*pair=*/true);
  if (own.warp == &warp && own.granted) {
    uint32_t result = own.address;
    own = PairRequest();
    wakeBlocks(blocks);
    return result;
  }
  checkPeer(warp, /*pair=*/true, mask);
  if (!own.warp)
    own = {&warp, columns, address, false};
  std::optional<uint32_t> result;
  if (own.warp == &warp && other.warp && !other.granted) {
    if (other.columns != columns || other.address != address)
      warp.fault(FaultKind::IllegalOperand,
                 std::to_string(columns) + " columns are named here, " + std::to_string(other.columns) +
                     " in the other block of the pair, or at another address",
                 mask);
    result = act(blocks);
  }
  if (!result) {
    waitForMemory(warp, mask);
    return std::nullopt;
  }
  own = PairRequest();
  other.granted = true;
  other.address = *result;
  wakeBlocks(blocks);
  return result;
}

void allocate(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  checkGroup(warp, op.flags & Pair, mask);
  uint32_t columns = columnsOf(warp, op, mask);
  const TensorMemory &memory = warp.block().tensorMemory();
  // An allocation that the pair was granted already is not checked again.
  if (!(memory.allocation.warp == &warp && memory.allocation.granted))
    checkPermit(warp, columns, mask);
  auto act = [&](const std::vector<Block *> &blocks) -> std::optional<uint32_t> {
    std::optional<unsigned> first = findFree(blocks, columns);
    if (first)
      allocateIn(warp, blocks, *first, columns);
    return first;
  };
  std::optional<uint32_t> address;
  if (op.flags & Pair) {
    address = together(warp, mask, &TensorMemory::allocation, columns, 0, act);
    if (!address)
      return;
  } else if (!(address = act({&warp.block()}))) {
    return waitForMemory(warp, mask);
  }
  uint64_t addresses[kLanes];
  uint8_t *target[kLanes];
  laneAddresses(warp, op, mask, addresses);
  resolve(warp, spaceOf(op), 1, addresses, 4, AccessKind::Store, target);
  std::memcpy(target[0], &*address, 4);
}

void deallocateIn(Warp &warp, const std::vector<Block *> &blocks, uint32_t address, uint32_t columns,
                  Mask mask) {
  for (Block *block : blocks)
    if (tensorLane(address) || !block->tensorMemory().deallocate(tensorColumn(address), columns))
      warp.fault(FaultKind::IllegalOperand,
                 "no allocation of " + std::to_string(columns) +
                     " columns of tensor memory begins at address " + std::to_string(address),
                 mask);
  wakeBlocks(blocks);
}

void deallocate(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  checkGroup(warp, op.flags & Pair, mask);
  uint32_t columns = columnsOf(warp, op, mask);
  uint32_t address = sameInAll(warp, warp.values<uint32_t>(op.a), mask, "addresses");
  auto act = [&](const std::vector<Block *> &blocks) -> std::optional<uint32_t> {
    deallocateIn(warp, blocks, address, columns, mask);
    return address;
  };
  if (op.flags & Pair)
    together(warp, mask, &TensorMemory::deallocation, columns, address, act);
  else
    act({&warp.block()});
}

void relinquish(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  checkGroup(warp, op.flags & Pair, mask);
  warp.block().tensorMemory().relinquished = true;
}

/// .cta_group.sync.aligned
void takeCollective(Decoder &decoder) {
  decoder.op().flags = takePair(decoder) ? Pair : 0;
  decoder.needOneOf({"sync"});
  decoder.needOneOf({"aligned"});
}

} // namespace

void fp8emu::decodeTensorAllocate(Decoder &decoder) {
  takeCollective(decoder);
  MemorySpace space = takeSpace(decoder);
  decoder.needOneOf({"b32"});
  decoder.expectOperands(2);
  decodeAddress(decoder, decoder.operand(0), space);
  decoder.op().b = decoder.source(1, Type::U32);
  decoder.op().ordering = check::ordering::kAnyProxy;
  decoder.op().handler = &allocate;
}

void fp8emu::decodeTensorDeallocate(Decoder &decoder) {
  takeCollective(decoder);
  decoder.needOneOf({"b32"});
  decoder.expectOperands(2);
  decoder.op().a = decoder.source(0, Type::U32);
  decoder.op().b = decoder.source(1, Type::U32);
  decoder.op().handler = &deallocate;
}

void fp8emu::decodeTensorRelinquish(Decoder &decoder) {
  takeCollective(decoder);
  decoder.expectOperands(0);
  decoder.op().handler = &relinquish;
}
