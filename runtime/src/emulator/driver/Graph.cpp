// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: graphs of work, and capturing them from streams.

#include "Work.h"

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::driver;

namespace {

std::vector<GraphNode *> listOf(const CUgraphNode *nodes, size_t count) {
  require(count == 0 || nodes);
  return std::vector<GraphNode *>(nodes, nodes + count);
}

CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
             const std::function<Work(Driver &)> &make) {
  return enter([=](Driver &driver) {
    require(node);
    Graph &own = driver.check(graph);
    auto nodes = listOf(after, count);
    for (GraphNode *one : nodes)
      require(own.has(one));
    *node = own.add(make(driver), nodes);
  });
}

Work kernelWork(Driver &driver, const CUDA_KERNEL_NODE_PARAMS *params) {
  require(params && (params->function || params->kernel));
  Work work;
  work.kind = Work::Kernel;
  work.kernel = params->function ? params->function : params->kernel;
  work.config.grid = {params->gridX, params->gridY, params->gridZ};
  work.config.block = {params->blockX, params->blockY, params->blockZ};
  work.config.dynamicShared = params->sharedBytes;
  driver.current();
  checkSizes(driver, *work.kernel, work.config);
  work.config.parameters = gatherParameters(*work.kernel->code, params->parameters, params->extra);
  return work;
}

Work copyWork(const CUDA_MEMCPY3D *params) {
  require(params);
  Work work;
  work.kind = Work::Copy;
  work.copy = *params;
  return work;
}

Work setWork(const CUDA_MEMSET_NODE_PARAMS *params) {
  require(params && (params->elementSize == 1 || params->elementSize == 2 || params->elementSize == 4));
  Work work;
  work.kind = Work::Set;
  work.set = *params;
  return work;
}

Work hostWork(const CUDA_HOST_NODE_PARAMS *params) {
  require(params && params->function);
  Work work;
  work.kind = Work::Host;
  work.host = *params;
  return work;
}

Work eventWork(Driver &driver, Work::Kind kind, CUevent event) {
  driver.check(event);
  Work work;
  work.kind = kind;
  work.event = event;
  return work;
}

/// Puts a node's new work in its place, of the same kind.
CUresult replace(GraphNode *node, const std::function<Work(Driver &)> &make) {
  return enter([=](Driver &driver) {
    require(node, CUDA_ERROR_INVALID_HANDLE);
    Work work = make(driver);
    require(work.kind == node->work.kind);
    node->work = std::move(work);
  });
}

CUresult replaceInExec(CUgraphExec exec, CUgraphNode node, const std::function<Work(Driver &)> &make) {
  GraphNode *twin = nullptr;
  CUresult code = enter([&](Driver &driver) {
    auto found = driver.check(exec).twins.find(node);
    require(found != driver.check(exec).twins.end());
    twin = found->second;
  });
  return code == CUDA_SUCCESS ? replace(twin, make) : code;
}

/// Writes up to *count nodes and says how many there are.
void hand(const std::vector<GraphNode *> &list, CUgraphNode *out, size_t *count) {
  require(count);
  if (out)
    std::copy_n(list.begin(), std::min(*count, list.size()), out);
  *count = list.size();
}

} // namespace

FP8EMU_API CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
  return enter([=](Driver &driver) {
    require(graph && flags == 0);
    *graph = driver.track(std::make_unique<Graph>());
  });
}

FP8EMU_API CUresult cuGraphDestroy(CUgraph graph) {
  return enter([=](Driver &driver) {
    driver.check(graph);
    driver.drop(graph);
  });
}

FP8EMU_API CUresult cuGraphClone(CUgraph *copy, CUgraph graph) {
  return enter([=](Driver &driver) {
    require(copy);
    *copy = driver.track(driver.check(graph).clone());
  });
}

