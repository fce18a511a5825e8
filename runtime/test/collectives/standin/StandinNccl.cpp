// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A libnccl for tests without GPUs. It has the entry points that the runtime uses, and moves data between
// processes, or threads of one, that use the emulator. As NCCL's, its communicators do not block: calls
// return before their work is done, and are polled. Fault.h says how to let something go wrong.

#include "Fault.h"
#include "Work.h"

#include <cstring>

using namespace fp8rt_test;
using namespace fp8rt::collectives::nccl;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int64_t standinLive() { return live; }
EXPORT int64_t standinCaptured() { return countCaptured(); }
EXPORT int64_t standinForgetGraphs() {
  forgetGraphs();
  return 0;
}

// NCCL's entry points, whose names are its own.
// NOLINTBEGIN(readability-identifier-naming)
EXPORT ncclResult_t ncclGetVersion(int *version) {
  *version = 22000;
  return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(ncclResult_t code) {
  constexpr const char *kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return kTexts[code];
}
EXPORT const char *ncclGetLastError(ncclComm_t) { return ""; }

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (isToFail("ncclGetUniqueId", 0))
    return ncclSystemError;
  Place place = Place::create();
  ++live;
  std::memcpy(id->internal, &place, sizeof(place));
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                           ncclConfig_t *config) {
  if (config->size != sizeof(ncclConfig_t) || config->magic != kConfigMagic || config->blocking != 0)
    return ncclInvalidUsage;
  if (isToFail("ncclCommInitRankConfig", static_cast<uint32_t>(rank)))
    return ncclSystemError;
  Comm comm = add(static_cast<uint32_t>(rank), static_cast<uint32_t>(size));
  Place place;
  std::memcpy(&place, id.internal, sizeof(place));
  if (rank == 0)
    comm->place = place;
  comm->connecting = std::thread([raw = comm.get(), place] { raw->join(place); });
  *out = comm.get();
  return ncclInProgress;
}

EXPORT ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t *out,
                                  ncclConfig_t *config) {
  Comm parent = find(handle);
  if (!parent || config->blocking != 0)
    return ncclInvalidUsage;
  if (isToFail("ncclCommSplit", parent->rank))
    return ncclSystemError;
  Comm child = add(0, 0);
  child->place = Place::create();
  ++live;
  parent->splits.push_back(child);
  parent->state = ncclInProgress;
  Wish own = {color, key, static_cast<int32_t>(parent->rank), child->place};
  child->connecting = std::thread([parent, raw = child.get(), own, out] { split(parent, raw, own, out); });
  return ncclInProgress;
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error) {
  Comm comm = find(handle);
  if (!comm)
    return ncclInvalidArgument;
  if (isToFail("ncclCommGetAsyncError", comm->rank))
    return ncclSystemError;
  *error = comm->state;
  if (*error == ncclSuccess && comm->polls > 0) {
    --comm->polls;
    *error = ncclInProgress;
  }
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  Comm comm = find(handle);
  if (!comm)
    return ncclInvalidArgument;
  comm->polls = 2;
  return ncclInProgress;
}
EXPORT ncclResult_t ncclCommDestroy(ncclComm_t handle) { return end(handle, /*aborts=*/false); }
EXPORT ncclResult_t ncclCommAbort(ncclComm_t handle) { return end(handle, /*aborts=*/true); }

EXPORT ncclResult_t ncclGroupStart() {
  startGroup();
  return ncclSuccess;
}
EXPORT ncclResult_t ncclGroupEnd() { return endGroup(); }

EXPORT ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
                                  ncclComm_t handle, cudaStream_t stream) {
  return enqueue("ncclAllGather", handle, type, stream, [&](Work &work, const ncclComm &comm) {
    for (uint32_t peer = 0; peer < comm.size; ++peer) {
      work.add(true, peer, send, count);
      work.add(false, peer, static_cast<char *>(receive) + peer * count, count);
    }
  });
}

EXPORT ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
                                  int root, ncclComm_t handle, cudaStream_t stream) {
  return enqueue("ncclBroadcast", handle, type, stream, [&](Work &work, const ncclComm &comm) {
    auto from = static_cast<uint32_t>(root);
    for (uint32_t peer = 0; peer < comm.size && comm.rank == from; ++peer)
      work.add(true, peer, send, count);
    work.add(false, from, receive, count);
  });
}

EXPORT ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int to, ncclComm_t handle,
                             cudaStream_t stream) {
  return enqueue("ncclSend", handle, type, stream, [&](Work &work, const ncclComm &) {
    work.add(true, static_cast<uint32_t>(to), data, count);
  });
}

EXPORT ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int from, ncclComm_t handle,
                             cudaStream_t stream) {
  return enqueue("ncclRecv", handle, type, stream, [&](Work &work, const ncclComm &) {
    work.add(false, static_cast<uint32_t>(from), data, count);
  });
}
// NOLINTEND(readability-identifier-naming)
