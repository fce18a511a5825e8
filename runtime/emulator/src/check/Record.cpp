// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses of instructions: stamps, the places that releases and acquires meet at, doubtful
// stores.

#include "Record.h"

#include "exec/Block.h"
#include "exec/Launch.h"

using namespace fp8emu;
using namespace fp8emu::check;

namespace {

/// The stamp of an access by a warp, the one it got before where nothing was released
/// since.
uint32_t stampFor(LaunchRaces &launch, WarpRaces &warp, const AccessInfo &info) {
  uint8_t kind = uint8_t(uint8_t(info.strength) | info.isWrite << 2 | info.isAtomic << 3);
  WarpRaces::Recent &recent = warp.recent[info.pc % warp.recent.size()];
  if (!recent.stamp || recent.pc != info.pc || recent.epoch != info.epoch || recent.kind != kind)
    recent = {info.pc, info.epoch, launch.stamps.add(info), kind};
  return recent.stamp;
}

bool isSwap(const Warp &warp) {
  const auto &modifiers = warp.program().instructions[warp.pc()]->modifiers;
  return std::find(modifiers.begin(), modifiers.end(), "cas") != modifiers.end();
}

void raise(const Warp &warp, const LaunchRaces &launch, const Conflict &conflict) {
  Fault fault = report(launch, conflict);
  warp.finding(fault.kind, std::move(fault.message), Mask(1) << conflict.lane);
}

Place *placeOf(const Target &target, LaunchRaces &launch, bool make) {
  BlockRaces *shared = target.block ? racesOf(*target.block) : nullptr;
  Places &places = shared ? shared->places : launch.places;
  auto found = places.find(target.address);
  return found != places.end() ? &found->second : make ? &places[target.address] : nullptr;
}

/// A strong write publishes what its thread releases, or what a fence before has made
/// ready (PTX ISA 8.8).
void publish(Warp &warp, unsigned lane, const Target &target, uint8_t bits) {
  BlockRaces &block = *racesOf(warp.block());
  WarpRaces &own = *racesOf(warp);
  bool releases = bits & ordering::kRelease;
  const ClockRef &sequenced = own.known[lane].sequenced;
  if (!releases && !own.patterns && !sequenced)
    return;
  std::unique_lock<std::mutex> lock(block.launch.placesMutex);
  for (unsigned i = 0; i <= unsigned(ordering::level(bits)); ++i) {
    Level level = Level(i);
    const Patterns::Released *fenced = own.patterns ? &(*own.patterns)[lane].released[i] : nullptr;
    const bool published = releases || (fenced && fenced->epoch);
    if (!published && !sequenced)
      continue;
    Knowledge &place = placeOf(target, block.launch, true)->at(level, block.numberAt(level));
    join(place.sequenced, sequenced);
    if (!published)
      continue;
    place.join(releases ? own.known[lane] : fenced->known);
    addThreads(place.generic, block.number, warp.index() * kLanes, Mask(1) << lane,
               releases ? own.epoch : fenced->epoch);
  }
}

/// A strong read learns what was published there: at once, or with the next fence.
void observe(Warp &warp, unsigned lane, const Target &target, uint8_t bits) {
  BlockRaces &block = *racesOf(warp.block());
  WarpRaces &own = *racesOf(warp);
  std::unique_lock<std::mutex> lock(block.launch.placesMutex);
  const Place *place = placeOf(target, block.launch, false);
  if (!place)
    return;
  for (unsigned i = 0; i <= unsigned(ordering::level(bits)); ++i) {
    const Knowledge *found = place->find(Level(i), block.numberAt(Level(i)));
    if (!found)
      continue;
    if (bits & ordering::kAcquire) {
      own.known[lane].acquire(*found);
    } else if (!(bits & ordering::kNoPattern)) {
      own.patternsOf(lane).pending[i].join(*found);
      join(own.known[lane].sequenced, found->sequenced);
    }
  }
}

/// Releases of all lanes come before what any of them learns: their order within the
/// instruction is not known here.
void follow(Warp &warp, Mask mask, const Target *targets, AccessKind kind, uint8_t bits) {
  WarpRaces &own = *racesOf(warp);
  if (kind != AccessKind::Load) {
    forLanes(mask, [&](unsigned lane) { publish(warp, lane, targets[lane], bits); });
    if (bits & ordering::kRelease)
      own.epoch = ++racesOf(warp.block())->time;
  }
  if (kind != AccessKind::Store)
    forLanes(mask, [&](unsigned lane) { observe(warp, lane, targets[lane], bits); });
}

/// The next lanes from the lowest on that read the same and know the same.
Mask run(const WarpRaces &own, Mask mask, const Target *targets, AccessKind kind) {
  unsigned first = unsigned(__builtin_ctz(mask));
  Mask lanes = Mask(1) << first;
  if (kind != AccessKind::Load)
    return lanes;
  for (unsigned lane = first + 1; lane < kLanes && mask >> lane & 1; ++lane) {
    if (targets[lane].address != targets[first].address || targets[lane].block != targets[first].block ||
        !(own.known[lane] == own.known[first]))
      break;
    lanes |= Mask(1) << lane;
  }
  return lanes;
}

void doubt(Warp &warp, const LaunchRaces &launch, const Conflict &conflict) {
  WarpRaces &own = *racesOf(warp);
  if (!own.doubts)
    own.doubts = std::make_unique<std::array<Fault, kLanes>>();
  own.doubtful |= Mask(1) << conflict.lane;
  (*own.doubts)[conflict.lane] = report(launch, conflict);
}

} // namespace

