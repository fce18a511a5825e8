// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mbarrier objects (PTX ISA 9.7.13.15): 64 bits in shared memory that count arrivals
// and bytes of asynchronous copies. Their state lies in those bits, as on hardware, in a
// layout of this emulator. Warps know themselves what they wait for (Warp.h).

#ifndef FP8EMU_ASYNC_MBARRIER_H
#define FP8EMU_ASYNC_MBARRIER_H

#include <cstdint>
#include <string>

namespace fp8emu {

class Block;

/// The meaning of the 64 bits. Parity and counts are those of the current, incomplete
/// phase.
struct MbarrierState {
  bool parity = false;
  /// Arrivals still to come, and how many the next phase begins with.
  uint32_t pending = 0, expected = 0;
  /// Bytes that are expected, less those that have arrived: may be negative for a while.
  int32_t bytes = 0;

  static MbarrierState decode(uint64_t bits);
  uint64_t encode() const;
};

constexpr uint32_t kMbarrierMaxCount = (1u << 20) - 1;
constexpr int32_t kMbarrierMaxBytes = (1 << 20) - 1;

/// An mbarrier at an offset of a block's shared memory. Functions throw a Fault without a
/// place where the object does not allow what is asked.
class Mbarrier {
public:
  Mbarrier(Block &block, uint32_t offset) : block(block), offset(offset) {}

  void initialize(uint32_t count);
  void invalidate();
  /// Arrives `count` times and returns the state before, as a token for `tokenIsComplete`.
  /// With `drop`, later phases expect `count` arrivals fewer.
  uint64_t arrive(uint32_t count, bool drop = false);
  Block &owner() const { return block; }
  uint32_t place() const { return offset; }
  void expectBytes(uint32_t bytes);
  void completeBytes(uint32_t bytes);
  /// Raises the number of arrivals that the current phase waits for, by one
  /// (cp.async.mbarrier.arrive without .noinc).
  void incrementPending();

  /// Whether the token's phase has completed; whether the phase with that parity before the
  /// current one has.
  bool tokenIsComplete(uint64_t token) const;
  bool parityIsComplete(bool parity) const;
  static uint32_t pendingCount(uint64_t token) { return MbarrierState::decode(token).pending; }

private:
  MbarrierState load() const;
  void store(const MbarrierState &state);
  /// Stores the state. Where nothing is missing any more, begins the next phase and wakes the
  /// threads that wait.
  void settle(MbarrierState state);
  std::string name() const;

  Block &block;
  uint32_t offset;
};

} // namespace fp8emu

#endif // FP8EMU_ASYNC_MBARRIER_H
