// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Capturing and launching graphs.

#include "Graph.h"

using namespace fp8rt::cuda;

static const char *const kAdvice = " (FP8RT_GRAPH=0 runs steps without a graph)";

Graph::Graph(const Device &device, const std::function<void()> &enqueue) : device(device) {
  CUgraph graph = capture(enqueue);
  CUresult code = device.driver().graphInstantiate(&exec, graph, 0);
  device.driver().graphDestroy(graph);
  device.driver().check(code, std::string("the graph of a step cannot be made") + kAdvice);
}

Graph::~Graph() {
  if (Entered entered(device); entered)
    device.driver().graphExecDestroy(exec);
}

CUgraph Graph::capture(const std::function<void()> &enqueue) const {
  constexpr int kThreadLocal = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads are not disturbed
  const Driver &driver = device.driver();
  driver.check(driver.streamBeginCapture(device.stream(), kThreadLocal),
               std::string("a step cannot be captured as a graph") + kAdvice);
  CUgraph graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    driver.streamEndCapture(device.stream(), &graph);
    if (graph)
      driver.graphDestroy(graph);
    throw;
  }
  driver.check(driver.streamEndCapture(device.stream(), &graph),
               std::string("a step cannot be captured as a graph") + kAdvice);
  return graph;
}

void Graph::launch() const {
  device.driver().check(device.driver().graphLaunch(exec, device.stream()),
                        "the graph of a step cannot be launched");
}
