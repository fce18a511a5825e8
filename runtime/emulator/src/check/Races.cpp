// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions that order memory: barriers, fences, mbarriers, groups.

#include "Races.h"

#include "exec/Block.h"
#include "exec/Launch.h"

using namespace fp8emu;
using namespace fp8emu::check;

static uint32_t linear(const std::array<uint32_t, 3> &index, const std::array<uint32_t, 3> &size) {
  return index[0] + size[0] * (index[1] + size[1] * index[2]);
}

std::unique_ptr<Notes> LaunchRaces::begin(const Cluster &) { return std::make_unique<ClusterRaces>(); }
std::unique_ptr<Notes> LaunchRaces::begin(const Block &block) {
  return std::make_unique<BlockRaces>(*this, block);
}
std::unique_ptr<Notes> LaunchRaces::begin(const Warp &) { return std::make_unique<WarpRaces>(); }

BlockRaces::BlockRaces(LaunchRaces &launch, const Block &block)
    : launch(launch), number(linear(block.index(), launch.launch.config().grid)),
      cluster(linear(block.cluster().index(), launch.launch.clusterGrid())), shadow(block.sharedBytes()) {}

uint16_t BlockRaces::queue(uint64_t key) {
  auto [place, isNew] = queueNumbers.try_emplace(key, uint16_t(queueStarted.size()));
  if (isNew)
    queueStarted.push_back(0);
  return place->second;
}

namespace {

/// Adds the knowledge of these lanes to `into`.
void collect(const WarpRaces &own, Mask lanes, Knowledge &into) {
  const Knowledge *last = nullptr;
  forLanes(lanes, [&](unsigned lane) {
    if (!last || !(*last == own.known[lane]))
      into.join(own.known[lane]);
    last = &own.known[lane];
  });
}

void learn(WarpRaces &own, Mask lanes, const Knowledge &more) {
  // Lanes that knew the same know the same afterwards.
  Knowledge before, after;
  bool any = false;
  forLanes(lanes, [&](unsigned lane) {
    Knowledge &mine = own.known[lane];
    if (any && mine == before) {
      mine = after;
      return;
    }
    before = mine;
    mine.acquire(more);
    after = mine;
    any = true;
  });
}

void newEpoch(Warp &warp) { racesOf(warp)->epoch = ++racesOf(warp.block())->time; }

/// Adds the knowledge of these lanes and their own accesses to `into`.
void release(Warp &warp, Mask lanes, Knowledge &into) {
  WarpRaces &own = *racesOf(warp);
  collect(own, lanes, into);
  addThreads(into.generic, racesOf(warp.block())->number, warp.index() * kLanes, lanes, own.epoch);
  newEpoch(warp);
}

/// Adds what a relaxed arrival of a lane publishes: the knowledge that fences before it have
/// released, and the knowledge for which a relaxed arrival is enough.
void arriveRelaxed(Warp &warp, unsigned lane, Knowledge &into) {
  WarpRaces &own = *racesOf(warp);
  join(into.tensor, own.known[lane].tensor);
  join(into.sequenced, own.known[lane].sequenced);
  if (!own.patterns)
    return;
  for (const Patterns::Released &released : (*own.patterns)[lane].released) {
    if (!released.epoch)
      continue;
    into.join(released.known);
    addThreads(into.generic, racesOf(warp.block())->number, warp.index() * kLanes, Mask(1) << lane,
               released.epoch);
  }
}

} // namespace

void LaunchRaces::arriveAtBarrier(Warp &warp, unsigned id, Mask lanes) {
  release(warp, lanes, racesOf(warp.block())->barriers[id]);
}

/// Where all of the block's threads wait here, all that the block did is known to
/// each: a floor instead of a number for each thread.
void LaunchRaces::completeBarrier(Block &block, unsigned id) {
  BlockRaces *races = racesOf(block);
  Knowledge known = std::move(races->barriers[id]);
  races->barriers[id] = Knowledge();
  std::vector<Mask> waiting;
  unsigned count = 0;
  for (auto &warp : block.warps()) {
    Mask lanes = 0;
    for (const Fragment &f : warp->waiting())
      if (f.wait == Wait::Barrier && f.object == id)
        lanes |= f.lanes;
    waiting.push_back(lanes);
    count += unsigned(__builtin_popcount(lanes));
  }
  if (count && count == block.threadsAlive()) {
    Segment &mine = change(known.generic, races->number);
    mine.floor = races->time;
    mine.threads.clear();
    ++races->time;
  }
  for (size_t i = 0; i < waiting.size(); ++i) {
    WarpRaces &own = *racesOf(*block.warps()[i]);
    learn(own, waiting[i], known);
    if (count == block.threadsAlive())
      own.epoch = races->time;
  }
}

void check::syncWarp(Warp &warp, Mask lanes) {
  if (!racesOf(warp) || !(lanes & (lanes - 1)))
    return;
  Knowledge together;
  release(warp, lanes, together);
  learn(*racesOf(warp), lanes, together);
}

