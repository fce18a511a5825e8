// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that tests of several ranks share: ranks as threads of this process, or as processes that may
// be killed.

#ifndef FP8RT_TEST_RANKSUPPORT_H
#define FP8RT_TEST_RANKSUPPORT_H

#include "TestSupport.h"

#include "fp8rt/ranks.h"

#include <functional>

namespace fp8rt_test {

/// The work of one rank. Returns a text: of the error, or empty.
using RankBody = std::function<std::string(fp8rt_communicator &communicator)>;

/// Whether the environment's FP8RT_TEST_RANKS says that ranks are connected through TCP, not shared memory.
bool isThroughTcp();

/// Returns "127.0.0.1:PORT" with a port that is free.
std::string freeAddress();

/// The function by which a rank takes the communicator made for it: another one may take its place.
using Wrap = std::function<fp8rt_status(fp8rt_communicator *made, fp8rt_communicator **out)>;

/// Runs the body on `size` ranks, each a thread, and returns their texts.
std::vector<std::string> runThreads(uint32_t size, const RankBody &body, double deadline = 20,
                                    const Wrap &wrap = nullptr);

/// The same with processes. A process that a signal ends gives "signal N". `onStart` gets the processes'
/// numbers.
std::vector<std::string>
runProcesses(uint32_t size, const RankBody &body, double deadline = 20,
             const std::function<void(const std::vector<pid_t> &)> &onStart = nullptr,
             const Wrap &wrap = nullptr);

/// A collective among the ranks of one dimension, or of `axes` of a grid: the fields to change come first.
struct Ask {
  uint32_t kind = FP8RT_ALL_REDUCE, reduction = FP8RT_SUM, type = FP8RT_F32;
  uint64_t count = 0; // elements at `send`
  const void *send = nullptr;
  void *receive = nullptr;
  int32_t root = 0;
  std::vector<int64_t> grid = {0};
  uint32_t axes = 1;
  const char *name = "x";
};

/// Starts and waits; returns the error, or an empty text.
std::string perform(fp8rt_communicator &communicator, const Ask &ask);

/// Only starts: returns the ticket. `ask` must live until the collective has been waited for.
uint64_t begin(fp8rt_communicator &communicator, const Ask &ask, fp8rt_group &group);

} // namespace fp8rt_test

#endif // FP8RT_TEST_RANKSUPPORT_H
