// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clusters: blocks that are scheduled together, and the report when none can go on.

#include "Block.h"

#include "Launch.h"

#include <algorithm>

using namespace fp8emu;

static std::array<uint32_t, 3> unravel(uint64_t index, const std::array<uint32_t, 3> &size) {
  return {uint32_t(index % size[0]), uint32_t(index / size[0] % size[1]),
          uint32_t(index / size[0] / size[1])};
}

Cluster::Cluster(Launch &launch, uint64_t index, Profile *profile)
    : owner(launch), place(unravel(index, launch.clusterGrid())), counts(profile),
      numbers(launch.settings().seed * 0x9E3779B97F4A7C15u + launch.number() * 0xD1B54A32D192ED03u + index) {
  if (Observer *observer = launch.observer())
    observed = observer->begin(*this);
  const auto &size = launch.config().cluster;
  for (unsigned rank = 0; rank < size[0] * size[1] * size[2]; ++rank) {
    auto inside = unravel(rank, size);
    for (unsigned i = 0; i < 3; ++i)
      inside[i] += place[i] * size[i];
    members.push_back(std::make_unique<Block>(*this, inside, rank));
  }
}

bool Cluster::done() const {
  return flying.empty() &&
         std::all_of(members.begin(), members.end(), [](const auto &block) { return block->done(); });
}

void Cluster::run(uint64_t budget) {
  for (uint64_t used = 0; used < budget && !done();) {
    uint64_t before = used;
    for (auto &block : members)
      used += block->run();
    owner.count(used - before);
    // Operations in flight get on at random, or when nothing else can.
    bool idle = used == before;
    for (uint64_t steps = idle ? 1 : random() % (2 * flying.size() + 1); steps && flying.step(random());
         --steps) {
      noteProgress();
      wakeAsync();
      idle = false;
    }
    if (idle && !done() && !timeOut())
      deadlock();
  }
}

/// Threads that wait for operations of their own look again.
void Cluster::wakeAsync() {
  for (auto &block : members)
    block->wake(Wait::Async, 0);
}

/// Nothing can run: waits that hardware bounds in time (mbarrier.try_wait) end
/// without success. False where there are none, or where that has led to nothing
/// several times.
bool Cluster::timeOut() {
  constexpr unsigned kFruitless = 16;
  fruitlessTimeouts = progress == progressAtTimeout ? fruitlessTimeouts + 1 : 0;
  progressAtTimeout = progress;
  if (fruitlessTimeouts > kFruitless)
    return false;
  bool any = false;
  for (auto &block : members)
    for (auto &warp : block->warps())
      any |= warp->timeOut();
  return any;
}

void Cluster::arrive(unsigned threads) {
  arrived += threads;
  completeIfAll();
}

void Cluster::threadsExited() {
  if (arrived)
    completeIfAll();
}

void Cluster::completeIfAll() {
  unsigned alive = 0;
  for (auto &block : members)
    alive += block ? block->threadsAlive() : 0;
  if (arrived < alive)
    return;
  arrived = 0;
  ++completedPhases;
  if (Observer *observer = owner.observer())
    for (auto &block : members)
      for (auto &warp : block->warps())
        for (const Fragment &f : warp->waiting())
          if (f.wait == Wait::Cluster && f.object == completedPhases - 1)
            observer->waitedForCluster(*warp, f.lanes, f.object);
  for (auto &block : members)
    block->wake(Wait::Cluster, completedPhases - 1);
}

/// Nothing can run any more. Lanes that wait for others at an instruction all of a
/// warp must reach have diverged; anything else is a deadlock.
void Cluster::deadlock() {
  std::string state;
  const Warp *stuck = nullptr;
  Fault fault;
  fault.kind = FaultKind::Deadlock;
  for (auto &block : members) {
    if (block->done())
      continue;
    state += block->describe();
    for (auto &warp : block->warps())
      for (const Fragment &f : warp->waiting()) {
        bool diverged = f.wait == Wait::Converge || f.wait == Wait::Gather;
        if (stuck && !(diverged && fault.kind == FaultKind::Deadlock))
          continue;
        stuck = warp.get();
        fault.kind = diverged ? FaultKind::BarrierDivergence : FaultKind::Deadlock;
        const bool repeats =
            diverged || f.wait == Wait::Mbarrier || f.wait == Wait::TensorMemory || f.wait == Wait::Registers;
        owner.locate(fault, repeats ? f.pc : f.pc - 1);
        fault.block = block->index();
        fault.hasThread = true;
        fault.thread = block->threadIndex(warp->index() * kLanes + unsigned(__builtin_ctz(f.lanes)));
      }
  }
  fault.message = fault.kind == FaultKind::Deadlock
                      ? "every thread waits for what no thread will do\n" + state
                      : "lanes of a warp wait for others that do not come\n" + state;
  throw fault;
}
