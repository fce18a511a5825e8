// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages between ranks. The messages of a pair of ranks arrive in the order in which they were sent, so
// pieces need no numbers: a description of the collective goes first, with a small piece in the same
// message, then its other pieces.

#include "MessageChannel.h"
#include "../../core/Status.h"
#include "../Missing.h"
#include "../Waiting.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <sched.h>
#include <unistd.h>

using namespace fp8rt;
using namespace fp8rt::collectives;
using Clock = std::chrono::steady_clock;
using Lock = std::lock_guard<std::mutex>;

namespace {

constexpr uint64_t kCapacity = 4 << 20;
constexpr uint64_t kFailureBytes = 2048;
/// The largest piece in bytes that goes in one message with the description of its collective.
constexpr uint64_t kSmallPiece = 96 << 10;

enum Tag { kFirst = 1, kPiece = 2, kFailure = 3, kGoodbye = 4, kNotice = 5 };

/// After that many seconds of giving way, a waiting rank sleeps between its looks.
constexpr double kPatience = 0.002;
/// How many seconds after its deadline a rank listens whether those that it misses wait for others too.
constexpr double kListening = 0.2;
/// How many seconds a rank waits for the others at its end after a failure.
constexpr double kFarewell = 1;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

static_assert(sizeof(Description) % alignof(std::max_align_t) == 0, "elements follow it in a message");

bool isFirst(const Piece &piece) { return (piece.stamp & 0xffffff) == 1; }

/// Returns whether a piece goes in the message of its collective's description.
bool isWithDescription(const Piece &piece) {
  return isFirst(piece) && piece.route != Route::Parts && piece.bytes <= kSmallPiece;
}

/// Returns whether this rank sends a piece, or a part of one, to a member of the group.
bool gives(const Collective &collective, const Piece &piece, uint32_t to) {
  if (piece.route == Route::Root)
    return collective.index == static_cast<uint32_t>(collective.description.root);
  uint32_t count = collective.groupSize();
  return piece.route != Route::Shift ||
         to == (2ull * collective.index + count - collective.shiftSource()) % count;
}

/// Returns whether a member of the group sends a piece, or a part of one, to this rank.
bool takes(const Collective &collective, const Piece &piece, uint32_t from) {
  if (piece.route == Route::Root)
    return from == static_cast<uint32_t>(collective.description.root);
  return piece.route != Route::Shift || from == collective.shiftSource();
}

} // namespace

MessageChannel::MessageChannel(std::unique_ptr<Messenger> given, double deadline)
    : messenger(std::move(given)), self(messenger->rank()), ranks(messenger->size()), limit(deadline),
      failureReceived(kFailureBytes), failureSent(kFailureBytes), goodbyes(ranks + 1), standings(ranks),
      areLate(ranks) {
  failureRequest = messenger->receive(failureReceived.data(), kFailureBytes, Messenger::kAnyRank, kFailure);
  noticeRequest = messenger->receive(&noticeReceived, sizeof(Notice), Messenger::kAnyRank, kNotice);
  for (uint32_t other = 0; other < ranks; ++other)
    if (other != self)
      receive(expectedGoodbyes, &goodbyes[other], 1, other, kGoodbye);
}

/// MPI_Finalize waits without an end: so this rank first waits a while until all have come here.
MessageChannel::~MessageChannel() {
  try {
    sayGoodbye();
  } catch (const Error &) { // nothing can be done, and the messenger is left as it is
  }
}

void MessageChannel::sayGoodbye() {
  // After a failure the others have been told, and come soon or not at all.
  double seconds = reason.empty() ? limit : std::min(limit, kFarewell);
  Clock::time_point start = Clock::now();
  auto isLate = [&] { return secondsSince(start) > seconds; };
  auto isLost = [&](const Message &message) { return messenger->isGone(message.rank); };
  auto areThrough = [&](Messages &messages) {
    messages.erase(std::remove_if(messages.begin(), messages.end(), isLost), messages.end());
    return areComplete(messages);
  };
  for (Messages *last : {&buffers[0].sent, &buffers[1].sent, &noticesSent})
    for (; !areThrough(*last) && !isLate();)
      usleep(50);
  Messages messages;
  for (uint32_t other = 0; other < ranks; ++other)
    if (other != self)
      send(messages, &goodbyes[ranks], 1, other, kGoodbye);
  while (!areThrough(messages) || !areThrough(expectedGoodbyes)) {
    if (isLate())
      return; // mpirun notices that MPI_Finalize was not called, and ends all ranks
    usleep(50);
  }
  messenger->end();
}

uint64_t MessageChannel::capacity() const { return kCapacity; }

/// Returns whether this or another rank has failed. The caller holds the lock.
bool MessageChannel::lookForFailure() {
  if (reason.empty() && messenger->test(failureRequest)) {
    failureReceived.back() = '\0';
    reason = failureReceived.data();
  }
  return !reason.empty();
}

/// Throws if this or another rank has failed. The caller holds the lock.
void MessageChannel::checkFailure() {
  if (lookForFailure())
    fail(FP8RT_RANKS, reason);
}

