// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages between ranks. Those of a pair of ranks arrive in the order in which they were sent, so pieces
// need no numbers: a description of the collective goes first, then its pieces.

#include "MpiChannel.h"
#include "../../core/Status.h"
#include "../Missing.h"

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

enum Tag { kDescription = 1, kPiece = 2, kFailure = 3, kGoodbye = 4 };

/// After that many seconds of giving way, a waiting rank sleeps between its looks.
constexpr double kPatience = 0.002;
/// How many seconds a rank waits for the others at its end after a failure.
constexpr double kFarewell = 1;

} // namespace

MpiChannel::MpiChannel(double deadline)
    : mpi(mpi::Mpi::get()), deadline(deadline), failureReceived(kFailureBytes), failureSent(kFailureBytes) {
  int number = 0, count = 0;
  mpi.check(mpi.commDup(mpi.world, &comm), "MPI_Comm_dup");
  mpi.check(mpi.setErrhandler(comm, mpi.errorsReturn), "MPI_Comm_set_errhandler");
  mpi.check(mpi.commRank(comm, &number), "MPI_Comm_rank");
  mpi.check(mpi.commSize(comm, &count), "MPI_Comm_size");
  self = static_cast<uint32_t>(number);
  ranks = static_cast<uint32_t>(count);
  listenForFailure();
}

/// MPI_Finalize waits without an end: so this rank first waits a while until all have come here.
MpiChannel::~MpiChannel() {
  try {
    Messages messages;
    std::vector<char> bytes(ranks + 1);
    for (uint32_t other = 0; other < ranks; ++other) {
      if (other == self)
        continue;
      receive(messages, &bytes[other], 1, other, kGoodbye);
      send(messages, &bytes[ranks], 1, other, kGoodbye);
    }
    // After a failure the others have been told, and come soon or not at all.
    double seconds = failure.empty() ? deadline : std::min(deadline, kFarewell);
    Clock::time_point start = Clock::now();
    while (!areComplete(messages)) {
      std::chrono::duration<double> waited = Clock::now() - start;
      if (waited.count() > seconds)
        return; // mpirun notices that MPI_Finalize was not called, and ends all ranks
      usleep(50);
    }
    mpi.end();
  } catch (const Error &) { // nothing can be done, and MPI is left as it is
  }
}

uint64_t MpiChannel::capacity() const { return kCapacity; }

void MpiChannel::listenForFailure() {
  mpi.check(mpi.irecv(failureReceived.data(), kFailureBytes, mpi.byte, mpi::kAnySource, kFailure, comm,
                      &failureRequest),
            "MPI_Irecv");
}

/// Throws if this or another rank has failed. The caller holds the lock.
void MpiChannel::checkFailure() {
  int hasArrived = 0;
  if (failure.empty()) {
    mpi.check(mpi.test(&failureRequest, &hasArrived, nullptr), "MPI_Test");
    if (!hasArrived)
      return;
    failureReceived.back() = '\0';
    failure = failureReceived.data();
  }
  fail(FP8RT_RANKS, failure);
}

void MpiChannel::tellFailure(const std::string &reason) noexcept {
  Lock lock(mutex);
  if (hasTold)
    return;
  hasTold = true;
  bool isOwn = failure.empty(); // others have told everybody of theirs
  if (!isOwn)
    return;
  failure = reason.substr(0, kFailureBytes - 1);
  std::strncpy(failureSent.data(), failure.c_str(), kFailureBytes - 1);
  for (uint32_t other = 0; other < ranks; ++other) {
    mpi::Request request = nullptr;
    int isSent = other == self;
    if (!isSent && mpi.isend(failureSent.data(), kFailureBytes, mpi.byte, static_cast<int>(other), kFailure,
                             comm, &request))
      continue;
    for (int looks = 0; !isSent && looks < 1000; ++looks)
      if (mpi.test(&request, &isSent, nullptr))
        break;
  }
}

void MpiChannel::send(Messages &messages, const void *data, uint64_t bytes, uint32_t to, int tag) {
  Message message = {nullptr, to};
  mpi.check(
      mpi.isend(data, static_cast<int>(bytes), mpi.byte, static_cast<int>(to), tag, comm, &message.request),
      "MPI_Isend");
  messages.push_back(message);
}

void MpiChannel::receive(Messages &messages, void *data, uint64_t bytes, uint32_t from, int tag) {
  Message message = {nullptr, from};
  mpi.check(
      mpi.irecv(data, static_cast<int>(bytes), mpi.byte, static_cast<int>(from), tag, comm, &message.request),
      "MPI_Irecv");
  messages.push_back(message);
}

/// Removes the messages that are complete; returns whether that are all. The caller holds the lock.
bool MpiChannel::areComplete(Messages &messages) {
  auto isDone = [&](Message &message) {
    int done = 0;
    mpi.check(mpi.test(&message.request, &done, nullptr), "MPI_Test");
    return done != 0;
  };
  messages.erase(std::remove_if(messages.begin(), messages.end(), isDone), messages.end());
  return messages.empty();
}

void MpiChannel::waitFor(Messages &messages, const char *verb, const Description &collective) {
  Clock::time_point start = Clock::now();
  while (true) {
    {
      Lock lock(mutex);
      if (areComplete(messages))
        return;
      checkFailure();
    }
    std::chrono::duration<double> waited = Clock::now() - start;
    if (waited.count() > deadline)
      break;
    waited.count() < kPatience ? sched_yield() : usleep(50);
  }
  std::vector<uint32_t> missing;
  for (const Message &message : messages)
    missing.push_back(message.rank);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::string reason = describeRanks(missing) + " did not " + verb + " " + collective.text() + " within " +
                       describeSeconds(deadline);
  tellFailure(reason);
  fail(FP8RT_RANKS, failure);
}

char *MpiChannel::outgoing(const Piece &piece, bool waits) {
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

void MpiChannel::postDescriptions(const Collective &collective, Buffer &buffer) {
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

void MpiChannel::post(const Collective &collective, const Piece &piece) {
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

void MpiChannel::await(const Collective &collective, const Piece &piece) {
  Buffer &buffer = buffers[piece.buffer];
  if ((piece.stamp & 0xffffff) == 1) {
    waitFor(buffer.receivedDescriptions, "arrive at", collective.description);
    checkSame(collective, buffer);
  }
  waitFor(buffer.received, "arrive at", collective.description);
}

/// Throws if a rank of the group is in another collective.
void MpiChannel::checkSame(const Collective &collective, const Buffer &buffer) const {
  for (uint32_t member = 0; member < collective.groupSize(); ++member)
    if (!buffer.descriptions[member].isSameAs(buffer.own))
      fail(FP8RT_RANKS,
           describeDifference(collective.members[member], buffer.descriptions[member], self, buffer.own));
}

const char *MpiChannel::incoming(const Collective &collective, const Piece &piece, uint32_t member) {
  Buffer &buffer = buffers[piece.buffer];
  if (member != collective.index)
    return buffer.incoming[member].data();
  return buffer.outgoing.data() + (piece.route == Route::Parts ? member * piece.bytes : 0);
}

void MpiChannel::release(const Collective &collective, const Piece &piece) {
  buffers[piece.buffer].isInUse = false;
  last = collective.description;
}
