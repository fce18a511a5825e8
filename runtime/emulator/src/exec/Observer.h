// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The events of a launch that execution reports to an observer: accesses to memory, and
// the barriers that order them. The checks of memory order (check/) are the observer; execution
// knows nothing of them but this. A launch without an observer pays for the test of a
// pointer at each access and each barrier.

#ifndef FP8EMU_EXEC_OBSERVER_H
#define FP8EMU_EXEC_OBSERVER_H

#include "Op.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace fp8emu {

class Block;
class Cluster;
class Launch;
class Warp;
enum class AccessKind : uint8_t;

/// Where an access begins: in a block's shared memory, or, without a block, in the
/// device's.
struct Target {
  Block *block = nullptr;
  uint64_t address = 0;
};

/// The observer's notes on a warp, a block or a cluster. Each of them holds the notes on
/// itself; their content is the observer's business.
struct Notes {
  virtual ~Notes() = default;
};

/// Called by the host thread that runs the block, while that runs.
class Observer {
public:
  virtual ~Observer() = default;

  /// The notes on what begins: a cluster before its blocks, a block before its warps. May be
  /// null. Instructions that order memory look for those of check/ (check/Races.h): another
  /// observer gives none.
  virtual std::unique_ptr<Notes> begin(const Cluster &cluster) = 0;
  virtual std::unique_ptr<Notes> begin(const Block &block) = 0;
  virtual std::unique_ptr<Notes> begin(const Warp &warp) = 0;

  /// The instruction that the warp runs accesses `bytes` at each lane's target, in shared or
  /// global memory. May throw a Fault.
  virtual void access(Warp &warp, Mask mask, const Target *targets, unsigned bytes, AccessKind kind) = 0;
  /// Lanes arrive at a barrier of their block.
  virtual void arriveAtBarrier(Warp &warp, unsigned id, Mask lanes) = 0;
  /// The barrier's phase is complete; fragments that wait for it are not yet woken.
  virtual void completeBarrier(Block &block, unsigned id) = 0;
  /// Lanes have seen the cluster's phase complete.
  virtual void waitedForCluster(Warp &warp, Mask lanes, uint64_t phase) = 0;
};

/// Makes the observer of a launch that begins; `severalThreads`: its blocks run on several
/// threads of the host.
using ObserverFactory = std::function<std::unique_ptr<Observer>(const Launch &launch, bool severalThreads)>;

} // namespace fp8emu

#endif // FP8EMU_EXEC_OBSERVER_H
