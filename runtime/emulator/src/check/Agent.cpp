// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations in flight, and the queues in which they are counted: each mbarrier has one,
// each thread one for every kind of group, and others for reads of bulk copies and for
// what it has issued to the tensor cores.

#include "Agent.h"

#include "Record.h"

#include "exec/Block.h"
#include "exec/Launch.h"

using namespace fp8emu;
using namespace fp8emu::check;

namespace {
/// Kinds of queues besides those of groups, which are GroupKinds.
enum QueueKind : uint64_t { OfBulkReads = kGroupKinds, OfIssued, OfMbarrier };

uint64_t queueKey(QueueKind kind, uint64_t which) { return kind << 32 | which; }
uint64_t threadQueue(QueueKind kind, const Warp &warp, unsigned lane) {
  return queueKey(kind, warp.index() * kLanes + lane);
}
uint64_t threadQueue(GroupKind kind, const Warp &warp, unsigned lane) {
  return threadQueue(QueueKind(kind), warp, lane);
}

bool isTensor(GroupKind kind) {
  return kind == GroupKind::Tensor || kind == GroupKind::TensorLoads || kind == GroupKind::TensorStores;
}
/// Whether all lanes of a warp start them together; they are counted with the first.
bool isOfWarp(GroupKind kind) {
  return kind == GroupKind::Matrix || kind == GroupKind::TensorLoads || kind == GroupKind::TensorStores;
}

/// Operations of a queue are known to be over. A proxy fence follows the completion of
/// those of the async proxy (PTX ISA 9.7.9.25.2), none that of the others.
void addQueueTo(Knowledge &known, uint32_t block, uint16_t queue, uint32_t count, Proxy proxy) {
  addQueue(known.generic, block, queue, count);
  if (proxy == Proxy::Async)
    addQueue(known.async, block, queue, count);
}

Proxy proxyOf(const AccessInfo &info) { return info.isAsyncProxy ? Proxy::Async : Proxy::Generic; }
Proxy proxyOf(GroupKind kind) { return kind == GroupKind::Copies ? Proxy::Generic : Proxy::Async; }

void raise(const LaunchRaces &races, const Fault &origin, const Fault &fault) {
  Fault full = origin;
  full.kind = fault.kind;
  full.message = fault.message;
  races.launch.find(full);
}
} // namespace

struct Agent::State {
  LaunchRaces *launch;
  BlockRaces *own;
  Knowledge known;
  /// Of its accesses; `readQueue` is where its reads are counted.
  AccessInfo info;
  uint16_t readQueue = 0;
  unsigned lane = 0;
  /// Whether it reads shared memory: an agent that knows of the read knows what came before.
  bool readsShared = false;
  /// Of accesses to tensor memory: the clock that it comes after, and the access itself.
  ClockRef tensorKnown;
  TensorAccess tensor;
  uint32_t stamps[3] = {};
  /// Of mbarriers.
  Block *block = nullptr;
  uint32_t offset = 0;
  /// The instruction that started it, for faults found when no instruction of its thread runs.
  Fault origin;
};

Agent Agent::start(Warp &warp, unsigned lane, Proxy proxy) {
  Agent agent;
  if (!racesOf(warp))
    return agent;
  agent.state = std::make_shared<State>();
  State &state = *agent.state;
  BlockRaces &block = *racesOf(warp.block());
  state.launch = &block.launch;
  state.own = &block;
  // All that its thread has done comes before; nothing that it does from now on.
  state.known = racesOf(warp)->known[lane];
  addThreads(state.known.generic, block.number, warp.index() * kLanes, Mask(1) << lane, racesOf(warp)->epoch);
  racesOf(warp)->epoch = ++block.time;
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
  BlockRaces &block = *racesOf(warp.block());
  State &state = *agent.state;
  WarpRaces &own = *racesOf(warp);
  state.tensorKnown = own.tensor[lane];
  if (isOfWarp(kind)) {
    for (unsigned i = 0; i < kLanes; ++i) {
      state.known.join(own.known[i]);
      join(state.tensorKnown, own.tensor[i]);
    }
    addThreads(state.known.generic, block.number, warp.index() * kLanes, warp.existing(), own.epoch - 1);
  }
  if (!needsTensorFences(warp))
    join(state.tensorKnown, state.known.completed);
  Started &started = own.startedBy(lane, kind);
  state.info.queueBlock = block.number;
  state.info.queue = state.readQueue = block.queue(threadQueue(kind, warp, lane));
  if (kind == GroupKind::Bulk)
    state.readQueue = block.queue(threadQueue(OfBulkReads, warp, lane));
  state.info.epoch = ++started.count;
  if (kind != GroupKind::Tensor) {
    state.tensor.pipe = kind == GroupKind::TensorLoads ? TensorPipe::Loads : TensorPipe::Stores;
    return agent;
  }
  started.before.join(state.known);
  state.tensor.issued = block.queue(threadQueue(OfIssued, warp, lane));
  addQueue(own.tensor[lane], block.number, state.tensor.issued, started.count);
  return agent;
}

