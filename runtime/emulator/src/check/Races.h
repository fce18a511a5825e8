// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data races: accesses to the same bytes, one of them a write, that nothing orders
// (PTX ISA 8.7.1). Launches, clusters, blocks and warps have notes for it. LaunchRaces is the
// observer that execution tells of accesses and barriers; instructions that order memory call
// the functions below. Where checks are off there are no notes, and each function returns at
// once.

#ifndef FP8EMU_CHECK_RACES_H
#define FP8EMU_CHECK_RACES_H

#include "Clock.h"
#include "Ordering.h"
#include "Shadow.h"
#include "TensorShadow.h"
#include "exec/Block.h"
#include "exec/Observer.h"

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fp8emu::check {

constexpr unsigned kLevels = 3;

/// The knowledge released at a place in memory, by the scope that may see it: by the number
/// of the block or the cluster, 0 for the device.
class Place {
public:
  Knowledge &at(Level level, uint32_t number) { return known[uint64_t(level) << 32 | number]; }
  const Knowledge *find(Level level, uint32_t number) const {
    auto found = known.find(uint64_t(level) << 32 | number);
    return found == known.end() ? nullptr : &found->second;
  }

private:
  std::unordered_map<uint64_t, Knowledge> known;
};
using Places = std::unordered_map<uint64_t, Place>;

/// The observer of a launch whose memory order is checked.
struct LaunchRaces : Observer {
  LaunchRaces(const Launch &launch, GlobalShadow &shadow, bool severalWorkers)
      : launch(launch), shadow(shadow), stamps(shadow.beginLaunch()), number(shadow.launches()),
        severalWorkers(severalWorkers) {}
  ~LaunchRaces() override { shadow.endLaunch(stamps.end()); }

  std::unique_ptr<Notes> begin(const Cluster &cluster) override;
  std::unique_ptr<Notes> begin(const Block &block) override;
  std::unique_ptr<Notes> begin(const Warp &warp) override;
  void access(Warp &warp, Mask mask, const Target *targets, unsigned bytes, AccessKind kind) override;
  void arriveAtBarrier(Warp &warp, unsigned id, Mask lanes) override;
  void completeBarrier(Block &block, unsigned id) override;
  void waitedForCluster(Warp &warp, Mask lanes, uint64_t phase) override;

  const Launch &launch;
  GlobalShadow &shadow;
  Stamps stamps;
  /// The number of the launch, which its sets of words carry.
  uint32_t number;
  Sets sets;
  /// Whether blocks run on several threads of the host: then pages of global memory
  /// are locked.
  bool severalWorkers;
  std::array<std::mutex, 64> pages;
  std::mutex placesMutex;
  Places places;
};

/// The knowledge that an mbarrier's arrivals release: in the current phase, and in complete ones.
struct BarrierPhases {
  Knowledge pending, complete;
};

struct BlockRaces : Notes {
  BlockRaces(LaunchRaces &launch, const Block &block);

  LaunchRaces &launch;
  /// Numbers in the grid.
  uint32_t number, cluster;
  /// Its time (Clock.h).
  uint32_t time = 1;
  SharedShadow shadow;
  TensorShadow tensor;
  Places places;
  std::array<Knowledge, 16> barriers;
  std::unordered_map<uint32_t, BarrierPhases> mbarriers;
  /// Queues of operations, by what ends them (Agent.cpp).
  std::unordered_map<uint64_t, uint16_t> queueNumbers;
  std::vector<uint32_t> queueStarted;
  uint16_t queue(uint64_t key);
  /// The number under which the block finds what was released at a place in memory.
  uint32_t numberAt(Level level) const {
    return level == Level::Block ? number : level == Level::Cluster ? cluster : 0;
  }
};

struct ClusterRaces : Notes {
  /// The knowledge that the even and the odd phase of the barrier release.
  std::array<Knowledge, 2> barrier;
};

/// A thread's knowledge between fences and strong accesses (PTX ISA 8.8): `released` by a release
/// fence, for strong writes to publish; `pending` from strong reads, for an acquire fence to add.
struct Patterns {
  struct Released {
    Knowledge known;
    /// 0: no fence yet.
    uint32_t epoch = 0;
  };
  std::array<Released, kLevels> released;
  std::array<Knowledge, kLevels> pending;
};

/// The kinds of groups that a thread's operations form: cp.async, bulk copies, wgmma;
/// tcgen05.mma, .cp and .shift, tcgen05.ld, tcgen05.st; st.async that releases.
enum class GroupKind : uint8_t { Copies, Bulk, Matrix, Tensor, TensorLoads, TensorStores, Releases };
constexpr unsigned kGroupKinds = 7;

/// A thread's operations of one kind: how many it has started, and how many it had started
/// when it committed each of its last groups.
struct Started {
  uint32_t count = 0;
  std::vector<uint32_t> committed;
  /// The knowledge before the operations of GroupKind::Tensor, which threads that wait for
  /// them get too.
  Knowledge before;
};

struct WarpRaces : Notes {
  uint32_t epoch = 1;
  std::array<Knowledge, kLanes> known;
  /// The accesses that a thread's next operations on tensor memory are ordered after.
  std::array<ClockRef, kLanes> tensor;
  /// Where a thread has executed a fence or read what was released.
  std::unique_ptr<std::array<Patterns, kLanes>> patterns;
  std::unique_ptr<std::array<std::array<Started, kGroupKinds>, kLanes>> started;
  /// Stamps of the last accesses, by pc.
  struct Recent {
    uint32_t pc = 0, epoch = 0, stamp = 0;
    uint8_t kind = 0;
  };
  std::array<Recent, 32> recent;
  /// Stores that race unless they change nothing: see `confirm`.
  Mask doubtful = 0;
  std::unique_ptr<std::array<Fault, kLanes>> doubts;

  Patterns &patternsOf(unsigned lane) {
    if (!patterns)
      patterns = std::make_unique<std::array<Patterns, kLanes>>();
    return (*patterns)[lane];
  }
  Started &startedBy(unsigned lane, GroupKind kind) {
    if (!started)
      started = std::make_unique<std::array<std::array<Started, kGroupKinds>, kLanes>>();
    return (*started)[lane][size_t(kind)];
  }
};

/// The notes of a warp, a block, a cluster; null where memory order is not checked.
inline WarpRaces *racesOf(const Warp &warp) { return static_cast<WarpRaces *>(warp.notes()); }
inline BlockRaces *racesOf(const Block &block) { return static_cast<BlockRaces *>(block.notes()); }
inline ClusterRaces *racesOf(const Cluster &cluster) { return static_cast<ClusterRaces *>(cluster.notes()); }

// Barriers; LaunchRaces is told itself of those of a block.

/// bar.warp.sync.
void syncWarp(Warp &warp, Mask lanes);
/// Lanes have exchanged values: all of them know what one has learned of other warps. The
/// exchange does not order accesses of the lanes themselves.
void exchanged(Warp &warp, Mask lanes);
void arriveAtCluster(Warp &warp, Mask lanes, bool releases);

// Fences.

void fence(Warp &warp, Mask lanes, Level level, bool acquires, bool releases);
/// The additional effect of fence.sc of the device: the fences of all threads are in one order
/// (PTX ISA 8.9.2).
void fenceSequence(Warp &warp, Mask lanes);
/// fence.proxy.async.
void fenceProxy(Warp &warp, Mask lanes);
/// fence.proxy.tensormap::generic.acquire.
void fenceMaps(Warp &warp, Mask lanes);
/// Whether nothing but tcgen05.fence orders tensor memory between threads (Settings).
bool needsTensorFences(const Warp &warp);
/// tcgen05.fence::before_thread_sync, ::after_thread_sync.
void fenceTensorBefore(Warp &warp, Mask lanes);
void fenceTensorAfter(Warp &warp, Mask lanes);

// Mbarriers, at an offset of a block's shared memory.

void initializeMbarrier(Block &block, uint32_t offset);
void arriveAtMbarrier(Warp &warp, unsigned lane, Block &block, uint32_t offset, uint8_t ordering);
void waitedForMbarrier(Warp &warp, unsigned lane, Block &block, uint32_t offset, uint8_t ordering);
/// The phase of an mbarrier has completed.
void flipMbarrier(Block &block, uint32_t offset);

// Groups of a thread's operations.

void commitGroup(Warp &warp, Mask lanes, GroupKind kind);
/// Lanes have waited until all but the last `allowed` groups were over; with `readsOnly`, for
/// bulk groups, until those had read. kEverything: until all operations were over.
void waitedForGroups(Warp &warp, Mask lanes, GroupKind kind, uint64_t allowed, bool readsOnly = false);
constexpr uint64_t kEverything = ~uint64_t(0);

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_RACES_H