std::string MessageChannel::failure() {
  Lock lock(mutex);
  lookForFailure();
  return reason;
}

void MessageChannel::tellFailure(const std::string &why) noexcept {
  Lock lock(mutex);
  if (hasTold)
    return;
  hasTold = true;
  bool isOwn = reason.empty(); // others have told everybody of theirs
  if (!isOwn)
    return;
  reason = why.substr(0, kFailureBytes - 1);
  std::strncpy(failureSent.data(), reason.c_str(), kFailureBytes - 1);
  for (uint32_t other = 0; other < ranks; ++other) {
    if (other == self)
      continue;
    try {
      Messenger::Request request = messenger->send(failureSent.data(), kFailureBytes, other, kFailure);
      for (int looks = 0; looks < 1000; ++looks)
        if (messenger->test(request))
          break;
    } catch (const Error &) { // the rank is gone, and needs no reason
    }
  }
}

/// Takes the standings that have arrived. The caller holds the lock.
void MessageChannel::takeNotices() {
  while (messenger->test(noticeRequest)) {
    if (noticeReceived.rank < ranks) {
      standings[noticeReceived.rank] = noticeReceived.standing;
      areLate[noticeReceived.rank] = noticeReceived.isLate;
    }
    noticeRequest = messenger->receive(&noticeReceived, sizeof(Notice), Messenger::kAnyRank, kNotice);
  }
}

void MessageChannel::announce(const Standing &own) {
  Lock lock(mutex);
  standings[self] = own;
  if (!areComplete(noticesSent))
    return; // the memory of the last one is in use
  noticeSent = {self, 0, own};
  for (uint32_t other = 0; other < ranks; ++other)
    if (other != self)
      send(noticesSent, &noticeSent, sizeof(Notice), other, kNotice);
}

Standing MessageChannel::standing(uint32_t rank) {
  Lock lock(mutex);
  takeNotices();
  return standings[rank];
}

/// The caller holds the lock.
Absence MessageChannel::lookForAbsence(uint32_t rank) {
  areComplete(expectedGoodbyes);
  bool isExpected = rank == self || std::any_of(expectedGoodbyes.begin(), expectedGoodbyes.end(),
                                                [&](const Message &other) { return other.rank == rank; });
  return !isExpected ? Absence::Ended : messenger->isGone(rank) ? Absence::Gone : Absence::None;
}

Absence MessageChannel::absence(uint32_t rank) {
  Lock lock(mutex);
  return lookForAbsence(rank);
}

void MessageChannel::send(Messages &messages, const void *data, uint64_t bytes, uint32_t to, int tag) {
  messages.push_back({messenger->send(data, bytes, to, tag), to});
}

void MessageChannel::receive(Messages &messages, void *data, uint64_t bytes, uint32_t from, int tag) {
  messages.push_back({messenger->receive(data, bytes, static_cast<int>(from), tag), from});
}

/// Removes the messages that are complete; returns whether that are all. The caller holds the lock.
bool MessageChannel::areComplete(Messages &messages) {
  messages.erase(std::remove_if(messages.begin(), messages.end(),
                                [&](Message &message) { return messenger->test(message.request); }),
                 messages.end());
  return messages.empty();
}

/// Throws if a rank that a message is from, or to, will never send or take it. The caller holds the lock.
void MessageChannel::checkAbsence(Messages &messages, const Wait &wait) {
  // A rank's messages come before its goodbye: so they are looked for after it.
  std::vector<Absence> absences(ranks);
  for (const Message &message : messages)
    absences[message.rank] = lookForAbsence(message.rank);
  if (areComplete(messages))
    return;
  for (const Message &message : messages)
    if (absences[message.rank] != Absence::None)
      fail(FP8RT_RANKS, describeRanks({message.rank}) + " did not " + wait.text() + ": " +
                            describe(absences[message.rank]));
}

void MessageChannel::waitFor(Messages &messages, const Wait &wait) {
  Waiting waiting;
  bool isLate = false;
  for (double waited = 0;; waited = waiting.look()) {
    {
      Lock lock(mutex);
      if (areComplete(messages))
        break;
      checkFailure();
      if (waited > kPatience)
        checkAbsence(messages, wait);
      if (waited > limit && !isLate) {
        isLate = true;
        tellLateness(true);
      }
    }
    checkLate(messages, wait, waited - limit);
    waited < kPatience ? sched_yield() : usleep(50);
  }
  Lock lock(mutex);
  if (isLate)
    tellLateness(false);
}

/// Tells the others whether this rank waits beyond its deadline. The caller holds the lock.
void MessageChannel::tellLateness(bool isLate) {
  const Notice &notice = latenesses.emplace_back(Notice{self, isLate, standings[self]});
  for (uint32_t other = 0; other < ranks; ++other)
    if (other != self)
      send(noticesSent, &notice, sizeof(Notice), other, kNotice);
}

