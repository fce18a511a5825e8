// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The queue of collectives, which run one after the other, and the thread that runs them while compiled code
// does something else.

#include "HostRanks.h"
#include "../core/Status.h"

#include <cfenv>

using namespace fp8rt;
using namespace fp8rt::collectives;

namespace {

/// Sums do not depend on the rounding and the denormals of whoever calls.
class DefaultFloats {
public:
  DefaultFloats() {
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
  }
  DefaultFloats(const DefaultFloats &) = delete;
  DefaultFloats &operator=(const DefaultFloats &) = delete;
  ~DefaultFloats() { std::fesetenv(&saved); }

private:
  std::fenv_t saved;
};

} // namespace

HostRanks::HostRanks(std::unique_ptr<Channel> given) : channel(std::move(given)) {}

HostRanks::~HostRanks() {
  {
    Lock lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void HostRanks::throwFailure() {
  if (failureStatus)
    fail(static_cast<fp8rt_status>(failureStatus), failure);
}

/// Keeps the current exception for later calls, and tells the other ranks.
void HostRanks::latch() noexcept {
  if (!failureStatus) {
    failureStatus = recordException();
    failure = fp8rt_last_error();
  }
  channel->tellFailure(failure);
}

uint64_t HostRanks::start(const fp8rt_collective &collective, void *) {
  return begin(collective, /*movesData=*/true);
}

void HostRanks::meet(const fp8rt_collective &collective) {
  wait(begin(collective, /*movesData=*/false), nullptr);
}

uint64_t HostRanks::begin(const fp8rt_collective &collective, bool movesData) {
  Lock lock(mutex);
  throwFailure();
  uint64_t ticket = firstTicket + items.size();
  items.push_back(nullptr);
  try {
    items.back().reset(new Item{Progress(*channel, collective, ticket, movesData)});
    Item &item = *items.back();
    bool isFree = !isRunning;
    for (size_t i = 0; i + 1 < items.size(); ++i)
      isFree &= !items[i] || items[i]->isDone || items[i]->isPosted;
    item.isPosted = isFree && item.progress.tryPost();
  } catch (...) {
    latch();
    throw;
  }
  if (!items.back()->isPosted) {
    if (!thread.joinable())
      thread = std::thread([this] { work(); });
    changed.notify_all();
  }
  return ticket;
}

/// Returns the first item that is not done; null if there is none.
HostRanks::Item *HostRanks::nextItem() {
  for (std::unique_ptr<Item> &item : items)
    if (item && !item->isDone)
      return item.get();
  return nullptr;
}

/// Completes the next item, without the lock.
void HostRanks::runNext(Lock &lock) {
  Item &item = *nextItem();
  isRunning = true;
  lock.unlock();
  try {
    DefaultFloats environment;
    item.progress.run();
    lock.lock();
  } catch (...) {
    lock.lock();
    latch();
  }
  item.isDone = true;
  isRunning = false;
  changed.notify_all();
}

void HostRanks::wait(uint64_t ticket, void *) {
  Lock lock(mutex);
  bool isKnown = ticket >= firstTicket && ticket - firstTicket < items.size() && items[ticket - firstTicket];
  if (!isKnown)
    fail(FP8RT_INVALID_ARGUMENT, "no collective with ticket " + std::to_string(ticket) + " is under way");
  Item &item = *items[ticket - firstTicket];
  while (!item.isDone && !failureStatus) {
    if (isRunning)
      changed.wait(lock);
    else
      runNext(lock);
  }
  throwFailure();
  items[ticket - firstTicket].reset();
  while (!items.empty() && !items.front()) {
    items.pop_front();
    ++firstTicket;
  }
}

/// The thread: runs what would otherwise wait for `wait`. Posted collectives need no help.
void HostRanks::work() {
  Lock lock(mutex);
  auto needsHelp = [&] {
    bool anyOpen = false;
    for (std::unique_ptr<Item> &item : items)
      anyOpen |= item && !item->isDone && !item->isPosted;
    return anyOpen && !isRunning && !failureStatus;
  };
  while (true) {
    changed.wait(lock, [&] { return isEnding || needsHelp(); });
    if (isEnding)
      return;
    runNext(lock);
  }
}

void HostRanks::gather(const void *send, uint64_t bytes, void *receive) {
  const int64_t grid[] = {size()};
  const fp8rt_group everyone = {grid, 1, 1};
  fp8rt_collective collective = {};
  collective.kind = FP8RT_ALL_GATHER;
  collective.type = FP8RT_BYTE;
  collective.group = &everyone;
  collective.send = send;
  collective.receive = receive;
  collective.count = bytes;
  collective.name = "comparison of the ranks";
  wait(start(collective, nullptr), nullptr);
}

void HostRanks::tellFailure(const std::string &reason) noexcept { channel->tellFailure(reason); }