void check::access(Warp &warp, Mask mask, const Target *targets, unsigned bytes, AccessKind kind,
                   uint8_t bits) {
  WarpRaces *own = racesOf(warp);
  BlockRaces *block = racesOf(warp.block());
  if (!own || bits & ordering::kInFlight)
    return;
  AccessInfo info;
  info.block = block->number;
  info.warp = uint16_t(warp.index());
  info.epoch = own->epoch;
  info.pc = warp.pc();
  info.strength = ordering::level(bits);
  info.isWrite = kind != AccessKind::Load;
  info.isAtomic = kind == AccessKind::Atomic;
  info.isSwap = info.isAtomic && isSwap(warp);
  info.isBlind = info.isAtomic && bits & ordering::kNoPattern;
  info.isOfAnyProxy = !(bits & ordering::kStrong) && bits & ordering::kAnyProxy;
  own->doubtful = 0;
  if (uint32_t stamp = stampFor(block->launch, *own, info)) {
    Recorder recorder(block->launch, info, stamp);
    for (Mask rest = mask; rest;) {
      Mask lanes = run(*own, rest, targets, kind);
      unsigned lane = unsigned(__builtin_ctz(rest));
      recorder.together = mask & ~rest;
      rest &= ~lanes;
      if (!recorder.access(targets[lane], bytes, lanes, own->known[lane]))
        continue;
      const Conflict &conflict = recorder.conflict;
      bool bothWrite = conflict.before.isWrite && !conflict.before.isAtomic && !conflict.before.isAgent;
      if (bits & ordering::kConfirms && bothWrite)
        doubt(warp, block->launch, conflict);
      else
        raise(warp, block->launch, conflict);
    }
  }
  if (bits & ordering::kStrong)
    follow(warp, mask, targets, kind, bits);
}

void LaunchRaces::access(Warp &warp, Mask mask, const Target *targets, unsigned bytes, AccessKind kind) {
  check::access(warp, mask, targets, bytes, kind, warp.program().ops[warp.pc()].ordering);
}

void check::publish(LaunchRaces &launch, const BlockRaces &block, const Target &target, Level level,
                    const Knowledge &released) {
  std::unique_lock<std::mutex> lock(launch.placesMutex);
  for (unsigned i = 0; i <= unsigned(level); ++i)
    placeOf(target, launch, true)->at(Level(i), block.numberAt(Level(i))).join(released);
}

void check::readMap(Warp &warp, unsigned lane, uint64_t address, unsigned bytes) {
  WarpRaces *own = racesOf(warp);
  if (!own)
    return;
  LaunchRaces &launch = racesOf(warp.block())->launch;
  AccessInfo info;
  info.block = racesOf(warp.block())->number;
  info.warp = uint16_t(warp.index());
  info.epoch = own->epoch;
  info.pc = warp.pc();
  info.isAsyncProxy = true;
  const Knowledge known{own->known[lane].generic, own->known[lane].maps, nullptr, nullptr, nullptr, nullptr};
  const uint32_t stamp = launch.stamps.add(info);
  Recorder recorder(launch, info, stamp);
  if (stamp && recorder.access({nullptr, address}, bytes, Mask(1) << lane, known))
    raise(warp, launch, recorder.conflict);
}

Target check::targetOf(Warp &warp, MemorySpace space, uint64_t address) {
  if (space == MemorySpace::Generic)
    space = classify(warp, address);
  if (space != MemorySpace::Shared && space != MemorySpace::SharedCluster)
    return {nullptr, address};
  Block *owner = warp.block().cluster().blocks()[address >> kSharedRankShift].get();
  return {owner, address & ((uint64_t(1) << kSharedRankShift) - 1)};
}

Mask check::doubtful(const Warp &warp) { return racesOf(warp) ? racesOf(warp)->doubtful : 0; }

void check::confirm(Warp &warp, unsigned lane, bool changes) {
  WarpRaces &own = *racesOf(warp);
  if (!(own.doubtful >> lane & 1))
    return;
  own.doubtful &= ~(Mask(1) << lane);
  Fault &fault = (*own.doubts)[lane];
  if (changes)
    warp.finding(fault.kind, std::move(fault.message), Mask(1) << lane);
}
