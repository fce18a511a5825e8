// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks: memory, special registers, barriers, and the order in which warps run.

#include "Block.h"

#include "Launch.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;

namespace {
/// Instructions a warp runs before another may: short ones interleave warps finely,
/// long ones are fast. Drawn anew each time.
constexpr uint64_t kShortTurn = 16, kLongTurn = 4096;
} // namespace

Block::Block(Cluster &cluster, const std::array<uint32_t, 3> &index, unsigned rank)
    : owner(cluster), place(index), clusterRank(rank) {
  const Launch &launch = owner.launch();
  const auto &size = launch.config().block;
  threadCount = size[0] * size[1] * size[2];
  sharedSize = launch.kernel().staticSharedBytes + launch.config().dynamicShared;
  if (launch.program().usesReservedShared)
    sharedSize = reservedShared() + kReservedSharedBytes;
  sharedMemory = std::make_unique<uint8_t[]>(sharedSize + 1);
  sharedWritten = std::make_unique<uint8_t[]>(sharedSize + 1);
  if (launch.program().usesReservedShared)
    std::memset(sharedWritten.get() + reservedShared(), 1, kReservedSharedBytes);
  if (Observer *observer = launch.observer())
    observed = observer->begin(*this);
  unsigned warps = (threadCount + kLanes - 1) / kLanes;
  if (launch.kernel().setmaxnreg == Setmaxnreg::Obeyed)
    pool = std::make_unique<RegisterPool>(warps, (launch.kernel().registers + 7) / 8 * 8);
  if (uint64_t local = launch.localBytesPerThread())
    localMemory = std::make_unique<uint8_t[]>(local * warps * kLanes);
  for (unsigned w = 0; w < warps; ++w) {
    unsigned lanes = std::min(threadCount - w * kLanes, kLanes);
    members.push_back(std::make_unique<Warp>(*this, w, lanes == kLanes ? kAllLanes : (Mask(1) << lanes) - 1));
  }
}

uint32_t Block::reservedShared() const {
  uint32_t used = launch().kernel().staticSharedBytes + launch().config().dynamicShared;
  return (used + 15) / 16 * 16;
}

Launch &Block::launch() const { return owner.launch(); }

uint64_t Block::random() const { return owner.random(); }

std::array<uint32_t, 3> Block::threadIndex(unsigned linear) const {
  const auto &size = launch().config().block;
  return {linear % size[0], linear / size[0] % size[1], linear / size[0] / size[1]};
}

uint8_t *Block::local(unsigned warp, unsigned lane) const {
  return localMemory.get() + uint64_t(launch().localBytesPerThread()) * (warp * kLanes + lane);
}

unsigned Block::threadsAlive() const {
  unsigned alive = 0;
  for (const auto &warp : members)
    alive += unsigned(__builtin_popcount(warp->existing() & ~warp->exited()));
  return alive;
}

bool Block::done() const {
  return std::all_of(members.begin(), members.end(), [](const auto &warp) { return warp->done(); });
}

bool Block::runnable() const {
  return std::any_of(members.begin(), members.end(), [](const auto &warp) { return warp->runnable(); });
}

uint64_t Block::run() {
  // A random order, without waiting warps.
  std::vector<Warp *> order;
  for (auto &warp : members)
    if (warp->runnable())
      order.push_back(warp.get());
  std::shuffle(order.begin(), order.end(), owner.generator());
  uint64_t done = 0;
  for (Warp *warp : order)
    done += warp->run(random() % 4 ? kLongTurn : kShortTurn + random() % kShortTurn);
  return done;
}

void Block::arrive(Warp &warp, unsigned id, unsigned expected, Mask lanes, Mask predicate) {
  Barrier &barrier = barriers[id];
  if (barrier.arrived && barrier.expected != expected)
    warp.fault(FaultKind::BarrierDivergence,
               "barrier " + std::to_string(id) + " is waited at by " + std::to_string(barrier.arrived) +
                   " threads for " +
                   (barrier.expected ? std::to_string(barrier.expected) : std::string("all")) + ", now " +
                   (expected ? std::to_string(expected) : std::string("all")) + " are named",
               lanes);
  if (Observer *observer = launch().observer())
    observer->arriveAtBarrier(warp, id, lanes);
  unsigned threads = unsigned(__builtin_popcount(lanes));
  barrier.expected = expected;
  barrier.arrived += threads;
  barrier.population += unsigned(__builtin_popcount(lanes & predicate));
  barrier.conjunction &= !(lanes & ~predicate);
  barrier.disjunction |= (lanes & predicate) != 0;
  if (expected && barrier.arrived > expected)
    warp.fault(FaultKind::BarrierDivergence,
               "barrier " + std::to_string(id) + " is for " + std::to_string(expected) + " threads, " +
                   std::to_string(barrier.arrived) + " have come",
               lanes);
  if (barrier.arrived >= (expected ? expected : threadsAlive()))
    complete(id);
}

/// Ends a phase: waiting lanes go on, with the reduction's result.
void Block::complete(unsigned id) {
  if (Observer *observer = launch().observer())
    observer->completeBarrier(*this, id);
  Barrier barrier = barriers[id];
  barriers[id] = Barrier();
  for (auto &warp : members)
    for (Fragment &f : warp->waiting()) {
      if (f.wait != Wait::Barrier || f.object != id)
        continue;
      f.wait = Wait::None;
      const Op *op = reinterpret_cast<const Op *>(f.detail);
      if (!op)
        continue;
      uint8_t *registers = f.frame->registers.get() + op->d.offset;
      bool holds = op->flags == 1 ? barrier.conjunction : barrier.disjunction;
      Mask &bits = *reinterpret_cast<Mask *>(registers);
      if (op->flags == 0)
        forLanes(f.lanes,
                 [&](unsigned lane) { reinterpret_cast<uint32_t *>(registers)[lane] = barrier.population; });
      else
        bits = holds ? bits | f.lanes : bits & ~f.lanes;
    }
}

