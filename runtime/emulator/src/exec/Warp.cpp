// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments of a warp: how they split, wait, meet, and which one runs.

#include "Warp.h"

#include "Block.h"
#include "Launch.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;

Warp::Warp(Block &block, unsigned index, Mask lanes) : owner(block), number(index), all(lanes) {
  if (Observer *observer = block.launch().observer())
    observed = observer->begin(*this);
  specials = std::make_unique<uint8_t[]>(block.launch().program().specialBytes);
  block.fillSpecials(specials.get(), index);
  memories[Ref::Specials] = specials.get();
  Fragment first;
  first.frame = std::make_shared<Frame>(block.launch().kernel(), nullptr);
  first.pc = block.launch().kernel().begin;
  first.lanes = lanes;
  fragments.push_back(std::move(first));
}

uint8_t *Warp::place(const Frame &frame, Ref ref) const {
  uint8_t *memory = ref.memory == Ref::Registers   ? frame.registers.get()
                    : ref.memory == Ref::Constants ? frame.constants()
                                                   : specials.get();
  return memory + ref.offset;
}

bool Warp::timeOut() {
  bool any = false;
  for (Fragment &f : fragments) {
    if (f.wait != Wait::Mbarrier)
      continue;
    f.wait = Wait::None;
    timedOut |= f.lanes;
    any = true;
  }
  return any;
}

const Program &Warp::program() const { return owner.launch().program(); }

bool Warp::runnable() const {
  return isRunning || std::any_of(fragments.begin(), fragments.end(),
                                  [](const Fragment &f) { return f.wait == Wait::None; });
}

bool Warp::haveSameQualifiers(uint32_t pc, uint32_t other) const {
  const ptx::Instruction *a = program().instructions[pc], *b = program().instructions[other];
  return a == b || (a->opcode == b->opcode && a->modifiers == b->modifiers);
}

/// The lanes that a fragment still waits for. One of the lanes that gather suffices to
/// execute the instruction for all.
Mask Warp::awaitedBy(const Fragment &fragment) const {
  Mask missing = fragment.awaited & ~gone & ~fragment.lanes;
  if (fragment.wait == Wait::Gather)
    for (const Fragment &f : fragments)
      if (f.wait == Wait::Gather && f.awaited == fragment.awaited && haveSameQualifiers(f.pc, fragment.pc))
        missing &= ~f.lanes;
  return missing;
}

/// Lanes at one instruction of one call become one fragment; those that waited for
/// each other and are all there, or whose missing lanes have exited, go on.
void Warp::mergeFragments() {
  for (size_t i = 0; i < fragments.size(); ++i)
    for (size_t j = fragments.size(); --j > i;) {
      Fragment &a = fragments[i], &b = fragments[j];
      bool meet = a.pc == b.pc && a.wait == b.wait &&
                  (a.wait == Wait::None ||
                   ((a.wait == Wait::Converge || a.wait == Wait::Gather) && a.awaited == b.awaited));
      if (!meet || !areOneCall(*a.frame, *b.frame))
        continue;
      moveLanes(*a.frame, *b.frame, b.lanes);
      a.lanes |= b.lanes;
      fragments.erase(fragments.begin() + int64_t(j));
    }
  for (Fragment &f : fragments)
    if ((f.wait == Wait::Converge || f.wait == Wait::Gather) && !awaitedBy(f))
      f.wait = Wait::None;
}

/// Chooses the fragment to run: the innermost call, then the lowest instruction; one
/// time in eight any of them, so that all make progress.
bool Warp::pick() {
  mergeFragments();
  Fragment *best = nullptr;
  unsigned choices = 0;
  for (Fragment &f : fragments) {
    if (f.wait != Wait::None)
      continue;
    ++choices;
    if (!best || f.frame->depth > best->frame->depth ||
        (f.frame->depth == best->frame->depth && f.pc < best->pc))
      best = &f;
  }
  if (!best)
    return false;
  if (choices > 1 && ++picks % 8 == 0) {
    unsigned skip = unsigned(owner.random() % choices);
    for (Fragment &f : fragments)
      if (f.wait == Wait::None && skip-- == 0)
        best = &f;
  }
  current = std::move(*best);
  fragments.erase(fragments.begin() + (best - fragments.data()));
  memories[Ref::Registers] = current.frame->registers.get();
  memories[Ref::Constants] = current.frame->constants();
  nextPc = current.pc;
  watch = UINT32_MAX;
  for (const Fragment &f : fragments)
    if (f.wait == Wait::None && f.pc > current.pc && areOneCall(*f.frame, *current.frame))
      watch = std::min(watch, f.pc);
  isRunning = true;
  return true;
}

