// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One access and the cells it touches.

#include "Record.h"

#include "exec/Block.h"
#include "exec/Launch.h"

using namespace fp8emu;
using namespace fp8emu::check;

namespace {
/// Readers of a granule that are remembered: beyond, the oldest is forgotten.
constexpr size_t kMostReaders = 64;
} // namespace

static uint32_t clusterOf(const Launch &launch, uint32_t block) {
  const auto &grid = launch.config().grid, &size = launch.config().cluster;
  auto clusters = launch.clusterGrid();
  uint32_t x = block % grid[0] / size[0], y = block / grid[0] % grid[1] / size[1],
           z = block / grid[0] / grid[1] / size[2];
  return x + clusters[0] * (y + clusters[1] * z);
}

Word Recorder::current(Word word) const {
  if (isSet(word))
    return stampOf(word) == launch.number ? word : 0;
  return word && launch.stamps.has(stampOf(word)) ? word : 0;
}

bool Recorder::knows(const ClockRef &clock, const AccessInfo &before, Mask lanes) {
  if (!clock)
    return false;
  if (before.isAgent) {
    const Segment *segment = clock->find(before.queueBlock);
    return segment && segment->queue(before.queue) >= before.epoch;
  }
  const Segment *segment = clock->find(before.block);
  if (!segment)
    return false;
  if (before.epoch <= segment->floor)
    return true;
  for (; lanes; lanes &= lanes - 1)
    if (segment->thread(before.warp * kLanes + unsigned(__builtin_ctz(lanes))) < before.epoch)
      return false;
  return true;
}

bool Recorder::isOwn(const AccessInfo &before, Mask beforeLanes) const {
  if (before.isAgent != info.isAgent)
    return false;
  if (info.isAgent)
    return before.queueBlock == info.queueBlock && before.queue == info.queue && before.epoch == info.epoch;
  return before.block == info.block && before.warp == info.warp && beforeLanes == lanes &&
         !(lanes & (lanes - 1));
}

bool Recorder::precedes(const AccessInfo &before, Mask beforeLanes) const {
  return isOwn(before, beforeLanes) || knows(known->generic, before, beforeLanes);
}

/// Strong accesses whose scopes include each other's thread are no race (PTX ISA
/// 8.7). They need not overlap completely.
bool Recorder::seesEachOther(const AccessInfo &before) const {
  Level least = std::min(before.strength, info.strength);
  if (before.strength == Level::None || info.strength == Level::None)
    return false;
  return least == Level::Device || before.block == info.block ||
         (least == Level::Cluster &&
          clusterOf(launch.launch, before.block) == clusterOf(launch.launch, info.block));
}

/// A plain read before a loop of compare-and-swap is a guess that the loop corrects:
/// so are CUDA's own atomic operations on 16-bit floats written.
bool Recorder::beginsLoop(const AccessInfo &before) const {
  return (before.isSwap && !info.isWrite && !info.isAgent) ||
         (info.isSwap && !before.isWrite && !before.isAgent);
}

void Recorder::lookAt(Word word, unsigned bytes) {
  if (!(bytesOf(word) & bytes) || !launch.stamps.has(stampOf(word)))
    return;
  const AccessInfo &before = launch.stamps.at(stampOf(word));
  // One of the values that lanes of one store write stays.
  if (stampOf(word) == stamp && info.isWrite && !info.isAgent && !(lanesOf(word) & ~together))
    return;
  FaultKind kind = FaultKind::Race;
  if (precedes(before, lanesOf(word))) {
    // Overwriting bytes after a generic read needs no proxy fence: a barrier is enough.
    bool crosses = info.isAsyncProxy && !before.isAsyncProxy && before.isWrite && !before.isOfAnyProxy;
    if (!crosses || knows(known->async, before, lanesOf(word)))
      return;
    kind = FaultKind::MissingProxyFence;
  } else if (seesEachOther(before) || beginsLoop(before)) {
    return;
  } else {
    bool own = before.block == info.block && before.warp == info.warp && lanesOf(word) == lanes;
    if ((before.isAgent && !before.isWrite) || (info.isAgent && !info.isWrite && own))
      kind = FaultKind::AsyncOverwrite;
  }
  // Two writes may write the same; a read before keeps its place in the report.
  if (found && !conflict.before.isWrite)
    return;
  found = true;
  conflict.before = before;
  conflict.lanesBefore = lanesOf(word);
  conflict.now = info;
  conflict.kind = kind;
  // Of several lanes, one that is not the earlier one.
  Mask others = lanes & ~lanesOf(word);
  conflict.lane = unsigned(__builtin_ctz(others ? others : lanes));
}

void Recorder::look(Word word, Sets &sets, unsigned bytes) {
  if (!isSet(word))
    return word ? lookAt(word, bytes) : void();
  for (Word one : sets.at(uint32_t(word)))
    lookAt(one, bytes);
}

