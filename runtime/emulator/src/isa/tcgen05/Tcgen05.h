// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the instructions of tensor memory (tcgen05, PTX ISA 9.7.16):
// addresses, one block or a pair of them, operations that run in the order of issue.

#ifndef FP8EMU_ISA_TCGEN05_TCGEN05_H
#define FP8EMU_ISA_TCGEN05_TCGEN05_H

#include "check/Agent.h"
#include "exec/Block.h"
#include "isa/Decoder.h"

namespace fp8emu {

/// An address of tensor memory in brackets.
struct TensorOperand {
  Ref base;
  int64_t offset = 0;
  uint32_t address(const Warp &warp, unsigned lane) const {
    return uint32_t(warp.values<uint32_t>(base)[lane] + offset);
  }
};
TensorOperand tensorOperand(Decoder &decoder, const ptx::Operand &operand);

/// Takes .cta_group; whether it is ::2.
bool takePair(Decoder &decoder);
/// Faults where another instruction of the block named another .cta_group (PTX ISA
/// 9.7.16.10.9.1), or where it has no other block for a pair.
void checkGroup(Warp &warp, bool pair, Mask mask);
/// Faults where the other block of a pair has ended (PTX ISA 9.7.16.5).
void checkPeer(Warp &warp, bool pair, Mask mask);
/// The blocks of an operation, the even one of a pair first.
std::vector<Block *> tensorBlocks(Warp &warp, bool pair);
/// The other block of a pair (PTX ISA 9.7.16.5.2).
Block &peerOf(Block &block);

/// A value that must be the same in all lanes.
uint32_t sameInAll(Warp &warp, const uint32_t *values, Mask mask, const char *what);

/// The error in an access to these lanes and columns, in words; empty where there is none.
std::string wrongWith(const TensorMemory &memory, const TensorRange &range);

/// tcgen05.mma, .cp or .shift in flight.
class TensorOperation : public Operation {
public:
  TensorOperation(Warp &warp, unsigned lane, bool pair);
  bool ready() const override { return memory.isNext(number); }
  bool step() final;

protected:
  // Called when started: they say what will be read and written, and find what is wrong
  // with that. Tensor memory is that of all blocks.
  void willRead(const TensorRange &range);
  void willWrite(const TensorRange &range);
  void willRead(Block &block, uint32_t address, unsigned bytes);
  /// Reads shared memory.
  virtual void read() = 0;
  /// Does the rest.
  virtual void write() = 0;
  /// Throws a fault without a place, or, while the instruction is executed, with it.
  [[noreturn]] void fail(FaultKind kind, const std::string &message) const;
  void needs(const TensorMemory &where, const TensorRange &range) const;
  /// Shared memory that the operation reads; `address` as in a matrix descriptor.
  const uint8_t *shared(Block &block, uint32_t address, unsigned bytes) const;

  std::vector<Block *> blocks;
  bool checks;

private:
  check::Agent agent;
  TensorMemory &memory;
  uint64_t number;
  bool hasRead = false;
};

// Decoders, by what follows `tcgen05`; it is taken.
void decodeTensorAllocate(Decoder &decoder);
void decodeTensorDeallocate(Decoder &decoder);
void decodeTensorRelinquish(Decoder &decoder);
void decodeTensorLoad(Decoder &decoder);
void decodeTensorStore(Decoder &decoder);
void decodeTensorWait(Decoder &decoder, bool loads);
void decodeTensorCopy(Decoder &decoder);
void decodeTensorShift(Decoder &decoder);
void decodeTensorCommit(Decoder &decoder);
void decodeTensorProduct(Decoder &decoder);

} // namespace fp8emu

#endif // FP8EMU_ISA_TCGEN05_TCGEN05_H