void Warp::park() {
  isRunning = false;
  if (!current.lanes)
    return;
  current.pc = nextPc;
  current.wait = Wait::None;
  fragments.push_back(std::move(current));
  current.lanes = 0;
}

/// Faults where an operand is a register of a product in flight.
void Warp::checkGuarded(const Op &op) const {
  if (op.mayTouchInFlight)
    return;
  auto check = [&](Ref ref) {
    if (ref.memory != Ref::Registers || !matrices->guards(current.frame.get(), ref.offset))
      return;
    const MatrixQueue::Use *use = matrices->find(
        [&](const MatrixQueue::Use &u) { return u.writes(ref.offset) || u.reads(ref.offset); });
    Fault place;
    owner.launch().locate(place, use->pc);
    finding(FaultKind::RegistersInFlight,
            std::string(use->writes(ref.offset) ? "an accumulator" : "a register with elements of A") +
                " of the product started at line " + std::to_string(place.line) +
                " is touched before wgmma.wait_group has waited for it");
  };
  for (Ref ref : {op.guard, op.d, op.a, op.b, op.c, op.e})
    check(ref);
  for (unsigned i = 0; i < op.count; ++i)
    check(list(op)[i]);
}

template <bool Counting, bool Careful>
uint64_t Warp::runFragment(uint64_t budget) {
  const Op *ops = owner.launch().program().ops.data();
  Profile *counts = owner.cluster().profile();
  uint64_t done = 0;
  do {
    currentPc = nextPc;
    const Op &op = ops[currentPc];
    Mask mask = current.lanes;
    if (op.guard) {
      Mask guard = predicate(op.guard);
      mask &= op.guardNegated ? ~guard : guard;
    }
    nextPc = currentPc + 1;
    if (Counting)
      counts->count(currentPc, mask);
    if (Careful && mask)
      checkGuarded(op);
    if (mask)
      op.handler(*this, op, mask);
    ++done;
  } while (nextPc < watch && done < budget);
  return done;
}

uint64_t Warp::runFragment(uint64_t budget) {
  bool careful = matrices && matrices->guarding();
  if (owner.cluster().profile())
    return careful ? runFragment<true, true>(budget) : runFragment<true, false>(budget);
  return careful ? runFragment<false, true>(budget) : runFragment<false, false>(budget);
}

uint64_t Warp::run(uint64_t budget) {
  uint64_t done = 0;
  yielded = false;
  try {
    while (done < budget && !yielded && pick()) {
      const uint64_t count = runFragment(budget - done);
      done += count;
      executed += count;
      park();
    }
  } catch (Fault &fault) {
    // Of an object that does not know who asks: its place is the instruction that runs.
    if (fault.kernel.empty())
      locate(fault, 0);
    throw;
  }
  mergeFragments();
  return done;
}

void Warp::branch(Mask taken, uint32_t target) {
  if (taken == current.lanes) {
    nextPc = target;
    return;
  }
  Fragment away;
  away.pc = target;
  away.lanes = taken;
  away.frame = current.frame;
  fragments.push_back(std::move(away));
  current.lanes &= ~taken;
  watch = 0;
}

void Warp::exit(Mask lanes) {
  gone |= lanes;
  current.lanes &= ~lanes;
  watch = 0;
  if (done())
    checkRegisters(*this);
  owner.threadsExited();
}

void Warp::wait(Mask lanes, Wait why, uint64_t object, uint64_t detail, bool repeat) {
  if (Profile *profile = owner.cluster().profile(); profile && why != Wait::Converge && why != Wait::Gather)
    profile->wait(currentPc);
  Fragment waiting;
  waiting.pc = repeat ? currentPc : nextPc;
  waiting.lanes = lanes;
  waiting.frame = current.frame;
  waiting.wait = why;
  waiting.object = object;
  waiting.detail = detail;
  fragments.push_back(std::move(waiting));
  current.lanes &= ~lanes;
  watch = 0;
}

