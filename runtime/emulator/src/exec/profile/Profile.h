// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts of what a launch did, by instruction: what can be said of performance without a GPU.
// A launch without a profile pays for the test of a pointer at each access to memory, and
// for nothing else.

#ifndef FP8EMU_EXEC_PROFILE_PROFILE_H
#define FP8EMU_EXEC_PROFILE_PROFILE_H

#include "../Access.h"
#include "../Op.h"

#include "fp8emu/Profile.h"

#include <cstdint>
#include <vector>

namespace fp8emu {

class Profile {
public:
  explicit Profile(size_t ops = 0) : counts(ops) {}

  void count(uint32_t pc, Mask mask) {
    counts[pc].warpInstructions += 1;
    counts[pc].threadInstructions += unsigned(__builtin_popcount(mask));
  }
  /// One access of a warp to `space`, which is not Generic: `bytes` at each address.
  void access(uint32_t pc, MemorySpace space, Mask mask, const uint64_t *addresses, unsigned bytes,
              AccessKind kind);
  /// Bytes that a copy of a block of memory moves, without the lanes of a warp.
  void copy(uint32_t pc, MemorySpace space, uint64_t address, uint64_t bytes, AccessKind kind);
  void tensor(uint32_t pc, uint64_t m, uint64_t n, uint64_t k) {
    counts[pc].tensorOperations += 2 * m * n * k;
  }
  void wait(uint32_t pc) { counts[pc].waits += 1; }

  void add(const Profile &other);
  /// The counts of each op of the program.
  const std::vector<Counts> &ops() const { return counts; }

private:
  std::vector<Counts> counts;
};

/// Counts a product of tensor cores that an instruction of the warp makes or has started,
/// where the launch has a profile.
void countProduct(Warp &warp, uint64_t m, uint64_t n, uint64_t k);

/// Sectors that these accesses touch.
unsigned countSectors(Mask mask, const uint64_t *addresses, unsigned bytes);
/// The passes that an access needs beyond the least. Shared memory serves 128 bytes a pass: all
/// lanes together for accesses of up to 4 bytes, half of them for 8 bytes, a quarter for 16.
unsigned countBankConflicts(Mask mask, const uint64_t *addresses, unsigned bytes);

} // namespace fp8emu

#endif // FP8EMU_EXEC_PROFILE_PROFILE_H
