// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL: the functions that the runtime uses, found in libnccl when they are asked for. Their types are
// declared here with the ABI of nccl.h, so that the build needs no NCCL; a test compares them.

#ifndef FP8RT_COLLECTIVES_NCCL_NCCL_H
#define FP8RT_COLLECTIVES_NCCL_NCCL_H

#include "../../cuda/Driver.h"

#include <climits>

namespace fp8rt::collectives::nccl {

// NCCL's names and numbers.
// NOLINTBEGIN(readability-identifier-naming)
using ncclComm_t = struct ncclComm *;
using ncclResult_t = int;
using ncclDataType_t = int;
using cudaStream_t = cuda::CUstream;

enum : ncclResult_t { ncclSuccess = 0, ncclInProgress = 7 };
enum : ncclDataType_t { ncclUint8 = 1 };
/// The value of a config's field that is not set, and how a config is recognized.
constexpr int kUndefined = INT_MIN;
constexpr unsigned kConfigMagic = 0xcafebeef;

struct ncclUniqueId {
  char internal[128];
};

/// As in version 2.18; later ones have more at the end, and take what `size` says.
struct ncclConfig_t {
  size_t size = sizeof(ncclConfig_t);
  unsigned magic = kConfigMagic;
  unsigned version = 21800;
  int blocking = kUndefined;
  int cgaClusterSize = kUndefined;
  int minCTAs = kUndefined;
  int maxCTAs = kUndefined;
  const char *netName = nullptr;
  int splitShare = kUndefined;
};
// NOLINTEND(readability-identifier-naming)

/// Name, symbol, result and parameters of every function.
#define FP8RT_NCCL_FUNCTIONS(X)                                                                              \
  X(getVersion, ncclGetVersion, ncclResult_t, (int *version))                                                \
  X(getUniqueId, ncclGetUniqueId, ncclResult_t, (ncclUniqueId * id))                                         \
  X(commInitRankConfig, ncclCommInitRankConfig, ncclResult_t,                                                \
    (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config))                         \
  X(commSplit, ncclCommSplit, ncclResult_t,                                                                  \
    (ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config))                            \
  X(commFinalize, ncclCommFinalize, ncclResult_t, (ncclComm_t comm))                                         \
  X(commDestroy, ncclCommDestroy, ncclResult_t, (ncclComm_t comm))                                           \
  X(commAbort, ncclCommAbort, ncclResult_t, (ncclComm_t comm))                                               \
  X(commGetAsyncError, ncclCommGetAsyncError, ncclResult_t, (ncclComm_t comm, ncclResult_t * error))         \
  X(getErrorString, ncclGetErrorString, const char *, (ncclResult_t code))                                   \
  X(getLastError, ncclGetLastError, const char *, (ncclComm_t comm))                                         \
  X(allGather, ncclAllGather, ncclResult_t,                                                                  \
    (const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,                    \
     cudaStream_t stream))                                                                                   \
  X(broadcast, ncclBroadcast, ncclResult_t,                                                                  \
    (const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,          \
     cudaStream_t stream))                                                                                   \
  X(send, ncclSend, ncclResult_t,                                                                            \
    (const void *data, size_t count, ncclDataType_t type, int to, ncclComm_t comm, cudaStream_t stream))     \
  X(receive, ncclRecv, ncclResult_t,                                                                         \
    (void *data, size_t count, ncclDataType_t type, int from, ncclComm_t comm, cudaStream_t stream))         \
  X(groupStart, ncclGroupStart, ncclResult_t, ())                                                            \
  X(groupEnd, ncclGroupEnd, ncclResult_t, ())

/// libnccl; there is one per process, and it is never unloaded.
class Nccl {
public:
  /// Throws an Error that says what to install.
  static const Nccl &get();

  /// Throws FP8RT_RANKS, with a text that begins with `what`, unless `code` is success or "in progress".
  void check(ncclResult_t code, const std::string &what, ncclComm_t comm = nullptr) const;
  std::string describe(ncclResult_t code, ncclComm_t comm) const;

#define FP8RT_NCCL_MEMBER(name, symbol, result, parameters) result(*name) parameters = nullptr;
  FP8RT_NCCL_FUNCTIONS(FP8RT_NCCL_MEMBER)
#undef FP8RT_NCCL_MEMBER

private:
  Nccl();
};

} // namespace fp8rt::collectives::nccl

#endif // FP8RT_COLLECTIVES_NCCL_NCCL_H
