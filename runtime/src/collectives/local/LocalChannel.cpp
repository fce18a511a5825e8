// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Waiting for the ranks of this machine, and finding out which of them will not come.

#include "LocalChannel.h"
#include "../../core/Status.h"
#include "../Missing.h"
#include "../Waiting.h"

#include <algorithm>
#include <optional>
#include <sched.h>

using namespace fp8rt;
using namespace fp8rt::collectives;

namespace {

/// How often a rank looks before it sleeps: giving way to the others costs less than sleeping.
constexpr int kLooks = 200;
/// How often a sleeping rank looks whether the others are alive.
constexpr double kNap = 0.05; // seconds

Clock::time_point inSeconds(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

} // namespace

LocalChannel::LocalChannel(int file, uint32_t rank, double deadline)
    : memory(file), self(rank), limit(deadline) {
  memory.enter(rank);
}

/// The parts of an all_reduce are rounded up to whole elements, of at most 8 bytes.
uint64_t LocalChannel::capacity() const { return SharedMemory::pieceBytes() - 8 * size(); }

bool LocalChannel::isFree(const Use &use) const {
  return std::all_of(use.readers.begin(), use.readers.end(),
                     [&](uint32_t reader) { return memory.rank(reader).released.load() >= use.stamp; });
}

char *LocalChannel::outgoing(const Piece &piece, bool waits) {
  Use &use = uses[piece.buffer];
  if (!isFree(use)) {
    if (!waits)
      return nullptr;
    for (uint32_t reader : use.readers)
      memory.rank(reader).releaseWaiters.fetch_add(1);
    waitFor(use.readers, "complete", last,
            [&](const SharedMemory::Rank &rank) { return rank.released.load() >= use.stamp; });
    for (uint32_t reader : use.readers) // after a failure the counts do not matter
      memory.rank(reader).releaseWaiters.fetch_sub(1);
  }
  return memory.piece(self, piece.buffer);
}

void LocalChannel::post(const Collective &collective, const Piece &piece) {
  SharedMemory::Rank &own = memory.rank(self);
  own.descriptions[piece.stamp >> 24 & 3] = collective.description;
  uses[piece.buffer].readers = collective.members;
  uses[piece.buffer].stamp = piece.stamp;
  own.posted.store(piece.stamp);
  memory.announce(self);
}

void LocalChannel::await(const Collective &collective, const Piece &piece) {
  if (memory.hasFailed())
    fail(FP8RT_RANKS, memory.failure());
  auto isThere = [&](const SharedMemory::Rank &rank) { return rank.posted.load() >= piece.stamp; };
  bool allThere = std::all_of(collective.members.begin(), collective.members.end(),
                              [&](uint32_t member) { return isThere(memory.rank(member)); });
  if (!allThere)
    waitFor(collective.members, "arrive at", collective.description, isThere);
  if ((piece.stamp & 0xffffff) == 1)
    checkSame(collective, piece);
}

/// Throws if a rank of the group is in another collective.
void LocalChannel::checkSame(const Collective &collective, const Piece &piece) const {
  for (uint32_t member : collective.members) {
    const Description &other = memory.rank(member).descriptions[piece.stamp >> 24 & 3];
    if (!other.isSameAs(collective.description))
      fail(FP8RT_RANKS, describeDifference(member, other, self, collective.description));
  }
}

const char *LocalChannel::incoming(const Collective &collective, const Piece &piece, uint32_t member) {
  const char *piecesOfMember = memory.piece(collective.members[member], piece.buffer);
  return piece.route == Route::Parts ? piecesOfMember + collective.index * piece.bytes : piecesOfMember;
}

void LocalChannel::release(const Collective &collective, const Piece &piece) {
  last = collective.description;
  memory.rank(self).released.store(piece.stamp);
  if (memory.rank(self).releaseWaiters.load())
    memory.announce(self);
}

void LocalChannel::tellFailure(const std::string &reason) noexcept { memory.fail(reason); }

void LocalChannel::announce(const Standing &own) {
  SharedMemory::Rank &rank = memory.rank(self);
  rank.announcements[own.number & 3] = own.at;
  rank.announced.store(own.number);
  rank.asks.store(own.asks);
}

Standing LocalChannel::standing(uint32_t other) {
  const SharedMemory::Rank &rank = memory.rank(other);
  uint64_t number = rank.announced.load();
  return {number, rank.announcements[number & 3], rank.asks.load()};
}

Absence LocalChannel::absence(uint32_t other) {
  bool isGone = other != self && memory.isGone(other); // a rank does not see a lock of its own
  bool hasLeft = memory.rank(other).presence == SharedMemory::Presence::Left;
  return isGone ? Absence::Gone : hasLeft ? Absence::Ended : Absence::None;
}

/// Waits until the condition holds for all of the ranks; throws if that will not happen, or not in time.
void LocalChannel::waitFor(const std::vector<uint32_t> &ranks, const char *verb,
                           const Description &collective, const Condition &isThere) {
  Waiting waiting;
  struct Mark {
    std::atomic<uint32_t> &waits;
    ~Mark() { waits = 0; }
  };
  std::optional<Mark> mark;
  for (uint32_t other : ranks) {
    SharedMemory::Rank &rank = memory.rank(other);
    Clock::time_point patience = inSeconds(kNap); // giving way takes long where many programs run
    for (int looks = 0; looks < kLooks && !isThere(rank) && Clock::now() < patience; ++looks)
      sched_yield();
    while (true) {
      uint32_t changes = rank.changes.load();
      if (isThere(rank))
        break;
      if (memory.hasFailed())
        fail(FP8RT_RANKS, memory.failure());
      if (!mark) {
        mark.emplace(Mark{memory.rank(self).waits});
        mark->waits = 1;
      }
      double left = limit - waiting.look();
      Clock::time_point end = inSeconds(left > 0 ? std::min(kNap, left) : kNap);
      memory.sleep(other, changes, end);
      if (!isThere(rank) && Clock::now() >= end)
        checkMissing(ranks, std::string(verb) + " " + collective.text(), isThere, waiting.look() - limit);
    }
  }
}

/// Throws if one of the ranks that are missing is gone or has ended, or if the deadline has passed since
/// `late` seconds, unless they wait for others themselves: then these are to blame, and are named there.
void LocalChannel::checkMissing(const std::vector<uint32_t> &ranks, const std::string &what,
                                const Condition &isThere, double late) {
  std::vector<uint32_t> missing, idle, gone, left;
  for (uint32_t other : ranks) {
    Absence absent = absence(other);
    if (isThere(memory.rank(other))) // looked at last: it may have arrived and ended meanwhile
      continue;
    missing.push_back(other);
    if (!memory.rank(other).waits)
      idle.push_back(other);
    if (absent == Absence::Gone)
      gone.push_back(other);
    if (absent == Absence::Ended)
      left.push_back(other);
  }
  if (missing.empty())
    return;
  if (late > 0 && !idle.empty())
    missing = idle;
  bool isLate = late > (idle.empty() ? kBlameOfWaiting : 0);
  std::string reason;
  if (!gone.empty())
    reason = describeRanks(gone) + " did not " + what + ": " + describe(Absence::Gone);
  else if (!left.empty())
    reason = describeRanks(left) + " did not " + what + ": " + describe(Absence::Ended);
  else if (isLate)
    reason = describeRanks(missing) + " did not " + what + " within " + describeSeconds(limit);
  else
    return;
  for (uint32_t other : missing)
    if (memory.rank(other).presence == SharedMemory::Presence::Present)
      reason += describeStopped(memory.rank(other).process);
  memory.fail(reason); // the first reason counts on all ranks
  fail(FP8RT_RANKS, memory.failure());
}