bool Warp::converged(Mask needed, Mask here) {
  if (!(needed & ~gone & ~here))
    return true;
  wait(here, Wait::Converge, 0, 0, /*repeat=*/true);
  fragments.back().awaited = needed;
  return false;
}

const std::vector<Part> &Warp::gather(Mask needed, Mask here) {
  gathered.assign(1, {&program().ops[currentPc], current.frame.get(), here});
  if (!(needed & ~gone & ~here))
    return gathered;
  wait(here, Wait::Gather, 0, 0, /*repeat=*/true);
  fragments.back().awaited = needed;
  if (awaitedBy(fragments.back())) {
    gathered.clear();
    return gathered;
  }
  for (Fragment &f : fragments) {
    if (f.wait != Wait::Gather || f.awaited != needed || !haveSameQualifiers(f.pc, currentPc))
      continue;
    if (&f != &fragments.back())
      gathered.push_back({&program().ops[f.pc], f.frame.get(), f.lanes});
    f.wait = Wait::None;
    ++f.pc;
  }
  return gathered;
}

void Warp::locate(Fault &fault, Mask lanes) const {
  owner.launch().locate(fault, currentPc);
  fault.block = owner.index();
  if (lanes || current.lanes) {
    fault.hasThread = true;
    fault.thread =
        owner.threadIndex(number * kLanes + unsigned(__builtin_ctz(lanes ? lanes : current.lanes)));
  }
}

static Fault makeFault(const Warp &warp, FaultKind kind, std::string message, Mask lanes) {
  Fault fault;
  fault.kind = kind;
  fault.message = std::move(message);
  warp.locate(fault, lanes);
  return fault;
}

void Warp::fault(FaultKind kind, std::string message, Mask lanes) const {
  throw makeFault(*this, kind, std::move(message), lanes);
}

void Warp::finding(FaultKind kind, std::string message, Mask lanes) const {
  owner.launch().find(makeFault(*this, kind, std::move(message), lanes));
}

static std::string hex(Mask mask) {
  char text[16];
  snprintf(text, sizeof text, "%08x", mask);
  return text;
}

static const char *reason(Wait wait) {
  switch (wait) {
  case Wait::None:
    return "running";
  case Wait::Converge:
  case Wait::Gather:
    return "waiting for lanes";
  case Wait::Barrier:
    return "waiting at barrier";
  case Wait::Cluster:
    return "waiting at the cluster's barrier";
  case Wait::Mbarrier:
    return "waiting for mbarrier";
  case Wait::Async:
    return "waiting for its asynchronous operations";
  case Wait::TensorMemory:
    return "waiting for tensor memory, or for the other block of its pair";
  case Wait::Registers:
    return "waiting for registers:";
  }
  return "";
}

std::string Warp::describe() const {
  std::string out;
  for (const Fragment &f : fragments) {
    Fault place;
    owner.launch().locate(place, f.wait == Wait::Barrier || f.wait == Wait::Cluster ? f.pc - 1 : f.pc);
    out += "  warp " + std::to_string(number) + " lanes " + hex(f.lanes) + " at line " +
           std::to_string(place.line) + " (" + place.instruction + ") " + reason(f.wait);
    if (f.wait == Wait::Converge || f.wait == Wait::Gather)
      out += " " + hex(awaitedBy(f)) + (f.wait == Wait::Converge ? " at this very instruction" : "");
    else if (f.wait == Wait::Barrier)
      out += " " + std::to_string(f.object);
    else if (f.wait == Wait::Mbarrier)
      out += " at shared address " + std::to_string(f.object);
    else if (f.wait == Wait::Registers)
      out += " " + std::to_string(owner.registers()->free) + " of " + std::to_string(owner.registers()->all) +
             " free, it needs " + std::to_string(f.detail) + " more";
    out += "\n";
  }
  if (gone)
    out += "  warp " + std::to_string(number) + " lanes " + hex(gone) + " exited\n";
  return out;
}
