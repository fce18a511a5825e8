// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The communicators of the stand-in for NCCL: made in the background, polled, found by their handles.

#ifndef FP8RT_TEST_STANDIN_COMMUNICATOR_H
#define FP8RT_TEST_STANDIN_COMMUNICATOR_H

#include "../../../src/collectives/nccl/Nccl.h"
#include "Exchange.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace fp8rt_test {

using fp8rt::collectives::nccl::ncclComm;
using fp8rt::collectives::nccl::ncclComm_t;
using fp8rt::collectives::nccl::ncclResult_t;

enum : ncclResult_t {
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6
};

/// The objects that have been made and not ended: communicators, works, files.
inline std::atomic<int64_t> live{0};

} // namespace fp8rt_test

// NCCL's name for it.
struct fp8rt::collectives::nccl::ncclComm { // NOLINT(readability-identifier-naming)
  uint32_t rank = 0, size = 0;
  fp8rt_test::Place place; // of this process, where it has made one
  fp8rt_test::Exchange exchange;
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<int> polls{0}; // that still say "in progress"
  std::atomic<bool> isAborted{false};
  std::atomic<uint64_t> transfers{0};
  std::thread connecting; // in the background
  std::vector<std::weak_ptr<ncclComm>> splits;

  ncclComm() { ++fp8rt_test::live; }
  ~ncclComm();

  /// Moves data until all is there, or until this rank gives up.
  void move(std::vector<fp8rt_test::Transfer> &transfers) { move(transfers, isAborted); }
  void move(std::vector<fp8rt_test::Transfer> &transfers, const std::atomic<bool> &givesUp);
  /// Meets the others at a place.
  void join(const fp8rt_test::Place &with);
};

namespace fp8rt_test {

using Comm = std::shared_ptr<ncclComm>;

/// Finds a communicator by its handle; null if there is none.
Comm find(ncclComm_t handle);
/// Makes a communicator.
Comm add(uint32_t rank, uint32_t size);
/// Forgets a handle. Work that is under way keeps its communicator.
ncclResult_t end(ncclComm_t handle, bool aborts);

/// Of a split: what each rank of the old communicator says.
struct Wish {
  int32_t color, key, rank;
  Place place;
};

/// The body of ncclCommSplit's thread. The new communicator is there when the old one's state says so.
void split(const Comm &parent, ncclComm_t child, Wish own, ncclComm_t *out);

} // namespace fp8rt_test

#endif // FP8RT_TEST_STANDIN_COMMUNICATOR_H
