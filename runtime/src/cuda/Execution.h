// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps of one session on a device: when a step's work is enqueued anew, and when it is replayed.

#ifndef FP8RT_CUDA_EXECUTION_H
#define FP8RT_CUDA_EXECUTION_H

#include "Graph.h"
#include "Launcher.h"

#include <optional>
#include <vector>

namespace fp8rt::cuda {

class Execution {
public:
  /// The addresses and sizes that must be equal for the work of two steps to be the same.
  using Key = std::vector<uint64_t>;

  /// Steps of an entry that is not `capturable` never become a graph. Two variables of the environment:
  /// FP8RT_GRAPH=0 makes no graphs; FP8RT_SYNC=1 makes none either and waits for each kernel, so that an
  /// error names the kernel that failed.
  Execution(std::shared_ptr<const DeviceProgram> program, bool capturable);
  Execution(const Execution &) = delete;
  Execution &operator=(const Execution &) = delete;

  const fp8rt_device &functions() const { return launcher.functions(); }
  CUstream stream() const { return program->device().stream(); }

  /// Steps never become a graph: they wait for something else than the device.
  void neverCapture() { capturable = false; }

  /// Runs a step: `enqueue` calls the compiled code. Of consecutive steps with equal keys the first
  /// enqueues, the second captures a graph, and the others replay it. A profiler measures kernels
  /// one by one, so its steps are not replayed. Returns when the work is done; throws if it failed.
  void run(const std::function<void()> &enqueue, const Key &key, Profiler *profiler);

private:
  void enqueueOrReplay(const std::function<void()> &enqueue, const Key &key);
  void capture(const std::function<void()> &enqueue);

  std::shared_ptr<const DeviceProgram> program;
  Launcher launcher;
  std::optional<KernelTimer> timer; // made when a profiler comes
  bool capturable;
  bool isFirst = true;
  Key lastKey, graphKey;
  std::optional<Graph> graph;
};

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_EXECUTION_H
