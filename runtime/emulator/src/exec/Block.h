// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block (CTA) with its warps, shared memory and barriers, and a cluster: one or several
// blocks that see each other's shared memory. Clusters are what is scheduled.

#ifndef FP8EMU_EXEC_BLOCK_H
#define FP8EMU_EXEC_BLOCK_H

#include "RegisterPool.h"
#include "Warp.h"

#include "memory/DeviceMemory.h"
#include "memory/TensorMemory.h"

#include <array>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace fp8emu {

class Cluster;
class Launch;
class Profile;

/// A named barrier of a block (PTX ISA 9.7.13.1).
struct Barrier {
  /// The number of threads that completes the barrier; 0 stands for all threads of the block,
  /// and for a barrier at which no thread has arrived.
  unsigned expected = 0;
  unsigned arrived = 0;
  /// The results of a reduction so far.
  unsigned population = 0;
  bool conjunction = true, disjunction = false;
};

class Block {
public:
  Block(Cluster &cluster, const std::array<uint32_t, 3> &index, unsigned rank);

  Launch &launch() const;
  Cluster &cluster() const { return owner; }
  const std::array<uint32_t, 3> &index() const { return place; }
  unsigned rank() const { return clusterRank; }
  std::array<uint32_t, 3> threadIndex(unsigned linear) const;
  unsigned threads() const { return threadCount; }
  unsigned threadsAlive() const;
  bool done() const;
  uint64_t random() const;

  uint8_t *shared() const { return sharedMemory.get(); }
  uint32_t sharedBytes() const { return sharedSize; }
  /// One byte for each byte of shared memory: 1 where that was written.
  uint8_t *sharedInitialized() const { return sharedWritten.get(); }
  /// The shared address of the block's first byte: the rank in the upper bits.
  uint32_t sharedBase() const { return clusterRank << kSharedRankShift; }
  /// Local memory of a thread.
  uint8_t *local(unsigned warp, unsigned lane) const;

  /// The block's tensor memory, made by the first call.
  TensorMemory &tensorMemory() {
    if (!tensor)
      tensor = std::make_unique<TensorMemory>();
    return *tensor;
  }

  /// The registers that warps hand to each other; null where they keep those that they begin
  /// with.
  RegisterPool *registers() const { return pool.get(); }

  std::vector<std::unique_ptr<Warp>> &warps() { return members; }

  /// Runs warps in a random order, some instructions each; returns how many instructions
  /// were run.
  uint64_t run();
  bool runnable() const;

  /// Lanes arrive at a barrier for `expected` threads; 0 stands for all of the block. When
  /// enough have arrived, the barrier is complete and those that wait are woken. Faults where
  /// threads name different numbers.
  void arrive(Warp &warp, unsigned barrier, unsigned expected, Mask lanes, Mask predicate);
  void threadsExited();

  /// Whether an mbarrier object lives at this offset of shared memory.
  bool isMbarrier(uint32_t offset) const { return mbarriers.count(offset); }
  void setMbarrier(uint32_t offset, bool lives) {
    lives ? void(mbarriers.insert(offset)) : void(mbarriers.erase(offset));
  }
  /// Ends the mbarrier objects that a plain write touches: their next use is a fault.
  void overwriteMbarriers(uint32_t offset, uint32_t bytes) {
    constexpr uint32_t size = 8;
    auto first = mbarriers.lower_bound(offset < size ? 0 : offset - size + 1);
    mbarriers.erase(first, mbarriers.lower_bound(offset + bytes));
  }

  /// Ends the wait of all fragments of the block for which `why` and `object` match.
  void wake(Wait why, uint64_t object);
  std::string describe() const;

  void fillSpecials(uint8_t *specials, unsigned warp) const;
  /// The notes of the launch's observer; null without an observer.
  Notes *notes() const { return observed.get(); }

private:
  void complete(unsigned barrier);
  /// Where the system's shared memory begins.
  uint32_t reservedShared() const;

  Cluster &owner;
  std::array<uint32_t, 3> place;
  unsigned clusterRank, threadCount;
  uint32_t sharedSize = 0;
  std::unique_ptr<uint8_t[]> sharedMemory, sharedWritten, localMemory;
  std::array<Barrier, 16> barriers;
  std::set<uint32_t> mbarriers;
  std::unique_ptr<TensorMemory> tensor;
  std::unique_ptr<RegisterPool> pool;
  std::unique_ptr<Notes> observed;
  std::vector<std::unique_ptr<Warp>> members;
};

class Cluster {
public:
  /// The cluster number `index` of the launch's grid of clusters.
  Cluster(Launch &launch, uint64_t index, Profile *profile);

  Launch &launch() const { return owner; }
  std::vector<std::unique_ptr<Block>> &blocks() { return members; }
  const std::array<uint32_t, 3> &index() const { return place; }
  bool done() const;
  /// Runs the cluster to its end, or for about `budget` instructions. Faults where nothing can
  /// run.
  void run(uint64_t budget);
  uint64_t random() { return numbers(); }
  std::mt19937_64 &generator() { return numbers; }
  /// The profile in which instructions are counted; null where nothing is counted.
  Profile *profile() const { return counts; }

  /// The op for which accesses are counted now: the one that the warp executes, or the one
  /// that started the operation in flight that is running.
  uint32_t countedPc(const Warp &warp) const { return flying.isRunning() ? flying.runningPc() : warp.pc(); }

  /// Asynchronous operations in flight, of all threads of the cluster.
  OperationQueue &operations() { return flying; }
  /// Notes that something has happened for which threads may wait. A cluster in which nothing
  /// happens any more is in deadlock.
  void noteProgress() { ++progress; }

  /// barrier.cluster: threads arrive. When all have arrived, those that wait are woken.
  void arrive(unsigned threads);
  uint64_t phase() const { return completedPhases; }
  /// The notes of the launch's observer; null without an observer.
  Notes *notes() const { return observed.get(); }
  void threadsExited();

private:
  [[noreturn]] void deadlock();
  bool timeOut();
  void wakeAsync();
  void completeIfAll();

  Launch &owner;
  std::array<uint32_t, 3> place;
  Profile *counts;
  std::mt19937_64 numbers;
  unsigned arrived = 0;
  uint64_t completedPhases = 0;
  uint64_t progress = 0, progressAtTimeout = 0;
  unsigned fruitlessTimeouts = 0;
  OperationQueue flying;
  std::unique_ptr<Notes> observed;
  std::vector<std::unique_ptr<Block>> members;
};

} // namespace fp8emu

#endif // FP8EMU_EXEC_BLOCK_H
