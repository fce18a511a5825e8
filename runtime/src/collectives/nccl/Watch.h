// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread that watches over the collectives of a device: it ends those that wait for a rank in vain.

#ifndef FP8RT_COLLECTIVES_NCCL_WATCH_H
#define FP8RT_COLLECTIVES_NCCL_WATCH_H

#include "../Channel.h"
#include "NcclGroups.h"
#include "Reduction.h"

#include <condition_variable>
#include <deque>
#include <thread>

namespace fp8rt::collectives::nccl {

/// The device says to which collective it has come (Marks). A rank whose device waits asks the others after a
/// moment, and again before the deadline, and they say where they are (Channel::announce): ranks that have
/// not come to the collective by the deadline are missing. As long as nobody waits, nothing is sent.
class Watch {
public:
  Watch(Channel &channel, NcclGroups &groups, const Kernels &kernels);
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;
  /// The device has nothing left to do.
  ~Watch();

  /// Returns the number of a collective's description, which the device tells; `isNew`: it had none.
  uint64_t numberOf(const Collective &collective, bool &isNew);
  /// Throws if a collective has failed.
  void check();
  /// Takes the failure that the channel knows: this rank goes no further from now on.
  void takeFailure();

private:
  using Time = std::chrono::steady_clock::time_point;
  struct Known {
    Description description;
    std::vector<uint32_t> members;
  };

  void work();
  std::string look();
  std::string lookAtDevice();
  Known knownOf(const Marks &marks);
  void announce(const Marks &marks, bool isQuestion);
  void answer();
  std::string lookAtRanks(const Known &known, uint64_t number, double waited);
  void stop(const std::string &reason);

  Channel &channel;
  NcclGroups &groups;
  const Kernels &kernels;
  double notice; // seconds after which a rank that waits asks, and that the others have for an answer

  std::mutex mutex;
  std::condition_variable changed;
  bool isEnding = false;
  std::string failure;
  std::deque<Known> knowns;

  // The thread's: the collective that it waits for, since when, how often it has asked for it, and at all.
  uint64_t waitingFor = 0;
  Time since, lastLook;
  int asked = 0;
  uint64_t asks = 0;
  std::vector<uint64_t> answered; // the asks of each rank
  std::thread thread;
};

} // namespace fp8rt::collectives::nccl

#endif // FP8RT_COLLECTIVES_NCCL_WATCH_H
