// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asynchronous operations: what a thread starts and does not wait for. A cluster keeps
// those in flight; its scheduler carries them out between the turns of warps. The seed
// decides the moments and the order, so that code which does not wait gives wrong values.

#ifndef FP8EMU_EXEC_OPERATION_H
#define FP8EMU_EXEC_OPERATION_H

#include "fp8emu/Types.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace fp8emu {

class Cluster;

/// An operation in flight. It has at least two steps: it reads its sources, and later writes
/// its results and tells its mbarrier or group.
class Operation {
public:
  virtual ~Operation() = default;
  /// Carries out the next step; true where that was the last. Throws a Fault without a place;
  /// OperationQueue::step adds that of `origin`.
  virtual bool step() = 0;
  /// Whether the operation may go on now: operations of one queue (wgmma of one warp) end in
  /// the order in which they were started.
  virtual bool ready() const { return true; }

  /// Where the operation was started, for faults and reports.
  Fault origin;
};

/// The groups of a thread's operations: commit_group ends a group, wait_group waits for
/// groups. cp.async, cp.async.bulk and wgmma have groups of their own.
class Groups {
public:
  /// The operations of a group that have not read their sources, and that are not over.
  struct Group {
    unsigned unread = 0, unfinished = 0;
  };
  /// Adds an operation to the group that is open. The operation counts `unread` down when it has
  /// read its sources, `unfinished` when it is over.
  std::shared_ptr<Group> add() {
    ++open->unread;
    ++open->unfinished;
    return open;
  }
  void commit() {
    committed.push_back(open);
    open = std::make_shared<Group>();
  }
  /// Whether all groups but the last `allowed` have finished; with `readsOnly`, have read
  /// their sources.
  bool complete(uint64_t allowed, bool readsOnly = false) {
    while (!committed.empty() && committed.front()->unfinished == 0)
      committed.pop_front();
    for (size_t i = 0; i + allowed < committed.size(); ++i)
      if (readsOnly ? committed[i]->unread : committed[i]->unfinished)
        return false;
    return true;
  }
  /// Whether everything started so far is over, committed or not (wait_all).
  bool allComplete() { return complete(0) && open->unfinished == 0; }

private:
  std::shared_ptr<Group> open = std::make_shared<Group>();
  std::deque<std::shared_ptr<Group>> committed;
};

/// The operations of a cluster that are in flight.
class OperationQueue {
public:
  void start(std::unique_ptr<Operation> operation) { flying.push_back(std::move(operation)); }
  bool empty() const { return flying.empty(); }
  size_t size() const { return flying.size(); }
  /// Carries out one step of an operation, which `random` chooses among those that are ready.
  /// False where none is ready.
  bool step(uint64_t random);
  /// Whether a step is being carried out, and the op that started its operation.
  bool isRunning() const { return running; }
  uint32_t runningPc() const { return pc; }
  /// The place of that op; null while no step is being carried out.
  const Fault *runningOrigin() const { return running ? &running->origin : nullptr; }

private:
  uint32_t pc = 0;
  const Operation *running = nullptr;
  std::vector<std::unique_ptr<Operation>> flying;
};

} // namespace fp8emu

#endif // FP8EMU_EXEC_OPERATION_H
