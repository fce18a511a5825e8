// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers of blocks and clusters, fences (PTX ISA 9.7.13.1 to 9.7.13.4).

#include "WarpOps.h"

#include "check/Races.h"
#include "exec/Block.h"
#include "exec/Launch.h"
#include "isa/Families.h"
#include "isa/Lanes.h"
#include "isa/memory/Memory.h"

using namespace fp8emu;
using ptx::Type;

namespace {

enum Reduction : uint8_t { Population, Conjunction, Disjunction };
/// Of barrier.cluster.arrive: op.flags.
constexpr uint8_t kRelaxedArrival = 1;
enum Kind : uint16_t { Sync = 1, Reduce = 2, Arrive = 4, Aligned = 8 };

/// A barrier's number or count: the same in all lanes.
uint32_t uniform(Warp &warp, Ref ref, Mask mask, const char *what) {
  const uint32_t *values = warp.values<uint32_t>(ref);
  uint32_t first = values[__builtin_ctz(mask)];
  forLanes(mask, [&](unsigned lane) {
    if (values[lane] != first)
      warp.fault(FaultKind::BarrierDivergence, std::string("lanes name different ") + what, Mask(1) << lane);
  });
  return first;
}

void barrier(Warp &warp, const Op &op, Mask mask) {
  // All lanes of the warp execute an aligned one together.
  if ((op.small & Aligned) && !warp.converged(warp.existing(), mask))
    return;
  uint32_t id = uniform(warp, op.a, mask, "barriers");
  uint32_t threads = op.b ? uniform(warp, op.b, mask, "numbers of threads") : 0;
  if (id >= 16)
    warp.fault(FaultKind::IllegalOperand, "barrier " + std::to_string(id) + " is named, there are 16", mask);
  if (op.b &&
      (threads == 0 || threads % kLanes || threads > (warp.block().threads() + kLanes - 1) / kLanes * kLanes))
    warp.fault(FaultKind::IllegalOperand,
               "a barrier for " + std::to_string(threads) +
                   " threads: it must be a multiple of 32 and the block has " +
                   std::to_string(warp.block().threads()),
               mask);
  Mask predicate = op.c ? warp.predicate(op.c) : 0;
  if (op.c && op.immediate)
    predicate = ~predicate;
  // Waits first: completing it may be what this arrival does.
  if (!(op.small & Arrive))
    warp.wait(mask, Wait::Barrier, id, op.small & Reduce ? reinterpret_cast<uint64_t>(&op) : 0,
              /*repeat=*/false);
  warp.block().arrive(warp, id, threads, mask, predicate);
}

void decodeBarrier(Decoder &decoder, bool aligned) {
  decoder.take("cta");
  Op &op = decoder.op();
  int kind = decoder.needOneOf({"sync", "red", "arrive"});
  op.small = uint16_t(kind == 0 ? Sync : kind == 1 ? Reduce : Arrive);
  if (aligned || decoder.take("aligned"))
    op.small |= Aligned;
  unsigned first = 0;
  if (kind == 1) {
    op.flags = uint8_t(decoder.needOneOf({"popc", "and", "or"}));
    decoder.takeOneOf({"u32", "pred"});
    op.d = op.flags == Population ? decoder.destination(0, Type::U32)
                                  : decoder.predicateDestination(decoder.operand(0));
    first = 1;
  }
  unsigned last = decoder.operands() - (kind == 1);
  op.a = decoder.source(first, Type::U32);
  if (last > first + 1)
    op.b = decoder.source(first + 1, Type::U32);
  if (kind == 1) {
    bool negated = false;
    op.c = decoder.predicate(decoder.operand(last), &negated);
    op.immediate = negated;
  }
  if (kind == 2 && !op.b)
    decoder.fail("arriving without waiting needs a number of threads");
  op.handler = &barrier;
}

void decodeBar(Decoder &decoder) {
  decoder.take("warp") ? decodeWarpBarrier(decoder) : decodeBarrier(decoder, /*aligned=*/true);
}

/// barrier.cluster. A thread that arrives twice without waiting, or waits without
/// having arrived, would hang or run ahead on hardware.
void arriveCluster(Warp &warp, const Op &op, Mask mask) {
  if ((op.small & Aligned) && !warp.converged(warp.existing(), mask))
    return;
  Mask twice = mask & warp.clusterArrived();
  if (twice)
    warp.fault(FaultKind::BarrierDivergence, "arrives at the cluster's barrier again without having waited",
               twice);
  warp.clusterArrived() |= mask;
  warp.clusterPhase() = warp.block().cluster().phase();
  check::arriveAtCluster(warp, mask, /*releases=*/op.flags != kRelaxedArrival);
  warp.block().cluster().arrive(unsigned(__builtin_popcount(mask)));
}

void waitCluster(Warp &warp, const Op &op, Mask mask) {
  if ((op.small & Aligned) && !warp.converged(warp.existing(), mask))
    return;
  Mask never = mask & ~warp.clusterArrived();
  if (never)
    warp.fault(FaultKind::BarrierDivergence, "waits at the cluster's barrier without having arrived", never);
  uint64_t phase = warp.clusterPhase();
  warp.clusterArrived() &= ~mask;
  if (warp.block().cluster().phase() == phase)
    warp.wait(mask, Wait::Cluster, phase, 0, /*repeat=*/false);
  else if (Observer *observer = warp.block().launch().observer())
    observer->waitedForCluster(warp, mask, phase);
}

void decodeBarrierLong(Decoder &decoder) {
  if (!decoder.take("cluster"))
    return decodeBarrier(decoder, /*aligned=*/false);
  int kind = decoder.needOneOf({"arrive", "wait"});
  if (decoder.takeOneOf({"release", "relaxed", "acquire"}) == 1)
    decoder.op().flags = kRelaxedArrival;
  decoder.op().small = decoder.take("aligned") ? Aligned : 0;
  decoder.expectOperands(0);
  decoder.op().handler = kind == 0 ? &arriveCluster : &waitCluster;
}

/// Fences change no value here: memory is sequentially consistent. Checks are told which accesses a fence
/// orders: by op.flags, of these values, and by op.ordering, as of accesses.
enum FenceFlags : uint8_t { OfMemory = 1, OfAsyncProxy = 2, OfTensorMap = 4, Sequential = 8 };
void fence(Warp &warp, const Op &op, Mask mask) {
  using namespace check;
  if (op.flags & OfMemory)
    check::fence(warp, mask, ordering::level(op.ordering), op.ordering & ordering::kAcquire,
                 op.ordering & ordering::kRelease);
  if (op.flags & Sequential)
    fenceSequence(warp, mask);
  if (op.flags & OfAsyncProxy)
    fenceProxy(warp, mask);
  if (op.flags & OfTensorMap)
    fenceMaps(warp, mask);
}

/// \`scope\` as of fence: cta, cluster, gpu or wider.
void setFence(Op &op, int scope, bool acquires, bool releases) {
  using check::Level;
  op.flags |= OfMemory;
  op.ordering = check::ordering::strong(scope == 0   ? Level::Block
                                        : scope == 1 ? Level::Cluster
                                                     : Level::Device,
                                        acquires, releases);
}

void decodeFence(Decoder &decoder) {
  bool isProxy = decoder.take("proxy");
  int proxy = decoder.takeOneOf(
      {"alias", "async", "async::generic", "async.global", "tensormap::generic", "tensormap"});
  decoder.takeOneOf({"generic", "async::generic"});
  decoder.takeOneOf({"global", "shared::cta", "shared::cluster", "shared"});
  decoder.take("mbarrier_init");
  int semantics = decoder.takeOneOf({"sc", "acq_rel", "acquire", "release"});
  decoder.takeOneOf({"sync_restrict::shared::cluster", "sync_restrict::shared::cta"});
  int scope = decoder.takeOneOf({"cta", "cluster", "gpu", "sys", "gl"});
  if (semantics >= 0 && scope > 0)
    decoder.blocksCommunicate();
  // An acquire of a tensor map names it: its address and 128 bytes.
  const bool namesMap = proxy == 4 && semantics == 2;
  decoder.expectOperands(namesMap ? 2 : 0);
  if (namesMap) {
    decodeAddress(decoder, decoder.operand(0), MemorySpace::Generic);
    if (decoder.integer(decoder.operand(1)) != 128)
      decoder.fail(decoder.operand(1), "a tensor map has 128 bytes");
  }
  enum { SequentiallyConsistent, Acquire = 2, Release = 3 };
  if (scope >= 0)
    setFence(decoder.op(), scope, semantics != Release, semantics != Acquire);
  if (semantics == SequentiallyConsistent && scope > 1)
    decoder.op().flags |= Sequential;
  if (isProxy && proxy >= 1 && proxy <= 3)
    decoder.op().flags |= OfAsyncProxy;
  if (namesMap)
    decoder.op().flags |= OfTensorMap;
  decoder.op().handler = &fence;
}

void decodeMembar(Decoder &decoder) {
  bool isProxy = decoder.take("proxy");
  if (decoder.takeOneOf({"alias", "async"}) == 1 && isProxy)
    decoder.op().flags |= OfAsyncProxy;
  int level = decoder.takeOneOf({"cta", "gl", "sys"});
  if (level > 0)
    decoder.blocksCommunicate();
  if (level >= 0)
    setFence(decoder.op(), level ? 2 : 0, /*acquires=*/true, /*releases=*/true);
  // They are fence.sc.
  if (level > 0)
    decoder.op().flags |= Sequential;
  decoder.op().handler = &fence;
}

} // namespace

FamilyList fp8emu::barrierInstructions() {
  return {
      {"bar", decodeBar}, {"barrier", decodeBarrierLong}, {"fence", decodeFence}, {"membar", decodeMembar}};
}