void Block::threadsExited() {
  unsigned alive = threadsAlive();
  // PTX ISA 9.7.16.1.2: all that was allocated must be deallocated before.
  if (!alive && tensor)
    tensor->checkLeak();
  for (unsigned id = 0; id < barriers.size(); ++id)
    if (barriers[id].arrived && !barriers[id].expected && barriers[id].arrived >= alive)
      complete(id);
  owner.threadsExited();
}

void Block::wake(Wait why, uint64_t object) {
  for (auto &warp : members)
    for (Fragment &f : warp->waiting())
      if (f.wait == why && f.object == object)
        f.wait = Wait::None;
}

std::string Block::describe() const {
  std::string out = "block (" + std::to_string(place[0]) + "," + std::to_string(place[1]) + "," +
                    std::to_string(place[2]) + "):\n";
  for (unsigned id = 0; id < barriers.size(); ++id)
    if (barriers[id].arrived)
      out += "  barrier " + std::to_string(id) + ": " + std::to_string(barriers[id].arrived) + " of " +
             std::to_string(barriers[id].expected ? barriers[id].expected : threadsAlive()) + " threads\n";
  for (const auto &warp : members)
    out += warp->describe();
  return out;
}

namespace {
using Dim3 = std::array<uint32_t, 3>;

/// Values of special registers, a row of 32 each.
class SpecialWriter {
public:
  explicit SpecialWriter(uint8_t *memory) : memory(memory) {}
  uint32_t *row(Special special) { return reinterpret_cast<uint32_t *>(memory) + uint32_t(special) * kLanes; }
  void all(Special special, uint32_t value) { std::fill_n(row(special), kLanes, value); }
  void all(Special first, const Dim3 &values) {
    for (unsigned i = 0; i < 3; ++i)
      all(Special(uint32_t(first) + i), values[i]);
  }

private:
  uint8_t *memory;
};
} // namespace

static void fillLanes(SpecialWriter &out) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint32_t bit = 1u << lane;
    out.row(Special::LaneId)[lane] = lane;
    out.row(Special::LanemaskEq)[lane] = bit;
    out.row(Special::LanemaskLt)[lane] = bit - 1;
    out.row(Special::LanemaskLe)[lane] = bit - 1 + bit;
    out.row(Special::LanemaskGt)[lane] = ~(bit - 1 + bit);
    out.row(Special::LanemaskGe)[lane] = ~(bit - 1);
  }
}

static void fillCluster(SpecialWriter &out, const Launch &launch, const Block &block) {
  const Dim3 &size = launch.config().cluster;
  const Dim3 &place = block.index();
  Dim3 inside = {place[0] % size[0], place[1] % size[1], place[2] % size[2]};
  out.all(Special::ClusteridX, block.cluster().index());
  out.all(Special::NclusteridX, launch.clusterGrid());
  out.all(Special::ClusterCtaidX, inside);
  out.all(Special::ClusterNctaidX, size);
  out.all(Special::ClusterCtarank, block.rank());
  out.all(Special::ClusterNctarank, size[0] * size[1] * size[2]);
}

void Block::fillSpecials(uint8_t *memory, unsigned warp) const {
  SpecialWriter out(memory);
  fillLanes(out);
  fillCluster(out, launch(), *this);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    Dim3 thread = threadIndex(warp * kLanes + lane);
    for (unsigned i = 0; i < 3; ++i)
      out.row(Special(uint32_t(Special::TidX) + i))[lane] = thread[i];
  }
  out.all(Special::NtidX, launch().config().block);
  out.all(Special::CtaidX, place);
  out.all(Special::NctaidX, launch().config().grid);
  out.all(Special::WarpId, warp);
  out.all(Special::NwarpId, uint32_t((threadCount + kLanes - 1) / kLanes));
  uint64_t linear = place[0] + uint64_t(launch().config().grid[0]) *
                                   (place[1] + uint64_t(place[2]) * launch().config().grid[1]);
  out.all(Special::SmId, uint32_t(linear % launch().settings().multiprocessors));
  out.all(Special::NsmId, launch().settings().multiprocessors);
  out.all(Special::TotalSmemSize, sharedSize);
  out.all(Special::AggrSmemSize, sharedSize);
  out.all(Special::DynamicSmemSize, launch().config().dynamicShared);
  out.all(Special::ReservedSmemBegin, sharedBase() + reservedShared());
  out.all(Special::ReservedSmemEnd, sharedBase() + reservedShared() + kReservedSharedBytes);
  // The workspace of a cooperative grid, where its barrier lies.
  out.all(Special::Envreg1, uint32_t(launch().gridWorkspace() >> 32));
  out.all(Special::Envreg2, uint32_t(launch().gridWorkspace()));
  out.all(Special::Zero, 0);
  for (const BlockAddress &address : launch().program().blockAddresses) {
    uint64_t value = address.offset + sharedBase();
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(memory + address.place + lane * address.width, &value, address.width);
  }
}
