// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp: 32 lanes with registers of their own and independent progress. Lanes that
// are at the same instruction form a fragment and run it together, one dispatch for
// all of them. A branch that lanes take differently splits a fragment. Fragments
// that meet at one instruction become one again. The fragment that runs is the one
// furthest behind, so that lanes meet where the code joins. Now and then another fragment
// is chosen, so that none waits forever for one that spins.
//
// Compilers duplicate code, so that lanes of a warp may execute copies of one shuffle: .sync
// without .aligned asks for any instruction with the same qualifiers (gather()). With
// .aligned all lanes must execute the same instruction (converged()).
//
// While products of wgmma are in flight, and checks are on, the warp runs in a second,
// careful loop, which looks at the operands of every instruction: none may be a register
// of such a product before wgmma.wait_group (FaultKind::RegistersInFlight). Ops whose
// handlers check that themselves are marked (Op::mayTouchInFlight). Other warps do not pay.

#ifndef FP8EMU_EXEC_WARP_H
#define FP8EMU_EXEC_WARP_H

#include "Frame.h"
#include "MatrixQueue.h"
#include "Observer.h"
#include "Operation.h"

#include "fp8emu/Types.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace fp8emu {

class Block;

/// The event that lanes wait for. A wait is ended by the block (Block::wake) or by time
/// (Warp::timeOut), by nothing else.
enum class Wait : uint8_t {
  /// Runnable.
  None,
  /// For the other lanes that `awaited` names to reach this instruction.
  Converge,
  /// For those lanes to reach this instruction or another with the same qualifiers.
  Gather,
  /// At a barrier of the block, number `object`.
  Barrier,
  /// At the cluster's barrier.
  Cluster,
  /// For a phase of the mbarrier at shared address `object` to complete.
  Mbarrier,
  /// For asynchronous operations of its own: `object` says which (Operation.h).
  Async,
  /// For tensor memory to become free, or for the other block of a pair to ask for
  /// the same.
  TensorMemory,
  /// For `detail` registers of its block to become free (RegisterPool.h).
  Registers,
};

/// Lanes at one instruction.
struct Fragment {
  uint32_t pc = 0;
  Mask lanes = 0;
  std::shared_ptr<Frame> frame;
  Wait wait = Wait::None;
  /// Of Wait::Converge and Wait::Gather.
  Mask awaited = 0;
  uint64_t object = 0;
  uint64_t detail = 0;
};

/// Lanes that execute an instruction together with others of their warp: their operands
/// are those of `op`, in `frame`.
struct Part {
  const Op *op;
  const Frame *frame;
  Mask lanes;
};

class Warp {
public:
  Warp(Block &block, unsigned index, Mask lanes);

  Block &block() const { return owner; }
  const Program &program() const;
  unsigned index() const { return number; }
  /// Lanes that exist: fewer than 32 in the last warp of some blocks.
  Mask existing() const { return all; }
  Mask exited() const { return gone; }
  bool done() const { return gone == all; }
  /// Lanes that the running instruction was dispatched with, before its guard.
  Mask active() const { return current.lanes; }
  uint32_t pc() const { return currentPc; }
  /// Whether no instruction of the warp is running: operations in flight may be.
  bool isIdle() const { return !isRunning; }
  const Frame &frame() const { return *current.frame; }
  /// The frame, for operations that write its registers after the instruction is over.
  const std::shared_ptr<Frame> &sharedFrame() const { return current.frame; }

  /// Lanes that have arrived at the cluster's barrier and not waited, and its phase
  /// when they did.
  Mask &clusterArrived() { return arrivedAtCluster; }
  uint64_t &clusterPhase() { return phaseOfCluster; }
  /// The ones of `lanes` whose bounded wait ended without success; the next call does not
  /// return them again.
  Mask takeTimedOut(Mask lanes) {
    Mask out = timedOut & lanes;
    timedOut &= ~lanes;
    return out;
  }
  /// The groups of operations that a lane, or the warp, has in flight.
  Groups &copyGroups(unsigned lane) { return groupsOf(lane).copies; }
  Groups &bulkGroups(unsigned lane) { return groupsOf(lane).bulk; }
  Groups &matrixGroups() { return groupsOf(0).matrix; }
  MatrixQueue &matrixQueue() {
    if (!matrices)
      matrices = std::make_unique<MatrixQueue>();
    return *matrices;
  }
  /// To be called when registers begin or cease to be guarded: the warp chooses its loop anew.
  void guardedRegistersChanged() { watch = 0; }
  /// Instructions this warp has run: what %clock counts.
  uint64_t clock() const { return executed; }
  /// The notes of the launch's observer; null without an observer.
  Notes *notes() const { return observed.get(); }

  // For handlers.

  /// The 32 values of an operand.
  template <class T>
  T *values(Ref ref) {
    return reinterpret_cast<T *>(memories[ref.memory] + ref.offset);
  }
  template <class T>
  const T *values(Ref ref) const {
    return reinterpret_cast<const T *>(memories[ref.memory] + ref.offset);
  }
  /// The place of an operand in the given frame.
  uint8_t *place(const Frame &frame, Ref ref) const;
  Mask &predicate(Ref ref) { return *values<Mask>(ref); }
  const Ref *list(const Op &op) const { return current.frame->function->refs.data() + op.list; }

