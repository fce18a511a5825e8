// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Making, polling and ending communicators.

#include "NcclGroups.h"
#include "../../core/Status.h"
#include "../Missing.h"

#include <algorithm>
#include <chrono>
#include <unistd.h>

using namespace fp8rt;
using namespace fp8rt::collectives;
using namespace fp8rt::collectives::nccl;
using Clock = std::chrono::steady_clock;

namespace {

/// How many seconds the others have for what is under way, when a communicator ends.
constexpr double kFarewell = 5;
/// For how many seconds this rank may be behind others that have done their part and ended.
constexpr double kGrace = 0.5;

/// For how long `abort` lets a call of NCCL go on.
constexpr std::chrono::milliseconds kCallTime(200);

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

ncclConfig_t withoutBlocking() {
  ncclConfig_t config;
  config.blocking = 0;
  return config;
}

} // namespace

NcclGroups::NcclGroups(HostRanks &host) : host(host), nccl(Nccl::get()) {
  std::vector<ncclUniqueId> ids(host.size());
  ncclUniqueId own = {};
  if (host.rank() == 0)
    nccl.check(nccl.getUniqueId(&own), "ncclGetUniqueId");
  host.gather(&own, sizeof(own), ids.data());
  ncclConfig_t config = withoutBlocking();
  nccl.check(nccl.commInitRankConfig(&everyone, static_cast<int>(host.size()), ids[0],
                                     static_cast<int>(host.rank()), &config),
             "ncclCommInitRankConfig");
  try {
    settle(everyone, "ncclCommInitRankConfig");
  } catch (...) {
    abort();
    throw;
  }
}

NcclGroups::~NcclGroups() {
  if (!host.way().failure().empty())
    abort();
  if (isAborted)
    return;
  for (ncclComm_t comm : handles())
    end(comm);
}

/// Returns all communicators, that of everyone last. The caller holds the lock, or is the last one here.
std::vector<ncclComm_t> NcclGroups::handles() const {
  std::vector<ncclComm_t> all;
  for (const auto &[key, comm] : groups)
    if (ncclComm_t made = __atomic_load_n(&comm, __ATOMIC_ACQUIRE))
      all.push_back(made);
  all.push_back(everyone);
  return all;
}

void NcclGroups::end(ncclComm_t comm) {
  Clock::time_point start = Clock::now();
  ncclResult_t code = nccl.commFinalize(comm);
  double seconds = std::min(host.way().deadline(), kFarewell);
  while (code == ncclInProgress && secondsSince(start) < seconds) {
    usleep(100);
    if (nccl.commGetAsyncError(comm, &code) != ncclSuccess)
      break;
  }
  code == ncclSuccess ? nccl.commDestroy(comm) : nccl.commAbort(comm);
}

ncclResult_t NcclGroups::state(ncclComm_t comm) {
  std::lock_guard<std::mutex> lock(mutex);
  ncclResult_t code = ncclSuccess;
  if (isAborted)
    fail(FP8RT_RANKS, host.way().failure());
  nccl.check(nccl.commGetAsyncError(comm, &code), "ncclCommGetAsyncError", comm);
  return code;
}

std::unique_lock<std::timed_mutex> NcclGroups::use() {
  std::unique_lock<std::timed_mutex> held(inUse);
  std::lock_guard<std::mutex> lock(mutex);
  if (isAborted)
    fail(FP8RT_RANKS, host.way().failure());
  return held;
}

void NcclGroups::settle(ncclComm_t comm, const std::string &what) {
  Clock::time_point start = Clock::now();
  for (ncclResult_t code; (code = state(comm)) != ncclSuccess;) {
    nccl.check(code, what, comm);
    std::string failure = host.way().failure();
    if (!failure.empty())
      fail(FP8RT_RANKS, failure);
    double waited = secondsSince(start);
    for (uint32_t other = 0; other < host.size() && waited > kGrace; ++other) {
      Absence absence = host.way().absence(other);
      if (absence != Absence::None)
        fail(FP8RT_RANKS, describeRanks({other}) + " did not complete " + what + ": " + describe(absence));
    }
    if (waited > host.way().deadline())
      fail(FP8RT_RANKS, what + " was not complete within " + describeSeconds(host.way().deadline()));
    usleep(20);
  }
}

ncclComm_t NcclGroups::of(const Collective &collective) {
  if (collective.groupSize() == host.size())
    return everyone;
  ncclComm_t *comm = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex);
    comm = &groups[keyOf(collective)]; // stays where it is
  }
  if (*comm)
    return *comm;
  ncclConfig_t config = withoutBlocking();
  // The group's first rank is its color.
  nccl.check(nccl.commSplit(everyone, static_cast<int>(collective.members.front()),
                            static_cast<int>(collective.index), comm, &config),
             "ncclCommSplit", everyone);
  settle(everyone, "ncclCommSplit");
  settle(*comm, "ncclCommSplit");
  return *comm;
}

std::string NcclGroups::error() {
  std::lock_guard<std::mutex> lock(mutex);
  for (ncclComm_t comm : handles()) {
    ncclResult_t code = ncclSuccess;
    if (isAborted || nccl.commGetAsyncError(comm, &code) != ncclSuccess)
      return "";
    if (code != ncclSuccess && code != ncclInProgress)
      return nccl.describe(code, comm);
  }
  return "";
}

/// A call that does not return waits for a rank, or for a device that does: this ends it. The communicators
/// are not locked meanwhile, for NCCL waits for graphs that contain its work.
void NcclGroups::abort() {
  std::vector<ncclComm_t> all;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (std::exchange(isAborted, true))
      return;
    all = handles();
  }
  std::unique_lock<std::timed_mutex> held(inUse, kCallTime);
  for (ncclComm_t comm : all)
    nccl.commAbort(comm);
}
