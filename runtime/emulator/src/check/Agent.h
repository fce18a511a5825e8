// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asynchronous operations as the checks see them: agents of their own, which are not
// ordered with what their thread does next. An instruction makes an agent for each operation
// that it starts, and tells it, at best at once, what the operation reads and writes. The
// operation tells when it completes a phase of an mbarrier. Operations of a group are over
// for the threads that wait for the group (Races.h).
//
//   auto agent = check::Agent::inGroup(warp, lane, GroupKind::Bulk, Proxy::Async);
//   agent.reads({block, offset}, bytes);          // shared memory of a block
//   agent.writes({nullptr, address}, bytes);      // the device's
//
//   auto agent = check::Agent::untilMbarrier(warp, lane, barrierBlock, barrierOffset, Proxy::Async);
//   agent.reads(...), agent.writes(...);
//   agent.complete();                             // before Mbarrier::completeBytes
//
//   auto agent = check::Agent::inGroup(warp, lane, GroupKind::Tensor, Proxy::Async);
//   agent.reads({block, offset}, bytes);
//   agent.writesTensor(block, range);             // tensor memory of a block
//
// All do nothing where checks are off.

#ifndef FP8EMU_CHECK_AGENT_H
#define FP8EMU_CHECK_AGENT_H

#include "Races.h"

namespace fp8emu::check {

/// The way by which an operation accesses memory (PTX ISA 8.6). cp.async, st.async and
/// red.async are generic; the bulk engine, wgmma and tcgen05 are not.
enum class Proxy : uint8_t { Generic, Async };

class Agent {
public:
  /// No agent: nothing is checked.
  Agent() = default;
  /// The next operation of the thread's current group; of the warp's group where the warp
  /// starts the operation (wgmma, tcgen05.ld, tcgen05.st).
  static Agent inGroup(Warp &warp, unsigned lane, GroupKind kind, Proxy proxy);
  /// An operation that completes bytes at an mbarrier. Each copy of a multicast is an
  /// operation.
  static Agent untilMbarrier(Warp &warp, unsigned lane, Block &block, uint32_t offset, Proxy proxy);
  /// A strong store that releases at a scope (st.async.release, red.async.release).
  static Agent releasing(Warp &warp, unsigned lane, Level level);

  void reads(const Target &target, unsigned bytes) const { access(target, bytes, Read); }
  void writes(const Target &target, unsigned bytes) const { access(target, bytes, Write); }
  /// Reductions, which are relaxed at the device's scope.
  void updates(const Target &target, unsigned bytes) const { access(target, bytes, Update); }
  /// Lanes and columns of a block's tensor memory.
  void readsTensor(Block &block, const TensorRange &range) const { accessTensor(block, range, false); }
  void writesTensor(Block &block, const TensorRange &range) const { accessTensor(block, range, true); }
  /// To be called when the operation has completed its bytes: threads that have seen their
  /// phase complete know the operation.
  void complete() const;
  /// To be called when an operation that releases has written: threads that acquire what it
  /// has written know the operation.
  void release(const Target &target) const;

private:
  struct State;
  enum Kind { Read, Write, Update };
  static Agent start(Warp &warp, unsigned lane, Proxy proxy);
  void access(const Target &target, unsigned bytes, Kind kind) const;
  void accessTensor(Block &block, const TensorRange &range, bool isWrite) const;

  std::shared_ptr<State> state;
};

/// For cp.async.mbarrier.arrive and tcgen05.commit: a function that releases the thread's
/// operations so far at an mbarrier. It is made when the instruction is issued, and to be
/// called when the operations are over, before the arrival.
std::function<void()> releaseGroups(Warp &warp, unsigned lane, GroupKind kind, Block &block, uint32_t offset);

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_AGENT_H
