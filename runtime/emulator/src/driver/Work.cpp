// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Doing what streams are given, or putting it into the graph of a capture.

#include "Work.h"

#include <algorithm>
#include <chrono>

using namespace fp8emu;
using namespace fp8emu::driver;

std::shared_ptr<Capture> fp8emu::driver::captureOf(Driver &driver, CUstream stream) {
  driver.current();
  auto capture = isDefault(stream) ? nullptr : driver.check(stream).capture;
  require(!capture || !capture->isInvalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  return capture;
}

void fp8emu::driver::refuseCapture(Driver &driver, CUstream stream) {
  if (auto capture = captureOf(driver, stream)) {
    capture->isInvalid = true;
    fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
}

CUresult fp8emu::driver::submit(CUstream stream, Work work) {
  bool captured = false;
  CUresult code = enter([&](Driver &driver) {
    auto capture = captureOf(driver, stream);
    if (!capture)
      return;
    captured = true;
    stream->frontier = {capture->graph->add(std::move(work), stream->frontier)};
  });
  return code != CUDA_SUCCESS || captured ? code : perform(work);
}

static CUresult performGraph(const Graph &graph) {
  std::vector<GraphNode *> order;
  CUresult code = enter([&](Driver &) { order = graph.order(); });
  for (const GraphNode *node : order)
    if (code == CUDA_SUCCESS)
      code = perform(node->work);
  return code;
}

CUresult fp8emu::driver::perform(const Work &work) {
  // Outside the lock: it may not call the API, but may wait for who does. A graph may
  // have such nodes.
  if (work.kind == Work::Host) {
    work.host.function(work.host.data);
    return CUDA_SUCCESS;
  }
  if (work.kind == Work::Graph)
    return performGraph(*work.child);
  return enter([&](Driver &driver) {
    driver.current();
    switch (work.kind) {
    case Work::Kernel:
      return driver.launch(driver.check(work.kernel), work.config);
    case Work::Copy:
      return copyBox(driver, work.copy);
    case Work::Set:
      return setRows(driver, work.set);
    case Work::RecordEvent:
      driver.check(work.event).recorded = true;
      driver.check(work.event).time =
          std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
      return;
    case Work::Host:
    case Work::Graph:
    case Work::Empty:
    case Work::WaitEvent:
      return;
    }
  });
}

GraphNode *Graph::add(Work work, std::vector<GraphNode *> after) {
  nodes.push_back(std::make_unique<GraphNode>());
  GraphNode *node = nodes.back().get();
  node->work = std::move(work);
  node->owner = this;
  for (GraphNode *one : after)
    if (std::find(node->after.begin(), node->after.end(), one) == node->after.end())
      node->after.push_back(one);
  return node;
}

bool Graph::has(const GraphNode *node) const {
  return std::any_of(nodes.begin(), nodes.end(), [=](const auto &own) { return own.get() == node; });
}

std::vector<GraphNode *> Graph::dependents(const GraphNode *node) const {
  std::vector<GraphNode *> out;
  for (const auto &other : nodes)
    if (std::find(other->after.begin(), other->after.end(), node) != other->after.end())
      out.push_back(other.get());
  return out;
}

std::vector<GraphNode *> Graph::order() const {
  std::vector<GraphNode *> out;
  std::set<const GraphNode *> done;
  while (out.size() < nodes.size()) {
    size_t before = out.size();
    for (const auto &node : nodes) {
      bool ready = !done.count(node.get()) && std::all_of(node->after.begin(), node->after.end(),
                                                          [&](GraphNode *one) { return done.count(one); });
      if (ready) {
        out.push_back(node.get());
        done.insert(node.get());
      }
    }
    require(out.size() > before);
  }
  return out;
}

std::unique_ptr<Graph> Graph::clone(std::map<const GraphNode *, GraphNode *> *twins) const {
  auto copy = std::make_unique<Graph>();
  std::map<const GraphNode *, GraphNode *> own;
  for (const auto &node : nodes) {
    GraphNode *twin = own[node.get()] = copy->add(node->work, {});
    twin->original = node.get();
    if (twin->work.child)
      twin->work.child = twin->work.child->clone();
  }
  for (const auto &node : nodes)
    for (GraphNode *before : node->after)
      own[node.get()]->after.push_back(own[before]);
  if (twins)
    *twins = std::move(own);
  return copy;
}

GraphNode &fp8emu::driver::twinOf(Driver &driver, CUgraphExec exec, const GraphNode *node) {
  GraphExec &own = driver.check(exec);
  auto found = own.twins.find(node);
  require(found != own.twins.end());
  return *found->second;
}