void check::exchanged(Warp &warp, Mask lanes) {
  WarpRaces *own = racesOf(warp);
  if (!own)
    return;
  const Knowledge &first = own->known[__builtin_ctz(lanes)];
  bool same = true;
  forLanes(lanes, [&](unsigned lane) { same &= own->known[lane] == first; });
  if (same)
    return;
  Knowledge together;
  collect(*own, lanes, together);
  learn(*own, lanes, together);
}

void check::arriveAtCluster(Warp &warp, Mask lanes, bool releases) {
  if (!racesOf(warp))
    return;
  Cluster &cluster = warp.block().cluster();
  Knowledge &phase = racesOf(cluster)->barrier[cluster.phase() % 2];
  if (releases)
    release(warp, lanes, phase);
  else
    forLanes(lanes, [&](unsigned lane) { arriveRelaxed(warp, lane, phase); });
}

void LaunchRaces::waitedForCluster(Warp &warp, Mask lanes, uint64_t phase) {
  learn(*racesOf(warp), lanes, racesOf(warp.block().cluster())->barrier[phase % 2]);
}

void check::fence(Warp &warp, Mask lanes, Level level, bool acquires, bool releases) {
  WarpRaces *own = racesOf(warp);
  if (!own)
    return;
  forLanes(lanes, [&](unsigned lane) {
    Patterns &patterns = own->patternsOf(lane);
    for (unsigned i = 0; i <= unsigned(level); ++i) {
      if (acquires)
        own->known[lane].acquire(patterns.pending[i]);
      if (releases)
        patterns.released[i] = {own->known[lane], own->epoch};
    }
  });
  if (releases)
    newEpoch(warp);
}

/// One of two such fences comes first. The order is known where the other comes after it
/// by barriers or by strong accesses, which may be relaxed and of other threads.
void check::fenceSequence(Warp &warp, Mask lanes) {
  WarpRaces *own = racesOf(warp);
  if (!own)
    return;
  forLanes(lanes, [&](unsigned lane) {
    Knowledge &known = own->known[lane];
    join(known.generic, known.sequenced);
    join(known.sequenced, known.generic);
    addThreads(known.sequenced, racesOf(warp.block())->number, warp.index() * kLanes, Mask(1) << lane,
               own->epoch);
  });
  newEpoch(warp);
}

/// Makes the accesses that the lanes know, and their own, visible to a proxy, whose part of the
/// knowledge `seen` is. The lanes share one clock: the order for each thread is checked besides.
static void makeVisible(Warp &warp, Mask lanes, ClockRef Knowledge::*seen) {
  if (!racesOf(warp))
    return;
  Knowledge together, more;
  release(warp, lanes, together);
  more.*seen = together.generic;
  learn(*racesOf(warp), lanes, more);
}

void check::fenceProxy(Warp &warp, Mask lanes) { makeVisible(warp, lanes, &Knowledge::async); }
void check::fenceMaps(Warp &warp, Mask lanes) { makeVisible(warp, lanes, &Knowledge::maps); }

bool check::needsTensorFences(const Warp &warp) { return warp.block().launch().settings().tensorFences; }

void check::fenceTensorBefore(Warp &warp, Mask lanes) {
  if (WarpRaces *own = racesOf(warp))
    forLanes(lanes, [&](unsigned lane) {
      join(own->known[lane].tensor, own->tensor[lane]);
      if (!needsTensorFences(warp))
        join(own->known[lane].tensor, own->known[lane].completed);
    });
}

void check::fenceTensorAfter(Warp &warp, Mask lanes) {
  if (WarpRaces *own = racesOf(warp))
    forLanes(lanes, [&](unsigned lane) { join(own->tensor[lane], own->known[lane].tensor); });
}

void check::initializeMbarrier(Block &block, uint32_t offset) {
  if (racesOf(block))
    racesOf(block)->mbarriers[offset] = BarrierPhases();
}

void check::arriveAtMbarrier(Warp &warp, unsigned lane, Block &block, uint32_t offset, uint8_t bits) {
  if (!racesOf(warp))
    return;
  Knowledge &pending = racesOf(block)->mbarriers[offset].pending;
  if (bits & ordering::kRelease)
    release(warp, Mask(1) << lane, pending);
  else
    arriveRelaxed(warp, lane, pending);
}

void check::flipMbarrier(Block &block, uint32_t offset) {
  if (!racesOf(block))
    return;
  BarrierPhases &phases = racesOf(block)->mbarriers[offset];
  phases.complete.join(phases.pending);
  phases.pending = Knowledge();
}

void check::waitedForMbarrier(Warp &warp, unsigned lane, Block &block, uint32_t offset, uint8_t bits) {
  WarpRaces *own = racesOf(warp);
  if (!own)
    return;
  const Knowledge &complete = racesOf(block)->mbarriers[offset].complete;
  if (bits & ordering::kAcquire)
    return own->known[lane].acquire(complete);
  join(own->known[lane].tensor, complete.tensor);
  join(own->known[lane].sequenced, complete.sequenced);
  for (Knowledge &pending : own->patternsOf(lane).pending)
    pending.join(complete);
}