FP8EMU_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                            size_t count, const CUDA_KERNEL_NODE_PARAMS *params) {
  return add(node, graph, after, count, [=](Driver &driver) { return kernelWork(driver, params); });
}
FP8EMU_API CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                         size_t count, const CUDA_MEMCPY3D *params, CUcontext) {
  return add(node, graph, after, count, [=](Driver &) { return copyWork(params); });
}
FP8EMU_API CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                         size_t count, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext) {
  return add(node, graph, after, count, [=](Driver &) { return setWork(params); });
}
FP8EMU_API CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                       size_t count, const CUDA_HOST_NODE_PARAMS *params) {
  return add(node, graph, after, count, [=](Driver &) { return hostWork(params); });
}
FP8EMU_API CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                        size_t count) {
  return add(node, graph, after, count, [](Driver &) { return Work(); });
}
FP8EMU_API CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                              size_t count, CUevent event) {
  return add(node, graph, after, count,
             [=](Driver &driver) { return eventWork(driver, Work::RecordEvent, event); });
}
FP8EMU_API CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                            size_t count, CUevent event) {
  return add(node, graph, after, count,
             [=](Driver &driver) { return eventWork(driver, Work::WaitEvent, event); });
}
FP8EMU_API CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                             size_t count, CUgraph child) {
  return add(node, graph, after, count, [=](Driver &driver) {
    Work work;
    work.kind = Work::Graph;
    work.child = driver.check(child).clone();
    return work;
  });
}

FP8EMU_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
  return replace(node, [=](Driver &driver) { return kernelWork(driver, params); });
}
FP8EMU_API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params) {
  return replace(node, [=](Driver &) { return copyWork(params); });
}
FP8EMU_API CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params) {
  return replace(node, [=](Driver &) { return setWork(params); });
}
FP8EMU_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                      const CUDA_KERNEL_NODE_PARAMS *params) {
  return replaceInExec(exec, node, [=](Driver &driver) { return kernelWork(driver, params); });
}
FP8EMU_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_MEMCPY3D *params, CUcontext) {
  return replaceInExec(exec, node, [=](Driver &) { return copyWork(params); });
}
FP8EMU_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_MEMSET_NODE_PARAMS *params, CUcontext) {
  return replaceInExec(exec, node, [=](Driver &) { return setWork(params); });
}

FP8EMU_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           size_t count) {
  return enter([=](Driver &driver) {
    Graph &own = driver.check(graph);
    require(count == 0 || (from && to));
    for (size_t i = 0; i < count; ++i) {
      require(own.has(from[i]) && own.has(to[i]) && from[i] != to[i]);
      to[i]->after.push_back(from[i]);
    }
  });
}
FP8EMU_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                              const void *, size_t count) {
  return cuGraphAddDependencies(graph, from, to, count);
}

FP8EMU_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  return enter([=](Driver &driver) {
    std::vector<GraphNode *> all;
    for (const auto &node : driver.check(graph).nodes)
      all.push_back(node.get());
    hand(all, nodes, count);
  });
}

FP8EMU_API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  return enter([=](Driver &driver) {
    std::vector<GraphNode *> roots;
    for (const auto &node : driver.check(graph).nodes)
      if (node->after.empty())
        roots.push_back(node.get());
    hand(roots, nodes, count);
  });
}

FP8EMU_API CUresult cuGraphNodeGetType(CUgraphNode node, int *type) {
  return enter([=](Driver &) {
    require(node && type);
    *type = node->work.kind;
  });
}

FP8EMU_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
  return enter([=](Driver &) {
    require(node);
    hand(node->after, nodes, count);
  });
}
FP8EMU_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, void *,
                                                  size_t *count) {
  return cuGraphNodeGetDependencies(node, nodes, count);
}
FP8EMU_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
  return enter([=](Driver &) {
    require(node);
    hand(node->owner->dependents(node), nodes, count);
  });
}
FP8EMU_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, void *,
                                                    size_t *count) {
  return cuGraphNodeGetDependentNodes(node, nodes, count);
}

