// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor memory of a block (PTX ISA 9.7.16.1): 128 lanes by 512 columns of 32 bits, what
// of it is allocated, and which operations are under way on it.

#ifndef FP8EMU_MEMORY_TENSORMEMORY_H
#define FP8EMU_MEMORY_TENSORMEMORY_H

#include "fp8emu/Types.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fp8emu {

constexpr unsigned kTensorLanes = 128, kTensorColumns = 512, kTensorUnit = 32;

/// Lanes and columns of tensor memory.
struct TensorRange {
  unsigned lane = 0, column = 0, lanes = 0, columns = 0;

  bool overlaps(const TensorRange &o) const {
    return lane < o.lane + o.lanes && o.lane < lane + lanes && column < o.column + o.columns &&
           o.column < column + columns;
  }
  /// As in "lanes 0 to 31 of columns 64 to 127".
  std::string text() const;
};

/// An address: the lane in the upper half (PTX ISA 9.7.16.1.1).
inline unsigned tensorLane(uint32_t address) { return address >> 16; }
inline unsigned tensorColumn(uint32_t address) { return address & 0xFFFF; }

/// A warp's part in what both blocks of a pair do together (tcgen05.alloc and .dealloc
/// with .cta_group::2).
struct PairRequest {
  /// The warp that asks; null while none does.
  const void *warp = nullptr;
  uint32_t columns = 0, address = 0;
  /// Whether the other block's warp has done it and this one has not seen that yet.
  bool granted = false;
};

class TensorMemory {
public:
  TensorMemory();

  uint32_t &cell(unsigned lane, unsigned column) { return cells[lane * kTensorColumns + column]; }

  // Allocation.

  bool isFree(unsigned first, unsigned columns) const;
  /// Marks columns as allocated by the instruction at `where`, and fills them with NaNs of
  /// every format: PTX leaves open what they hold.
  void allocate(unsigned first, unsigned columns, const Fault &where);
  /// Gives columns back. False where no allocation of that many columns begins there.
  bool deallocate(unsigned first, unsigned columns);
  bool isAllocated(unsigned first, unsigned columns) const;
  /// Throws a Fault where an allocation is left.
  void checkLeak() const;

  /// The number of columns that was asked for last: the next may not be larger.
  unsigned leastAllocation = kTensorColumns;
  bool relinquished = false;
  /// The .cta_group of the first instruction, which must be that of all; 0 for none yet.
  unsigned group = 0;
  PairRequest allocation, deallocation;

  // tcgen05.mma, .cp and .shift: those of a block run in the order of issue.

  /// Counts an operation that a thread of the block starts, and returns its number.
  uint64_t issue(unsigned thread);
  bool isNext(uint64_t number) const { return number == finished; }
  void finish(uint64_t number) { finished = number + 1; }
  /// How many operations must have finished so that all of the thread's have.
  uint64_t issuedBy(unsigned thread) const;
  bool haveFinished(uint64_t count) const { return finished >= count; }

  // tcgen05.st, by warp.

  void storeStarts(unsigned warp) { ++stores[warp]; }
  void storeEnds(unsigned warp) { --stores[warp]; }
  bool storesInFlight(unsigned warp) const;

private:
  std::unique_ptr<uint32_t[]> cells;
  struct Allocation {
    unsigned columns;
    Fault where;
  };
  std::map<unsigned, Allocation> allocations;
  uint64_t issued = 0, finished = 0;
  std::map<unsigned, uint64_t> lastOfThread;
  std::map<unsigned, unsigned> stores;
};

} // namespace fp8emu

#endif // FP8EMU_MEMORY_TENSORMEMORY_H
