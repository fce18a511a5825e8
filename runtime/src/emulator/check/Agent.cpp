// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations in flight, and the queues in which they are counted: each mbarrier has one,
// each thread one for every kind of group, and another for reads of bulk copies.

#include "Agent.h"

#include "Record.h"

#include "exec/Block.h"
#include "exec/Launch.h"

using namespace fp8emu;
using namespace fp8emu::check;

namespace {
enum QueueKind : uint64_t { OfCopies, OfBulk, OfMatrix, OfBulkReads, OfMbarrier };

uint64_t queueKey(QueueKind kind, uint64_t which) { return kind << 32 | which; }
uint64_t threadQueue(GroupKind kind, const Warp &warp, unsigned lane) {
  return queueKey(QueueKind(kind), warp.index() * kLanes + lane);
}
uint64_t readQueue(const Warp &warp, unsigned lane) {
  return queueKey(OfBulkReads, warp.index() * kLanes + lane);
}

/// Operations of a queue are known to be over, by both proxies: completion is followed
/// by a proxy fence (PTX ISA 9.7.9.25.2).
void addQueueTo(Knowledge &known, uint32_t block, uint16_t queue, uint32_t count) {
  addQueue(known.generic, block, queue, count);
  addQueue(known.async, block, queue, count);
}
} // namespace

struct Agent::State {
  LaunchRaces *launch;
  Knowledge known;
  /// Of its accesses; `readQueue` is where its reads are counted.
  AccessInfo info;
  uint16_t readQueue = 0;
  unsigned lane = 0;
  uint32_t stamps[3] = {};
  /// Of mbarriers.
  Block *block = nullptr;
  uint32_t offset = 0;
  /// What it accesses may be told when no instruction of its thread runs.
  Fault origin;
};

Agent Agent::start(Warp &warp, unsigned lane, Proxy proxy) {
  Agent agent;
  if (!warp.races())
    return agent;
  agent.state = std::make_shared<State>();
  State &state = *agent.state;
  BlockRaces &block = *warp.block().races();
  state.launch = &block.launch;
  // All that its thread has done comes before; nothing that it does from now on.
  state.known = warp.races()->known[lane];
  addThreads(state.known.generic, block.number, warp.index() * kLanes, Mask(1) << lane, warp.races()->epoch);
  warp.races()->epoch = ++block.time;
  state.info.block = block.number;
  state.info.warp = uint16_t(warp.index());
  state.info.pc = warp.pc();
  state.info.isAgent = true;
  state.info.isAsyncProxy = proxy == Proxy::Async;
  state.lane = lane;
  warp.locate(state.origin, Mask(1) << lane);
  return agent;
}

Agent Agent::inGroup(Warp &warp, unsigned lane, GroupKind kind, Proxy proxy) {
  Agent agent = start(warp, lane, proxy);
  if (!agent.state)
    return agent;
  BlockRaces &block = *warp.block().races();
  State &state = *agent.state;
  // Products are started by all lanes of a warp together, and counted with the first.
  if (kind == GroupKind::Matrix) {
    for (const Knowledge &known : warp.races()->known)
      state.known.join(known);
    addThreads(state.known.generic, block.number, warp.index() * kLanes, warp.existing(),
               warp.races()->epoch - 1);
  }
  state.info.queueBlock = block.number;
  state.info.queue = state.readQueue = block.queue(threadQueue(kind, warp, lane));
  if (kind == GroupKind::Bulk)
    state.readQueue = block.queue(readQueue(warp, lane));
  state.info.epoch = ++warp.races()->startedBy(lane, kind).count;
  return agent;
}

Agent Agent::untilMbarrier(Warp &warp, unsigned lane, Block &where, uint32_t offset) {
  Agent agent = start(warp, lane, Proxy::Async);
  if (!agent.state)
    return agent;
  BlockRaces &block = *where.races();
  State &state = *agent.state;
  state.info.queueBlock = block.number;
  state.info.queue = state.readQueue = block.queue(queueKey(OfMbarrier, offset));
  state.info.epoch = ++block.queueStarted[state.info.queue];
  state.block = &where;
  state.offset = offset;
  return agent;
}

void Agent::access(const Target &target, unsigned bytes, Kind kind) const {
  if (!state)
    return;
  AccessInfo info = state->info;
  info.isWrite = kind != Read;
  info.isAtomic = kind == Update;
  info.strength = info.isAtomic ? Level::Device : Level::None;
  if (!info.isWrite)
    info.queue = state->readQueue;
  uint32_t &stamp = state->stamps[size_t(kind)];
  if (!stamp)
    stamp = state->launch->stamps.add(info);
  Recorder recorder(*state->launch, info, stamp);
  if (!stamp || !recorder.access(target, bytes, Mask(1) << state->lane, state->known))
    return;
  Fault fault = report(*state->launch, recorder.conflict);
  Fault full = state->origin;
  full.kind = fault.kind;
  full.message = std::move(fault.message);
  throw full;
}

void Agent::complete() const {
  if (!state || !state->block)
    return;
  Knowledge &pending = state->block->races()->mbarriers[state->offset].pending;
  addQueueTo(pending, state->info.queueBlock, state->info.queue, state->info.epoch);
}

void check::commitGroup(Warp &warp, Mask lanes, GroupKind kind) {
  if (!warp.races())
    return;
  // More groups than this one cannot be allowed to be unfinished.
  constexpr size_t kMost = 4096;
  forLanes(lanes, [&](unsigned lane) {
    Started &started = warp.races()->startedBy(lane, kind);
    started.committed.push_back(started.count);
    if (started.committed.size() > kMost)
      started.committed.pop_front();
  });
}

void check::waitedForGroups(Warp &warp, Mask lanes, GroupKind kind, uint64_t allowed, bool readsOnly) {
  WarpRaces *own = warp.races();
  if (!own)
    return;
  BlockRaces &block = *warp.block().races();
  forLanes(lanes, [&](unsigned lane) {
    const unsigned counted = kind == GroupKind::Matrix ? 0 : lane;
    Started &started = own->startedBy(counted, kind);
    uint32_t count = 0;
    if (allowed == kEverything)
      count = started.count;
    else if (started.committed.size() > allowed)
      count = started.committed[started.committed.size() - 1 - allowed];
    if (!count)
      return;
    if (kind == GroupKind::Bulk)
      addQueueTo(own->known[lane], block.number, block.queue(readQueue(warp, lane)), count);
    if (!readsOnly)
      addQueueTo(own->known[lane], block.number, block.queue(threadQueue(kind, warp, counted)), count);
  });
}

std::function<void()> check::releaseCopies(Warp &warp, unsigned lane, Block &block, uint32_t offset) {
  if (!warp.races())
    return [] {};
  BlockRaces &own = *warp.block().races();
  uint16_t queue = own.queue(threadQueue(GroupKind::Copies, warp, lane));
  uint32_t count = warp.races()->startedBy(lane, GroupKind::Copies).count, number = own.number;
  return [=, races = block.races()] {
    if (count)
      addQueueTo(races->mbarriers[offset].pending, number, queue, count);
  };
}
