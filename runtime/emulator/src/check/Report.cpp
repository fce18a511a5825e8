// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of a fault: both accesses, and what is missing between them.

#include "Record.h"

#include "exec/Block.h"
#include "exec/Launch.h"

using namespace fp8emu;
using namespace fp8emu::check;

namespace {

using Dim3 = std::array<uint32_t, 3>;

std::string text(const Dim3 &index) {
  return "(" + std::to_string(index[0]) + "," + std::to_string(index[1]) + "," + std::to_string(index[2]) +
         ")";
}

Dim3 unravel(uint32_t index, const Dim3 &size) {
  return {index % size[0], index / size[0] % size[1], index / size[0] / size[1]};
}

const char *verb(const AccessInfo &access) {
  return access.isAtomic ? "updated" : access.isWrite ? "written" : "read";
}

/// As in "thread (3,0,0) of block (0,0,0) at line 12 (st.shared.b32)".
std::string whoAndWhere(const LaunchRaces &launch, const AccessInfo &access, unsigned lane) {
  Fault place;
  launch.launch.locate(place, access.pc);
  const LaunchConfig &sizes = launch.launch.config();
  std::string who = "thread " + text(unravel(access.warp * kLanes + lane, sizes.block)) + " of block " +
                    text(unravel(access.block, sizes.grid));
  if (access.isAgent)
    who = "the asynchronous operation that " + who + " started";
  std::string where = "line " + std::to_string(place.line) + " (" + place.instruction + ")";
  return who + " at " + where + (place.source.empty() ? "" : ", " + place.source);
}

std::string bytesAt(const Conflict &conflict) {
  char address[24];
  snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(conflict.target.address));
  std::string where = conflict.target.block ? " bytes at shared offset " : " bytes at ";
  std::string out = std::to_string(conflict.bytes) + where + address;
  if (conflict.target.block && conflict.target.block->cluster().blocks().size() > 1)
    out += " of block " + text(conflict.target.block->index());
  return out;
}

std::string waitFor(const AccessInfo &operation) {
  return operation.isAsyncProxy ? "a wait for its mbarrier or group" : "cp.async.wait_group";
}

/// The synchronization that would order the two accesses.
std::string missing(const LaunchRaces &launch, const Conflict &conflict) {
  const AccessInfo &a = conflict.before, &b = conflict.now;
  if (conflict.kind == FaultKind::MissingProxyFence)
    return b.isAgent ? "fence.proxy.async is missing between them"
                     : "fence.proxy.tensormap::generic.acquire is missing between them";
  if (a.isAgent)
    return waitFor(a) + " is missing, or a barrier after it";
  if (b.isAgent && conflict.kind == FaultKind::AsyncOverwrite)
    return "a wait for the operation's group is missing";
  if (a.strength != Level::None && b.strength != Level::None)
    return "both are strong, but the scope of one does not include the other's thread";
  if (a.block == b.block && a.warp == b.warp)
    return "bar.warp.sync is missing between them";
  if (a.block == b.block)
    return "a barrier of the block is missing between them";
  if (launch.launch.config().cluster != Dim3{1, 1, 1} && conflict.target.block)
    return "a barrier of the cluster is missing between them";
  return "a release and an acquire at the scope of both are missing between them";
}

} // namespace

Fault check::report(const LaunchRaces &launch, const Conflict &conflict) {
  Mask before = conflict.lanesBefore, others = before & ~(Mask(1) << conflict.lane);
  bool sameWarp = conflict.before.block == conflict.now.block && conflict.before.warp == conflict.now.warp;
  unsigned lane = unsigned(__builtin_ctz(sameWarp && others ? others : before));
  Fault fault;
  fault.kind = conflict.kind;
  fault.message = bytesAt(conflict) + " are " + verb(conflict.now) + " by " +
                  (conflict.now.isAgent ? "the asynchronous operation" : "the thread") + " and were " +
                  verb(conflict.before) + " by " + whoAndWhere(launch, conflict.before, lane) + ": " +
                  (conflict.kind == FaultKind::MissingProxyFence ? "ordered, but not across proxies; "
                                                                 : "nothing orders the two; ") +
                  missing(launch, conflict);
  return fault;
}

Fault check::report(const LaunchRaces &launch, const TensorAccess &before, const TensorAccess &now,
                    bool synchronized) {
  static const char *const waits[] = {"a wait for the mbarrier of a tcgen05.commit", "tcgen05.wait::ld",
                                      "tcgen05.wait::st"};
  const bool sameWarp = before.info.block == now.info.block && before.info.warp == now.info.warp;
  std::string missing = "tcgen05.fence::after_thread_sync";
  if (!synchronized) {
    missing = waits[size_t(before.pipe)];
    const bool fences = launch.launch.settings().tensorFences;
    if (!sameWarp && (fences || before.pipe == TensorPipe::Engine))
      missing += ", or what orders the two threads with tcgen05.fence::before_thread_sync before it and "
                 "::after_thread_sync after it,";
    else if (!sameWarp)
      missing += " and a barrier, or a releasing arrival and an acquiring wait,";
  }
  Fault fault;
  fault.kind = before.info.isWrite ? FaultKind::Race : FaultKind::AsyncOverwrite;
  fault.message = before.range.text() + " of tensor memory were " + verb(before.info) + " by " +
                  whoAndWhere(launch, before.info, before.lane) + ", and " + now.range.text() + " are " +
                  verb(now.info) + " by the asynchronous operation: nothing orders the two; " + missing +
                  " is missing between them";
  return fault;
}
