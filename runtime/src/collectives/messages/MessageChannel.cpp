// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages between ranks. Those of a pair of ranks arrive in the order in which they were sent, so pieces
// need no numbers: a description of the collective goes first, then its pieces.

#include "MessageChannel.h"
#include "../../core/Status.h"
#include "../Missing.h"
#include "../Waiting.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sched.h>
#include <unistd.h>

using namespace fp8rt;
using namespace fp8rt::collectives;
using Clock = std::chrono::steady_clock;
using Lock = std::lock_guard<std::mutex>;

namespace {

constexpr uint64_t kCapacity = 4 << 20;
constexpr uint64_t kFailureBytes = 2048;

enum Tag { kDescription = 1, kPiece = 2, kFailure = 3, kGoodbye = 4, kNotice = 5 };

/// After that many seconds of giving way, a waiting rank sleeps between its looks.
constexpr double kPatience = 0.002;
/// How many seconds a rank waits for the others at its end after a failure.
constexpr double kFarewell = 1;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace

MessageChannel::MessageChannel(std::unique_ptr<Messenger> given, double deadline)
    : messenger(std::move(given)), self(messenger->rank()), ranks(messenger->size()), limit(deadline),
      failureReceived(kFailureBytes), failureSent(kFailureBytes), goodbyes(ranks + 1), standings(ranks) {
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
    if (noticeReceived.rank < ranks)
      standings[noticeReceived.rank] = noticeReceived.standing;
    noticeRequest = messenger->receive(&noticeReceived, sizeof(Notice), Messenger::kAnyRank, kNotice);
  }
}

void MessageChannel::announce(const Standing &own) {
  Lock lock(mutex);
  standings[self] = own;
  if (!areComplete(noticesSent))
    return; // the memory of the last one is in use
  noticeSent = {self, own};
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

/// Looks for messages; returns whether all are complete. Throws if some never will be; whether ranks have
/// ended is looked at only where `looksForAbsent`.
bool MessageChannel::look(Messages &messages, const std::string &what, bool looksForAbsent) {
  Lock lock(mutex);
  // A rank's messages come before its goodbye: so they are looked for after it.
  std::vector<Absence> absences(ranks);
  for (const Message &message : messages)
    absences[message.rank] = looksForAbsent ? lookForAbsence(message.rank) : Absence::None;
  if (areComplete(messages))
    return true;
  checkFailure();
  for (const Message &message : messages)
    if (absences[message.rank] != Absence::None)
      fail(FP8RT_RANKS,
           describeRanks({message.rank}) + " did not " + what + ": " + describe(absences[message.rank]));
  return false;
}

void MessageChannel::waitFor(Messages &messages, const char *verb, const Description &collective) {
  if (messages.empty())
    return;
  std::string what = std::string(verb) + " " + collective.text();
  Waiting waiting;
  for (double waited = 0; !look(messages, what, waited > kPatience); waited = waiting.look()) {
    if (waited > limit)
      return failLate(messages, what);
    waited < kPatience ? sched_yield() : usleep(50);
  }
}

void MessageChannel::failLate(const Messages &messages, const std::string &what) {
  std::vector<uint32_t> missing;
  for (const Message &message : messages)
    missing.push_back(message.rank);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  tellFailure(describeRanks(missing) + " did not " + what + " within " + describeSeconds(limit));
  fail(FP8RT_RANKS, failure());
}

char *MessageChannel::outgoing(const Piece &piece, bool waits) {
  Buffer &buffer = buffers[piece.buffer];
  if (waits) {
    waitFor(buffer.sent, "complete", last);
  } else {
    Lock lock(mutex);
    if (buffer.isInUse || !areComplete(buffer.sent))
      return nullptr;
  }
  buffer.outgoing.resize(kCapacity + 8 * ranks); // parts are rounded up to elements
  return buffer.outgoing.data();
}

void MessageChannel::postDescriptions(const Collective &collective, Buffer &buffer) {
  buffer.own = collective.description;
  buffer.descriptions.assign(collective.groupSize(), buffer.own);
  for (uint32_t member = 0; member < collective.groupSize(); ++member) {
    uint32_t other = collective.members[member];
    if (other == self)
      continue;
    receive(buffer.receivedDescriptions, &buffer.descriptions[member], sizeof(Description), other,
            kDescription);
    send(buffer.sent, &buffer.own, sizeof(Description), other, kDescription);
  }
}

void MessageChannel::post(const Collective &collective, const Piece &piece) {
  Lock lock(mutex);
  checkFailure(); // others could complete the collective with the piece of a rank that has failed
  Buffer &buffer = buffers[piece.buffer];
  buffer.isInUse = true;
  if ((piece.stamp & 0xffffff) == 1)
    postDescriptions(collective, buffer);
  uint32_t count = collective.groupSize(), index = collective.index;
  auto root = static_cast<uint32_t>(collective.description.root);
  auto shifted = static_cast<uint32_t>((2ull * index + count - collective.shiftSource()) % count); // to whom
  buffer.incoming.resize(std::max<size_t>(buffer.incoming.size(), count));
  for (uint32_t step = 1; step < count && piece.bytes; ++step) {
    uint32_t to = (index + step) % count, from = (index + count - step) % count;
    bool gives = piece.route == Route::Root ? index == root : piece.route != Route::Shift || to == shifted;
    bool takes = piece.route == Route::Root ? from == root
                                            : piece.route != Route::Shift || from == collective.shiftSource();
    if (takes) {
      buffer.incoming[from].resize(std::max<size_t>(buffer.incoming[from].size(), piece.bytes));
      receive(buffer.received, buffer.incoming[from].data(), piece.bytes, collective.members[from], kPiece);
    }
    if (gives)
      send(buffer.sent, buffer.outgoing.data() + (piece.route == Route::Parts ? to * piece.bytes : 0),
           piece.bytes, collective.members[to], kPiece);
  }
}

void MessageChannel::await(const Collective &collective, const Piece &piece) {
  Buffer &buffer = buffers[piece.buffer];
  if ((piece.stamp & 0xffffff) == 1) {
    waitFor(buffer.receivedDescriptions, "arrive at", collective.description);
    checkSame(collective, buffer);
  }
  waitFor(buffer.received, "arrive at", collective.description);
}

/// Throws if a rank of the group is in another collective.
void MessageChannel::checkSame(const Collective &collective, const Buffer &buffer) const {
  for (uint32_t member = 0; member < collective.groupSize(); ++member)
    if (!buffer.descriptions[member].isSameAs(buffer.own))
      fail(FP8RT_RANKS,
           describeDifference(collective.members[member], buffer.descriptions[member], self, buffer.own));
}

const char *MessageChannel::incoming(const Collective &collective, const Piece &piece, uint32_t member) {
  Buffer &buffer = buffers[piece.buffer];
  if (member != collective.index)
    return buffer.incoming[member].data();
  return buffer.outgoing.data() + (piece.route == Route::Parts ? member * piece.bytes : 0);
}

void MessageChannel::release(const Collective &collective, const Piece &piece) {
  buffers[piece.buffer].isInUse = false;
  last = collective.description;
}