/// Fails if the deadline has passed since `late` seconds. Ranks that wait too are not to blame: they name
/// those that they wait for.
void MessageChannel::checkLate(const Messages &messages, const Wait &wait, double late) {
  if (late < kListening)
    return;
  std::vector<uint32_t> missing, idle;
  for (const Message &message : messages)
    missing.push_back(message.rank);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  {
    Lock lock(mutex);
    takeNotices();
    std::copy_if(missing.begin(), missing.end(), std::back_inserter(idle),
                 [&](uint32_t rank) { return !areLate[rank]; });
  }
  if (idle.empty() && late < kBlameOfWaiting)
    return;
  tellFailure(describeRanks(idle.empty() ? missing : idle) + " did not " + wait.text() + " within " +
              describeSeconds(limit));
  fail(FP8RT_RANKS, failure());
}

char *MessageChannel::outgoing(const Piece &piece, bool waits) {
  Buffer &buffer = buffers[piece.buffer];
  if (waits) {
    waitFor(buffer.sent, {"complete", last});
  } else {
    Lock lock(mutex);
    if (buffer.isInUse || !areComplete(buffer.sent))
      return nullptr;
  }
  buffer.outgoing.resize(sizeof(Description) + kCapacity + 8 * ranks); // parts are rounded up to elements
  return buffer.outgoing.data() + sizeof(Description);
}

/// Exchanges descriptions, and the piece where it is small.
void MessageChannel::postFirst(const Collective &collective, const Piece &piece, Buffer &buffer) {
  uint32_t count = collective.groupSize();
  std::memcpy(buffer.outgoing.data(), &collective.description, sizeof(Description));
  buffer.firsts.resize(std::max<size_t>(buffer.firsts.size(), count));
  for (uint32_t step = 1; step < count; ++step) {
    uint32_t to = (collective.index + step) % count, from = (collective.index + count - step) % count;
    buffer.firsts[from].resize(sizeof(Description) +
                               kSmallPiece); // what a rank elsewhere sends may be longer
    receive(buffer.receivedFirsts, buffer.firsts[from].data(), buffer.firsts[from].size(),
            collective.members[from], kFirst);
    bool isWhole = isWithDescription(piece) && gives(collective, piece, to);
    send(buffer.sent, buffer.outgoing.data(), sizeof(Description) + (isWhole ? piece.bytes : 0),
         collective.members[to], kFirst);
  }
}

void MessageChannel::post(const Collective &collective, const Piece &piece) {
  Lock lock(mutex);
  checkFailure(); // others could complete the collective with the piece of a rank that has failed
  Buffer &buffer = buffers[piece.buffer];
  buffer.isInUse = true;
  if (isFirst(piece))
    postFirst(collective, piece, buffer);
  if (isWithDescription(piece))
    return;
  uint32_t count = collective.groupSize();
  const char *outgoing = buffer.outgoing.data() + sizeof(Description);
  buffer.incoming.resize(std::max<size_t>(buffer.incoming.size(), count));
  for (uint32_t step = 1; step < count && piece.bytes; ++step) {
    uint32_t to = (collective.index + step) % count, from = (collective.index + count - step) % count;
    if (takes(collective, piece, from)) {
      buffer.incoming[from].resize(std::max<size_t>(buffer.incoming[from].size(), piece.bytes));
      receive(buffer.received, buffer.incoming[from].data(), piece.bytes, collective.members[from], kPiece);
    }
    if (gives(collective, piece, to))
      send(buffer.sent, outgoing + (piece.route == Route::Parts ? to * piece.bytes : 0), piece.bytes,
           collective.members[to], kPiece);
  }
}

void MessageChannel::await(const Collective &collective, const Piece &piece) {
  Buffer &buffer = buffers[piece.buffer];
  if (isFirst(piece)) {
    waitFor(buffer.receivedFirsts, {"arrive at", collective.description});
    checkSame(collective, buffer);
  }
  waitFor(buffer.received, {"arrive at", collective.description});
}

/// Throws if a rank of the group is in another collective.
void MessageChannel::checkSame(const Collective &collective, const Buffer &buffer) const {
  for (uint32_t member = 0; member < collective.groupSize(); ++member) {
    if (member == collective.index)
      continue;
    Description other;
    std::memcpy(&other, buffer.firsts[member].data(), sizeof(Description));
    if (!other.isSameAs(collective.description))
      fail(FP8RT_RANKS, describeDifference(collective.members[member], other, self, collective.description));
  }
}

const char *MessageChannel::incoming(const Collective &collective, const Piece &piece, uint32_t member) {
  Buffer &buffer = buffers[piece.buffer];
  if (member == collective.index)
    return buffer.outgoing.data() + sizeof(Description) +
           (piece.route == Route::Parts ? member * piece.bytes : 0);
  return isWithDescription(piece) ? buffer.firsts[member].data() + sizeof(Description)
                                  : buffer.incoming[member].data();
}

void MessageChannel::release(const Collective &collective, const Piece &piece) {
  buffers[piece.buffer].isInUse = false;
  last = collective.description;
}
