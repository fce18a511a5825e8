// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL's communicators: one of all ranks, and one for each group of a grid that a collective has named.

#ifndef FP8RT_COLLECTIVES_NCCL_NCCLGROUPS_H
#define FP8RT_COLLECTIVES_NCCL_NCCLGROUPS_H

#include "../HostRanks.h"
#include "Nccl.h"

#include <map>

namespace fp8rt::collectives::nccl {

/// They do not block (ncclConfig's blocking = 0): every call is followed by polling. The device's context
/// must be current, except for `error` and `abort`, which another thread may call.
class NcclGroups {
public:
  /// Connects all ranks; each comes to this point. Throws FP8RT_RANKS.
  explicit NcclGroups(HostRanks &host);
  NcclGroups(const NcclGroups &) = delete;
  NcclGroups &operator=(const NcclGroups &) = delete;
  /// Ends them once the others have done what is under way.
  ~NcclGroups();

  /// Returns the communicator of a group of several ranks. At the first time of a grid and its axes, each
  /// rank comes to this point.
  ncclComm_t of(const Collective &collective);
  /// Waits until NCCL has given its work to the stream.
  void settle(ncclComm_t comm, const std::string &what);

  /// To be held while NCCL is called: `abort` waits a while for it. Throws FP8RT_RANKS after an abort.
  std::unique_lock<std::timed_mutex> use();

  /// Returns what has gone wrong while NCCL was working; empty if nothing has.
  std::string error();
  /// Lets all that is under way end, on the device too; nothing is possible afterwards.
  void abort();

private:
  using Key = std::pair<uint64_t, uint32_t>; // grid and axes
  static Key keyOf(const Collective &collective) {
    return {collective.description.grid, collective.description.axes};
  }
  std::vector<ncclComm_t> handles() const;
  ncclResult_t state(ncclComm_t comm);
  void end(ncclComm_t comm);

  HostRanks &host;
  const Nccl &nccl;
  std::timed_mutex inUse;
  std::mutex mutex; // of the following
  bool isAborted = false;
  ncclComm_t everyone = nullptr;
  /// NCCL writes a new one from a thread of its own: null until then.
  std::map<Key, ncclComm_t> groups;
};

} // namespace fp8rt::collectives::nccl

#endif // FP8RT_COLLECTIVES_NCCL_NCCLGROUPS_H
