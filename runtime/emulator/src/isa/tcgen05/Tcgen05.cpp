// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tcgen05: what its instructions share, and telling them apart.

#include "Tcgen05.h"

#include "exec/Launch.h"
#include "isa/Families.h"

#include <cstring>

using namespace fp8emu;
using ptx::Operand;

TensorOperand fp8emu::tensorOperand(Decoder &decoder, const Operand &operand) {
  AddressOperand address = decoder.address(operand);
  if (!address.base)
    return {decoder.constant(uint64_t(address.offset), 4), 0};
  if (address.baseBytes != 4)
    decoder.fail(operand, "an address of tensor memory is 32 bits wide");
  return {address.base, address.offset};
}

bool fp8emu::takePair(Decoder &decoder) { return decoder.needOneOf({"cta_group::1", "cta_group::2"}) == 1; }

Block &fp8emu::peerOf(Block &block) { return *block.cluster().blocks()[block.rank() ^ 1]; }

void fp8emu::checkGroup(Warp &warp, bool pair, Mask mask) {
  Block &block = warp.block();
  unsigned wanted = pair ? 2 : 1, &group = block.tensorMemory().group;
  if (group && group != wanted)
    warp.fault(FaultKind::IllegalOperand,
               ".cta_group::" + std::to_string(wanted) +
                   " is named, the block's first tcgen05 instruction has ::" + std::to_string(group) +
                   ": all must have the same",
               mask);
  group = wanted;
  if (!pair)
    return;
  if ((block.rank() ^ 1) >= block.cluster().blocks().size())
    warp.fault(FaultKind::IllegalOperand, "the cluster has no other block for a pair", mask);
}

void fp8emu::checkPeer(Warp &warp, bool pair, Mask mask) {
  checkGroup(warp, pair, mask);
  if (pair && peerOf(warp.block()).done())
    warp.fault(FaultKind::IllegalOperand, "the other block of the pair has ended", mask);
}

std::vector<Block *> fp8emu::tensorBlocks(Warp &warp, bool pair) {
  Block &block = warp.block();
  if (!pair)
    return {&block};
  auto &all = block.cluster().blocks();
  return {all[block.rank() & ~1U].get(), all[block.rank() | 1U].get()};
}

uint32_t fp8emu::sameInAll(Warp &warp, const uint32_t *values, Mask mask, const char *what) {
  forLanes(mask, [&](unsigned lane) {
    if (values[lane] != values[0])
      warp.fault(FaultKind::IllegalOperand, std::string("lanes name different ") + what, Mask(1) << lane);
  });
  return values[0];
}

std::string fp8emu::wrongWith(const TensorMemory &memory, const TensorRange &range) {
  if (range.lane + range.lanes > kTensorLanes || range.column + range.columns > kTensorColumns)
    return range.text() + " are not within the 128 lanes and 512 columns of tensor memory";
  if (!memory.isAllocated(range.column, range.columns))
    return range.text() + " are not all allocated";
  return "";
}

TensorOperation::TensorOperation(Warp &warp, unsigned lane, bool pair)
    : blocks(tensorBlocks(warp, pair)), checks(warp.block().launch().settings().checks),
      agent(check::Agent::inGroup(warp, lane, check::GroupKind::Tensor, check::Proxy::Async)),
      memory(warp.block().tensorMemory()), number(memory.issue(warp.index() * kLanes + lane)) {
  warp.locate(origin, Mask(1) << lane);
}

bool TensorOperation::step() {
  if (!hasRead) {
    read();
    hasRead = true;
    return false;
  }
  write();
  memory.finish(number);
  return true;
}

void TensorOperation::willRead(const TensorRange &range) {
  for (Block *block : blocks) {
    needs(block->tensorMemory(), range);
    agent.readsTensor(*block, range);
  }
}

void TensorOperation::willWrite(const TensorRange &range) {
  for (Block *block : blocks) {
    needs(block->tensorMemory(), range);
    agent.writesTensor(*block, range);
  }
}

void TensorOperation::willRead(Block &block, uint32_t address, unsigned bytes) {
  shared(block, address, bytes);
  agent.reads({&block, address}, bytes);
}

void TensorOperation::fail(FaultKind kind, const std::string &message) const {
  Fault fault = origin;
  fault.kind = kind;
  fault.message = message;
  throw fault;
}

void TensorOperation::needs(const TensorMemory &where, const TensorRange &range) const {
  if (std::string wrong = wrongWith(where, range); !wrong.empty())
    fail(FaultKind::OutOfBounds, wrong);
}

const uint8_t *TensorOperation::shared(Block &block, uint32_t address, unsigned bytes) const {
  if (address > block.sharedBytes() || block.sharedBytes() - address < bytes)
    fail(FaultKind::OutOfBounds, std::to_string(bytes) + " bytes of a matrix lie at shared address " +
                                     std::to_string(address) + ", the block has " +
                                     std::to_string(block.sharedBytes()) + " bytes of shared memory");
  const uint8_t *written = block.sharedInitialized() + address;
  if (const void *first = checks ? std::memchr(written, 0, bytes) : nullptr) {
    Fault found = origin;
    found.kind = FaultKind::UninitializedRead;
    found.message = "a matrix lies at shared address " + std::to_string(address) + ", byte " +
                    std::to_string(static_cast<const uint8_t *>(first) - written) +
                    " there was never written";
    block.launch().find(found);
  }
  return block.shared() + address;
}

/// Fences change no value: checks are told of the order that they make. op.flags: after
/// the instruction that orders threads, not before.
static void fence(Warp &warp, const Op &op, Mask mask) {
  op.flags ? check::fenceTensorAfter(warp, mask) : check::fenceTensorBefore(warp, mask);
}

static void decodeTensorFence(Decoder &decoder, bool isAfter) {
  decoder.expectOperands(0);
  decoder.op().flags = isAfter;
  decoder.op().handler = &fence;
}

static void decodeTensor(Decoder &decoder) {
  int which = decoder.needOneOf({"alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "wait::ld",
                                 "wait::st", "cp", "shift", "commit", "mma", "fence::before_thread_sync",
                                 "fence::after_thread_sync"});
  switch (which) {
  case 0:
    return decodeTensorAllocate(decoder);
  case 1:
    return decodeTensorDeallocate(decoder);
  case 2:
    return decodeTensorRelinquish(decoder);
  case 3:
    return decodeTensorLoad(decoder);
  case 4:
    return decodeTensorStore(decoder);
  case 5:
    return decodeTensorWait(decoder, /*loads=*/true);
  case 6:
    return decodeTensorWait(decoder, /*loads=*/false);
  case 7:
    return decodeTensorCopy(decoder);
  case 8:
    return decodeTensorShift(decoder);
  case 9:
    return decodeTensorCommit(decoder);
  case 10:
    return decodeTensorProduct(decoder);
  default:
    return decodeTensorFence(decoder, /*isAfter=*/which == 12);
  }
}

FamilyList fp8emu::tensorInstructions() { return {{"tcgen05", decodeTensor}}; }
