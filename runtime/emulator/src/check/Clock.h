// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks: which actions of the threads of all blocks, and which of their asynchronous
// operations, have happened before. Threads that know the same share one clock, which is
// copied when one of them learns more.

#ifndef FP8EMU_CHECK_CLOCK_H
#define FP8EMU_CHECK_CLOCK_H

#include "exec/Op.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace fp8emu::check {

/// The knowledge of one block. The block's time counts up at every release of one of its
/// threads. A thread's access carries the time of the thread's last release, its epoch: all
/// that the thread did until a release has that epoch or a lower one.
struct Segment {
  /// The epoch that is known of every thread of the block, at least. After a barrier of all
  /// threads there is nothing else to know.
  uint32_t floor = 0;
  std::vector<uint32_t> threads;
  /// For each queue of operations (Agent.h), how many operations are known to be over.
  std::vector<uint32_t> queues;

  uint32_t thread(unsigned index) const {
    return index < threads.size() ? std::max(floor, threads[index]) : floor;
  }
  uint32_t queue(unsigned index) const { return index < queues.size() ? queues[index] : 0; }
  bool covers(const Segment &other) const;
  void join(const Segment &other);
};

/// The knowledge of all blocks, by their number in the grid, in order.
struct Clock {
  std::vector<std::pair<uint32_t, std::shared_ptr<Segment>>> blocks;

  const Segment *find(uint32_t block) const;
  bool covers(const Clock &other) const;
};

/// A shared clock. Only the functions below change it; they copy what others hold too. Null:
/// nothing is known.
using ClockRef = std::shared_ptr<Clock>;

void join(ClockRef &into, const ClockRef &more);
/// The segment of a block, for changing it.
Segment &change(ClockRef &clock, uint32_t block);
/// Adds everything that these threads did until `epoch`; `first` is lane 0 of a warp.
void addThreads(ClockRef &clock, uint32_t block, unsigned first, Mask lanes, uint32_t epoch);
void addQueue(ClockRef &clock, uint32_t block, unsigned queue, uint32_t count);

/// A thread's knowledge of accesses and operations.
///   generic    all that are ordered before the thread's next accesses;
///   async      those of them that async-proxy operations started by the thread see, and
///   maps       those that uses of tensor maps see (PTX ISA 8.6);
///   tensor     operations on tensor memory that fences have handed on (9.7.16.6);
///   completed  operations on tensor memory that are over, handed on as other accesses are;
///   sequenced  those that the thread's next fence.sc will add to generic: all ordered before
///              the fences that precede that one in the order of execution (8.9.2).
struct Knowledge {
  ClockRef generic, async, maps, tensor, completed, sequenced;

  void join(const Knowledge &more) {
    check::join(generic, more.generic);
    check::join(async, more.async);
    check::join(maps, more.maps);
    check::join(tensor, more.tensor);
    check::join(completed, more.completed);
    check::join(sequenced, more.sequenced);
  }
  bool operator==(const Knowledge &other) const {
    return generic == other.generic && async == other.async && maps == other.maps && tensor == other.tensor &&
           completed == other.completed && sequenced == other.sequenced;
  }
  /// Adds what an acquiring instruction learns: it orders what fences have handed on, too.
  void acquire(const Knowledge &more) {
    join(more);
    check::join(completed, more.tensor);
  }
};

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_CLOCK_H
