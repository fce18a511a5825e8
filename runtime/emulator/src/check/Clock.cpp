// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Joining vector clocks.

#include "Clock.h"

using namespace fp8emu;
using namespace fp8emu::check;

static bool covers(const std::vector<uint32_t> &a, const std::vector<uint32_t> &b, uint32_t floor) {
  for (size_t i = 0; i < b.size(); ++i)
    if (b[i] > floor && (i >= a.size() || a[i] < b[i]))
      return false;
  return true;
}

static void maximize(std::vector<uint32_t> &a, const std::vector<uint32_t> &b) {
  if (a.size() < b.size())
    a.resize(b.size());
  for (size_t i = 0; i < b.size(); ++i)
    a[i] = std::max(a[i], b[i]);
}

bool Segment::covers(const Segment &other) const {
  if (floor < other.floor)
    return false;
  return ::covers(threads, other.threads, floor) && ::covers(queues, other.queues, 0);
}

void Segment::join(const Segment &other) {
  floor = std::max(floor, other.floor);
  maximize(threads, other.threads);
  maximize(queues, other.queues);
}

namespace {
using Entry = std::pair<uint32_t, std::shared_ptr<Segment>>;

auto lowerBound(std::vector<Entry> &entries, uint32_t block) {
  return std::lower_bound(entries.begin(), entries.end(), block,
                          [](const Entry &entry, uint32_t number) { return entry.first < number; });
}

/// Before a change: nobody else holds it.
template <class T>
T &own(std::shared_ptr<T> &ref) {
  if (!ref)
    ref = std::make_shared<T>();
  else if (ref.use_count() > 1)
    ref = std::make_shared<T>(*ref);
  return *ref;
}
} // namespace

const Segment *Clock::find(uint32_t block) const {
  if (blocks.size() == 1)
    return blocks[0].first == block ? blocks[0].second.get() : nullptr;
  auto found = lowerBound(const_cast<Clock *>(this)->blocks, block);
  return found != blocks.end() && found->first == block ? found->second.get() : nullptr;
}

bool Clock::covers(const Clock &other) const {
  if (blocks.size() < other.blocks.size())
    return false;
  for (const auto &[block, segment] : other.blocks) {
    const Segment *mine = find(block);
    if (mine != segment.get() && !(mine && mine->covers(*segment)))
      return false;
  }
  return true;
}

void check::join(ClockRef &into, const ClockRef &more) {
  if (!more || into == more || (into && into->covers(*more)))
    return;
  // Where one holds all of the other, both share it from here on.
  if (!into || more->covers(*into)) {
    into = more;
    return;
  }
  Clock &clock = own(into);
  for (const auto &[block, segment] : more->blocks) {
    auto place = lowerBound(clock.blocks, block);
    if (place == clock.blocks.end() || place->first != block)
      clock.blocks.insert(place, {block, segment});
    else if (place->second != segment)
      own(place->second).join(*segment);
  }
}

Segment &check::change(ClockRef &clock, uint32_t block) {
  Clock &mine = own(clock);
  auto place = lowerBound(mine.blocks, block);
  if (place == mine.blocks.end() || place->first != block)
    place = mine.blocks.insert(place, {block, std::make_shared<Segment>()});
  return own(place->second);
}

void check::addThreads(ClockRef &clock, uint32_t block, unsigned first, Mask lanes, uint32_t epoch) {
  if (!lanes)
    return;
  Segment &segment = change(clock, block);
  unsigned last = first + kLanes - unsigned(__builtin_clz(lanes));
  if (segment.threads.size() < last)
    segment.threads.resize(last);
  for (; lanes; lanes &= lanes - 1) {
    uint32_t &known = segment.threads[first + unsigned(__builtin_ctz(lanes))];
    known = std::max(known, epoch);
  }
}

void check::addQueue(ClockRef &clock, uint32_t block, unsigned queue, uint32_t count) {
  const Segment *known = clock ? clock->find(block) : nullptr;
  if (known && known->queue(queue) >= count)
    return;
  Segment &segment = change(clock, block);
  if (segment.queues.size() <= queue)
    segment.queues.resize(queue + 1);
  segment.queues[queue] = std::max(segment.queues[queue], count);
}