Agent Agent::releasing(Warp &warp, unsigned lane, Level level) {
  Agent agent = inGroup(warp, lane, GroupKind::Releases, Proxy::Generic);
  if (agent.state)
    agent.state->info.strength = level;
  return agent;
}

Agent Agent::untilMbarrier(Warp &warp, unsigned lane, Block &where, uint32_t offset, Proxy proxy) {
  Agent agent = start(warp, lane, proxy);
  if (!agent.state)
    return agent;
  BlockRaces &block = *racesOf(where);
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
  info.isAtomic = info.isBlind = kind == Update;
  if (info.isAtomic)
    info.strength = Level::Device;
  if (!info.isWrite)
    info.queue = state->readQueue;
  state->readsShared |= !info.isWrite && target.block;
  uint32_t &stamp = state->stamps[size_t(kind)];
  if (!stamp)
    stamp = state->launch->stamps.add(info);
  Recorder recorder(*state->launch, info, stamp);
  if (!stamp || !recorder.access(target, bytes, Mask(1) << state->lane, state->known))
    return;
  raise(*state->launch, state->origin, report(*state->launch, recorder.conflict));
}

void Agent::accessTensor(Block &block, const TensorRange &range, bool isWrite) const {
  if (!state)
    return;
  TensorAccess access = state->tensor;
  access.info = state->info;
  access.info.isWrite = isWrite;
  access.range = range;
  access.lane = state->lane;
  if (auto before = racesOf(block)->tensor.access(access, state->tensorKnown))
    raise(*state->launch, state->origin,
          report(*state->launch, *before, access, precedes(*before, access, state->known.tensor)));
}

void Agent::complete() const {
  if (!state || !state->block)
    return;
  Knowledge &pending = racesOf(*state->block)->mbarriers[state->offset].pending;
  if (state->readsShared)
    pending.join(state->known);
  addQueueTo(pending, state->info.queueBlock, state->info.queue, state->info.epoch, proxyOf(state->info));
}

void Agent::release(const Target &target) const {
  if (!state)
    return;
  Knowledge released = state->known;
  addQueueTo(released, state->info.queueBlock, state->info.queue, state->info.epoch, proxyOf(state->info));
  publish(*state->launch, *state->own, target, state->info.strength, released);
}

void check::commitGroup(Warp &warp, Mask lanes, GroupKind kind) {
  if (!racesOf(warp))
    return;
  // More groups than this one cannot be allowed to be unfinished.
  constexpr size_t kMost = 4096;
  forLanes(lanes, [&](unsigned lane) {
    Started &started = racesOf(warp)->startedBy(lane, kind);
    started.committed.push_back(started.count);
    if (started.committed.size() > 2 * kMost)
      started.committed.erase(started.committed.begin(), started.committed.end() - kMost);
  });
}

void check::waitedForGroups(Warp &warp, Mask lanes, GroupKind kind, uint64_t allowed, bool readsOnly) {
  WarpRaces *own = racesOf(warp);
  if (!own)
    return;
  BlockRaces &block = *racesOf(warp.block());
  forLanes(lanes, [&](unsigned lane) {
    const unsigned counted = isOfWarp(kind) ? 0 : lane;
    Started &started = own->startedBy(counted, kind);
    uint32_t count = 0;
    if (allowed == kEverything)
      count = started.count;
    else if (started.committed.size() > allowed)
      count = started.committed[started.committed.size() - 1 - allowed];
    if (!count)
      return;
    if (isTensor(kind)) {
      const uint16_t queue = block.queue(threadQueue(kind, warp, counted));
      addQueue(own->tensor[lane], block.number, queue, count);
      return addQueue(own->known[lane].completed, block.number, queue, count);
    }
    if (kind == GroupKind::Bulk)
      addQueueTo(own->known[lane], block.number, block.queue(threadQueue(OfBulkReads, warp, lane)), count,
                 Proxy::Async);
    if (!readsOnly)
      addQueueTo(own->known[lane], block.number, block.queue(threadQueue(kind, warp, counted)), count,
                 proxyOf(kind));
  });
}

std::function<void()> check::releaseGroups(Warp &warp, unsigned lane, GroupKind kind, Block &block,
                                           uint32_t offset) {
  if (!racesOf(warp))
    return [] {};
  BlockRaces &own = *racesOf(warp.block());
  const uint16_t queue = own.queue(threadQueue(kind, warp, lane));
  const Started &started = racesOf(warp)->startedBy(lane, kind);
  return [=, number = own.number, count = started.count, before = started.before, races = racesOf(block)] {
    if (!count)
      return;
    Knowledge &pending = races->mbarriers[offset].pending;
    pending.join(before);
    addQueueTo(pending, number, queue, count, proxyOf(kind));
    // tcgen05.commit is a fence before the arrival (PTX ISA 9.7.16.6.4.2).
    if (isTensor(kind))
      addQueue(pending.tensor, number, queue, count);
  };
}
