// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work of a stream that was captured once, to be launched as a whole.

#ifndef FP8RT_CUDA_GRAPH_H
#define FP8RT_CUDA_GRAPH_H

#include "Device.h"

#include <functional>

namespace fp8rt::cuda {

class Graph {
public:
  /// Calls `enqueue`, which gives work to the device's stream, and keeps the work instead of doing it.
  Graph(const Device &device, const std::function<void()> &enqueue);
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();

  /// Enqueues the work.
  void launch() const;

private:
  CUgraph capture(const std::function<void()> &enqueue) const;

  const Device &device;
  CUgraphExec exec = nullptr;
};

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_GRAPH_H
