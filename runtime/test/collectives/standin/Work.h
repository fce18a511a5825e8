// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfers of the stand-in for NCCL as work of a stream: a copy to the host, a function of the host that
// passes the bytes on, a copy back. So transfers take part in captures.

#ifndef FP8RT_TEST_STANDIN_WORK_H
#define FP8RT_TEST_STANDIN_WORK_H

#include "Communicator.h"

#include <functional>

namespace fp8rt_test {

using fp8rt::collectives::nccl::ncclDataType_t;
using fp8rt::cuda::CUresult;
using fp8rt::cuda::CUstream;

/// The transfers of a group by one communicator on one stream.
struct Work {
  Comm comm;
  CUstream stream = nullptr;
  struct Copy {
    Transfer transfer;
    void *onDevice;
  };
  std::vector<Copy> copies;
  std::vector<std::vector<char>> memory; // of the copies

  Work(Comm comm, CUstream stream) : comm(std::move(comm)), stream(stream) { ++live; }
  ~Work() { --live; }

  void add(bool sends, uint32_t peer, const void *onDevice, uint64_t bytes) {
    memory.emplace_back(bytes);
    copies.push_back({{sends, peer, memory.back().data(), bytes}, const_cast<void *>(onDevice)});
  }
  /// Gives it to the stream, which calls `run` when it has come to it.
  CUresult enqueue();
  void run();
};

/// Begins and ends a group of this thread; groups nest.
void startGroup();
ncclResult_t endGroup();

/// A function that moves data: `add` adds its transfers to the group's, or is a group of its own.
ncclResult_t enqueue(const char *function, ncclComm_t handle, ncclDataType_t type, CUstream stream,
                     const std::function<void(Work &, const ncclComm &)> &add);

/// How much captured work there is, which is kept for the graphs that do it.
int64_t countCaptured();
/// Ends captured work, whose graphs are not used any more.
void forgetGraphs();

} // namespace fp8rt_test

#endif // FP8RT_TEST_STANDIN_WORK_H
