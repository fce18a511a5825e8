// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives in host memory over a channel. Small ones are posted when they are started and completed by
// whoever waits for them; a thread completes large ones meanwhile.

#ifndef FP8RT_COLLECTIVES_HOSTRANKS_H
#define FP8RT_COLLECTIVES_HOSTRANKS_H

#include "Progress.h"
#include "Ranks.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace fp8rt::collectives {

class HostRanks : public Ranks {
public:
  explicit HostRanks(std::unique_ptr<Channel> channel);
  ~HostRanks() override;

  uint32_t rank() const override { return channel->rank(); }
  uint32_t size() const override { return channel->size(); }
  uint64_t start(const fp8rt_collective &collective, void *stream) override;
  void wait(uint64_t ticket, void *stream) override;
  void gather(const void *send, uint64_t bytes, void *receive) override;
  void tellFailure(const std::string &reason) noexcept override;

  /// Waits until all ranks of its group are at this collective, whose data is moved elsewhere.
  void meet(const fp8rt_collective &collective);
  Channel &way() const { return *channel; }

private:
  using Lock = std::unique_lock<std::mutex>;

  struct Item {
    Progress progress;
    bool isPosted = false, isDone = false;
  };

  uint64_t begin(const fp8rt_collective &collective, bool movesData);
  Item *nextItem();
  void runNext(Lock &lock);
  void throwFailure();
  void latch() noexcept;
  void work();

  std::unique_ptr<Channel> channel;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<Item>> items; // started, not yet waited for; null where waited for
  uint64_t firstTicket = 0;                // of the items
  bool isRunning = false;                  // a thread is using the channel
  bool isEnding = false;
  int failureStatus = 0; // an fp8rt_status; every later call fails like the first
  std::string failure;
  std::thread thread; // started when the first collective needs it
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_HOSTRANKS_H