FP8EMU_API CUresult cuGraphDestroyNode(CUgraphNode node) {
  return enter([=](Driver &) {
    require(node);
    Graph &own = *node->owner;
    for (GraphNode *other : own.dependents(node))
      other->after.erase(std::remove(other->after.begin(), other->after.end(), node), other->after.end());
    own.nodes.erase(
        std::find_if(own.nodes.begin(), own.nodes.end(), [=](const auto &one) { return one.get() == node; }));
  });
}

FP8EMU_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  return enter([=](Driver &driver) {
    require(exec);
    auto own = std::make_unique<GraphExec>();
    own->graph = driver.check(graph).clone(&own->twins);
    own->order = own->graph->order();
    *exec = driver.track(std::move(own));
  });
}

FP8EMU_API CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                                 CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  if (!params)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult code = cuGraphInstantiateWithFlags(exec, graph, params->flags);
  params->errorNode = nullptr;
  params->result = code == CUDA_SUCCESS ? 0 : 1;
  return code;
}

FP8EMU_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return enter([=](Driver &driver) {
    driver.check(exec);
    driver.drop(exec);
  });
}

FP8EMU_API CUresult cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags) {
  return enter([=](Driver &driver) {
    driver.check(exec);
    require(flags);
    *flags = 0;
  });
}

FP8EMU_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return enter([=](Driver &driver) {
    driver.check(exec);
    captureOf(driver, stream);
  });
}

FP8EMU_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Work work;
  work.kind = Work::Graph;
  std::vector<Work> list;
  bool captured = false;
  CUresult code = enter([&](Driver &driver) {
    GraphExec &own = driver.check(exec);
    captured = captureOf(driver, stream) != nullptr;
    if (captured)
      work.child = own.graph->clone();
    for (const GraphNode *node : own.order)
      list.push_back(node->work);
  });
  if (code != CUDA_SUCCESS || captured)
    return code != CUDA_SUCCESS ? code : submit(stream, std::move(work));
  // One by one: functions of the host run outside the lock.
  for (const Work &one : list)
    if (code = perform(one); code != CUDA_SUCCESS)
      return code;
  return CUDA_SUCCESS;
}

FP8EMU_API CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  return enter([=](Driver &driver) {
    static uint64_t captures = 0;
    driver.current();
    require(!isDefault(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    require(!driver.check(stream).capture, CUDA_ERROR_ILLEGAL_STATE);
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream;
    stream->capture->id = ++captures;
    stream->frontier.clear();
  });
}

/// The streams that joined leave the capture, wherever it ends.
static void leave(Driver &driver, const std::shared_ptr<Capture> &capture) {
  for (CUstream stream : driver.streams)
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->frontier.clear();
    }
}

FP8EMU_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  return enter([=](Driver &driver) {
    require(graph);
    *graph = nullptr;
    auto capture = captureOf(driver, stream);
    require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(capture->origin == stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    // What other streams were given must have come back by an event.
    auto frontier = stream->frontier;
    leave(driver, capture);
    for (const auto &node : capture->graph->nodes)
      require(!capture->graph->dependents(node.get()).empty() ||
                  std::find(frontier.begin(), frontier.end(), node.get()) != frontier.end(),
              CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    *graph = driver.track(std::move(capture->graph));
  });
}

FP8EMU_API CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  return enter([=](Driver &driver) {
    require(status);
    *status = captureOf(driver, stream) != nullptr;
  });
}

FP8EMU_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                              const CUgraphNode **nodes, size_t *count) {
  return enter([=](Driver &driver) {
    require(status);
    auto capture = captureOf(driver, stream);
    *status = capture != nullptr;
    if (!capture)
      return;
    if (id)
      *id = capture->id;
    if (graph)
      *graph = capture->graph.get();
    if (nodes)
      *nodes = stream->frontier.data();
    if (count)
      *count = stream->frontier.size();
  });
}
FP8EMU_API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                              const CUgraphNode **nodes, const void **edges, size_t *count) {
  if (edges)
    *edges = nullptr;
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}

FP8EMU_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  return enter([=](Driver &) {
    thread_local int own = 0;
    require(mode && *mode >= 0 && *mode <= 2);
    std::swap(own, *mode);
  });
}
