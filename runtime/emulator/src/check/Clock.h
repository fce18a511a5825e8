// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks: what has happened before, of the threads of all blocks and of the
// asynchronous operations that they started. Threads that know the same share one
// clock; it is copied when one of them learns more.

#ifndef FP8EMU_CHECK_CLOCK_H
#define FP8EMU_CHECK_CLOCK_H

#include "exec/Op.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace fp8emu::check {

/// What is known of one block. Its time counts up at every release of one of its
/// threads; what a thread does carries the time of its last one (its epoch), so that
/// all it did until a release is what has that epoch or less.
struct Segment {
  /// Known of each thread of the block, at least: a barrier of all threads leaves
  /// nothing else.
  uint32_t floor = 0;
  std::vector<uint32_t> threads;
  /// Of its queues of operations (Agent.h): how many of each are known to be over.
  std::vector<uint32_t> queues;

  uint32_t thread(unsigned index) const {
    return index < threads.size() ? std::max(floor, threads[index]) : floor;
  }
  uint32_t queue(unsigned index) const { return index < queues.size() ? queues[index] : 0; }
  bool covers(const Segment &other) const;
  void join(const Segment &other);
};

/// What is known of all blocks, by their number in the grid, in order.
struct Clock {
  std::vector<std::pair<uint32_t, std::shared_ptr<Segment>>> blocks;

  const Segment *find(uint32_t block) const;
  bool covers(const Clock &other) const;
};

/// Shared; changed by the functions below only, which copy what others hold too.
/// Null: nothing is known.
using ClockRef = std::shared_ptr<Clock>;

void join(ClockRef &into, const ClockRef &more);
/// The segment of a block, for changing it.
Segment &change(ClockRef &clock, uint32_t block);
/// Everything these threads did until `epoch`; the first is lane 0 of a warp.
void addThreads(ClockRef &clock, uint32_t block, unsigned first, Mask lanes, uint32_t epoch);
void addQueue(ClockRef &clock, uint32_t block, unsigned queue, uint32_t count);

/// What a thread knows. Of it, what is visible to operations of the async proxy that it
/// starts and to uses of tensor maps (PTX ISA 8.6). Of operations on tensor memory, those
/// that fences have made others know (9.7.16.6). What its next fence.sc will make it know:
/// what is before those fences that are before it in the order of execution (8.9.2).
struct Knowledge {
  ClockRef generic, async, maps, tensor, sequenced;

  void join(const Knowledge &more) {
    check::join(generic, more.generic);
    check::join(async, more.async);
    check::join(maps, more.maps);
    check::join(tensor, more.tensor);
    check::join(sequenced, more.sequenced);
  }
  bool operator==(const Knowledge &other) const {
    return generic == other.generic && async == other.async && maps == other.maps && tensor == other.tensor &&
           sequenced == other.sequenced;
  }
};

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_CLOCK_H