  /// Continues these lanes of the running fragment at `target`, the others after
  /// the instruction.
  void branch(Mask taken, uint32_t target);
  /// Enters a function with these lanes: all that are active, or the others go on
  /// after the instruction and meet them there (Frame.cpp).
  void call(Mask lanes, const FunctionCode &function, const CallSite &site);
  void leave(Mask lanes);
  /// A lane's value of what a call passes, in the caller.
  uint8_t *passed(const Frame &caller, const Passed &value, unsigned lane) const;
  void exit(Mask lanes);
  /// Stops these lanes at the running instruction, or after it, until they are woken.
  void wait(Mask lanes, Wait why, uint64_t object, uint64_t detail, bool repeat);
  /// Whether all lanes of `needed` that have not exited are among `here`, the lanes that
  /// execute this instruction now. Where they are not, the lanes of `here` wait, and the
  /// instruction runs again when all have come.
  bool converged(Mask needed, Mask here);
  /// The same for lanes that need not stand at one instruction, only at instructions with the
  /// same qualifiers that await the same lanes (.sync without .aligned, PTX ISA 9.7.9.6).
  /// Returns all that execute the instruction now, those of `here` first; nothing where some
  /// lanes have yet to come.
  const std::vector<Part> &gather(Mask needed, Mask here);
  /// Lets others run before this warp goes on.
  void yield() { watch = 0, yielded = true; }

  /// Stops the launch with a fault at the running instruction.
  [[noreturn]] void fault(FaultKind kind, std::string message, Mask lane = 0) const;
  /// The same for a mistake after which the kernel can go on: returns where it is to do so
  /// (Settings::found).
  void finding(FaultKind kind, std::string message, Mask lane = 0) const;
  /// Puts kernel, line, instruction, block and thread into the fault.
  void locate(Fault &fault, Mask lanes) const;

  // For the block.

  /// Runs up to `budget` instructions; returns how many were run. Ends early where
  /// nothing is runnable or the warp yields.
  uint64_t run(uint64_t budget);
  bool runnable() const;
  /// Ends waits of Wait::Mbarrier without success: lanes look again and find
  /// themselves among `timedOut`. False where there were none.
  bool timeOut();
  std::vector<Fragment> &waiting() { return fragments; }
  const std::vector<Fragment> &waiting() const { return fragments; }
  /// A line for each fragment: where it is and what it waits for.
  std::string describe() const;

private:
  template <bool Counting, bool Careful>
  uint64_t runFragment(uint64_t budget);
  uint64_t runFragment(uint64_t budget);
  void checkGuarded(const Op &op) const;
  bool pick();
  void park();
  void mergeFragments();
  Mask awaitedBy(const Fragment &fragment) const;
  bool haveSameQualifiers(uint32_t pc, uint32_t other) const;
  uint8_t *frameMemory(const Frame &frame, unsigned lane) const;

  Block &owner;
  unsigned number;
  Mask all, gone = 0, arrivedAtCluster = 0;
  Mask timedOut = 0;
  uint64_t phaseOfCluster = 0, executed = 0;
  struct LaneGroups {
    Groups copies, bulk, matrix;
  };
  /// Made when first asked for: most kernels have none.
  std::unique_ptr<std::array<LaneGroups, kLanes>> groups;
  std::unique_ptr<MatrixQueue> matrices;
  LaneGroups &groupsOf(unsigned lane) {
    if (!groups)
      groups = std::make_unique<std::array<LaneGroups, kLanes>>();
    return (*groups)[lane];
  }
  /// The running fragment; its pc is stale while it runs.
  Fragment current;
  bool isRunning = false, yielded = false;
  uint32_t currentPc = 0, nextPc = 0;
  /// The running fragment stops where nextPc is no longer below: another fragment
  /// may be there. 0 to stop at once.
  uint32_t watch = 0;
  uint8_t *memories[3] = {};
  std::unique_ptr<uint8_t[]> specials;
  std::vector<Fragment> fragments;
  /// The parts that gather() found last.
  std::vector<Part> gathered;
  uint32_t picks = 0;
  std::unique_ptr<Notes> observed;
};

/// Calls `f(lane)` for each lane of the mask.
template <class F>
inline void forLanes(Mask mask, F f) {
  for (; mask; mask &= mask - 1)
    f(unsigned(__builtin_ctz(mask)));
}

/// The same where `f` reads and writes its own lane's values only: with all lanes a
/// loop that the host's compiler turns into vector instructions, as results may lie
/// where operands do but never where another lane's do.
template <class F>
inline void forIndependentLanes(Mask mask, F f) {
  if (mask != kAllLanes)
    return forLanes(mask, f);
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (unsigned lane = 0; lane < kLanes; ++lane)
    f(lane);
}

} // namespace fp8emu

#endif // FP8EMU_EXEC_WARP_H