/// Reads that come before this one, or are of the same threads, are superseded.
void Recorder::addRead(Word &word, Sets &sets, unsigned bytes) {
  Word mine = makeWord(bytes, stamp, lanes);
  auto supersedes = [&](Word one) {
    return !(bytesOf(one) & ~bytes) && precedes(launch.stamps.at(stampOf(one)), lanesOf(one));
  };
  auto sameAccess = [&](Word one) { return (one >> 32) == (mine >> 32); };
  if (!word || (!isSet(word) && supersedes(word))) {
    word = mine;
    return;
  }
  if (!isSet(word)) {
    if (sameAccess(word)) {
      word |= mine;
      return;
    }
    word = makeWord(0, launch.number, sets.add(word));
  }
  Sets::Set &set = sets.at(uint32_t(word));
  for (Word &one : set)
    if (sameAccess(one)) {
      one |= mine;
      return;
    }
  size_t kept = 0;
  for (Word one : set) {
    const AccessInfo &before = launch.stamps.at(stampOf(one));
    bool sameWarp =
        !info.isAgent && !before.isAgent && before.block == info.block && before.warp == info.warp;
    if (sameWarp && !(bytesOf(one) & ~bytes))
      one &= ~Word(lanes);
    if (lanesOf(one) && !supersedes(one))
      set[kept++] = one;
  }
  set.resize(kept);
  if (set.size() >= kMostReaders)
    set.erase(set.begin());
  set.push_back(mine);
}

/// Forgets the accesses to `bytes`. They are ordered before the access that replaces them, so
/// whatever races with them races with that one. Words for which `keeps` holds stay.
template <class F>
static void forgetBytes(Word &word, Sets &sets, unsigned bytes, F keeps) {
  auto without = [&](Word one) {
    if (keeps(one))
      return one;
    unsigned left = bytesOf(one) & ~bytes;
    return left ? makeWord(left, stampOf(one), lanesOf(one)) : Word(0);
  };
  if (!word || bytesOf(word)) {
    word = without(word);
    return;
  }
  Sets::Set &set = sets.at(uint32_t(word));
  size_t kept = 0;
  for (Word one : set)
    if (Word rest = without(one))
      set[kept++] = rest;
  set.resize(kept);
  if (kept)
    return;
  sets.drop(uint32_t(word));
  word = 0;
}

/// Updates do not race with each other, so one that does not read those before it does not
/// stand for them: of these the one that is furthest away is kept, for who reads what all
/// have made. 0: none.
Word Recorder::unorderedUpdate(Word word, Sets &sets, unsigned bytes) const {
  auto distance = [&](const AccessInfo &before) {
    if (before.block == info.block)
      return before.warp != info.warp || before.isAgent != info.isAgent ? 1 : 0;
    const bool sameCluster = launch.launch.config().cluster != std::array<uint32_t, 3>{1, 1, 1} &&
                             clusterOf(launch.launch, before.block) == clusterOf(launch.launch, info.block);
    return sameCluster ? 2 : 3;
  };
  Word furthest = 0;
  int most = 0;
  auto consider = [&](Word one) {
    if (most == 3 || !(bytesOf(one) & bytes) || !launch.stamps.has(stampOf(one)))
      return;
    const AccessInfo &before = launch.stamps.at(stampOf(one));
    const int own = before.isAtomic ? distance(before) : 0;
    if (own > most && !precedes(before, lanesOf(one))) {
      most = own;
      furthest = one;
    }
  };
  if (word && !isSet(word))
    consider(word);
  else if (word)
    for (Word one : sets.at(uint32_t(word)))
      consider(one);
  return furthest;
}

void Recorder::addWrite(Cell &cell, Sets &sets, unsigned bytes) {
  // But a plain write before atomic ones does not race with these where it is followed
  // by one of its own thread, which does not race with them either.
  const bool isStrong = info.strength != Level::None;
  const Word update = info.isBlind ? unorderedUpdate(cell.write, sets, bytes) : 0;
  forgetBytes(cell.read, sets, bytes, [](Word) { return false; });
  forgetBytes(cell.write, sets, bytes, [&](Word one) {
    return one == update || (isStrong && launch.stamps.has(stampOf(one)) &&
                             launch.stamps.at(stampOf(one)).strength == Level::None);
  });
  Word mine = makeWord(bytes, stamp, lanes);
  if (!cell.write) {
    cell.write = mine;
    return;
  }
  if (!isSet(cell.write))
    cell.write = makeWord(0, launch.number, sets.add(cell.write));
  sets.at(uint32_t(cell.write)).push_back(mine);
}

void Recorder::granule(Cell &cell, Sets &sets, unsigned bytes) {
  cell.write = current(cell.write);
  cell.read = current(cell.read);
  look(cell.write, sets, bytes);
  if (!info.isWrite)
    return addRead(cell.read, sets, bytes);
  look(cell.read, sets, bytes);
  addWrite(cell, sets, bytes);
}

bool Recorder::access(const Target &target, unsigned bytes, Mask which, const Knowledge &knowledge) {
  lanes = which;
  known = &knowledge;
  found = false;
  BlockRaces *shared = target.block ? racesOf(*target.block) : nullptr;
  // An access outside of memory is reported when it happens.
  if (shared ? target.address + bytes > target.block->sharedBytes()
             : !launch.launch.memory().inArena(target.address, bytes))
    return false;
  Sets &sets = shared ? shared->shadow.sets : launch.sets;
  std::unique_lock<std::mutex> lock;
  uint64_t locked = ~uint64_t(0);
  for (uint64_t at = target.address, end = at + bytes; at < end;) {
    unsigned first = unsigned(at % 4), count = unsigned(std::min<uint64_t>(4 - first, end - at));
    if (!shared && launch.severalWorkers && at / 4096 != locked) {
      locked = at / 4096;
      lock = std::unique_lock<std::mutex>();
      lock = std::unique_lock<std::mutex>(launch.pages[locked % launch.pages.size()]);
    }
    granule(shared ? shared->shadow.cell(uint32_t(at)) : launch.shadow.cell(at), sets,
            ((1u << count) - 1) << first);
    at += count;
  }
  if (found) {
    conflict.target = target;
    conflict.bytes = bytes;
  }
  return found;
}
