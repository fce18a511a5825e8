// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: nodes of graphs, and what each of them does.

#include "../Work.h"

#include <algorithm>
#include <tuple>

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

Work kernelWork(Driver &driver, const CUDA_KERNEL_NODE_PARAMS_v1 *params, CUkernel kernel = nullptr) {
  require(params);
  Work work;
  work.kind = Work::Kernel;
  work.kernel = &driver.check(params->function ? params->function : kernel, CUDA_ERROR_INVALID_VALUE);
  work.config.grid = {params->gridX, params->gridY, params->gridZ};
  work.config.block = {params->blockX, params->blockY, params->blockZ};
  work.config.dynamicShared = params->sharedBytes;
  driver.current();
  checkSizes(driver, *work.kernel, work.config);
  work.config.parameters = gatherParameters(work.kernel->code(), params->parameters, params->extra);
  return work;
}
Work kernelWork(Driver &driver, const CUDA_KERNEL_NODE_PARAMS *params) {
  require(params);
  return kernelWork(driver, &params->launch, params->kernel);
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

Work graphWork(Driver &driver, CUgraph child) {
  Work work;
  work.kind = Work::Graph;
  work.child = driver.check(child).clone();
  return work;
}

Work anyWork(Driver &driver, const CUgraphNodeParams *params) {
  require(params);
  switch (params->type) {
  case Work::Kernel:
    return kernelWork(driver, &params->of.kernel);
  case Work::Copy:
    return copyWork(&params->of.copy.params);
  case Work::Set:
    return setWork(&params->of.set);
  case Work::Host:
    return hostWork(&params->of.host);
  case Work::Graph:
    return graphWork(driver, params->of.graph);
  case Work::Empty:
    return Work();
  case Work::WaitEvent:
  case Work::RecordEvent:
    return eventWork(driver, Work::Kind(params->type), params->of.event);
  default:
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

/// Puts a node's new work in its place, of the same kind.
CUresult replace(GraphNode *node, const std::function<Work(Driver &)> &make) {
  return enter([=](Driver &driver) {
    require(driver.isLive(node));
    Work work = make(driver);
    require(work.kind == node->work.kind);
    node->work = std::move(work);
  });
}

CUresult replaceInExec(CUgraphExec exec, CUgraphNode node, const std::function<Work(Driver &)> &make) {
  GraphNode *twin = nullptr;
  CUresult code = enter([&](Driver &driver) { twin = &twinOf(driver, exec, node); });
  return code == CUDA_SUCCESS ? replace(twin, make) : code;
}

} // namespace

FP8EMU_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                            size_t count, const CUDA_KERNEL_NODE_PARAMS *params) {
  return add(node, graph, after, count, [=](Driver &driver) { return kernelWork(driver, params); });
}
FP8EMU_API CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params) {
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
  return add(node, graph, after, count, [=](Driver &driver) { return graphWork(driver, child); });
}

FP8EMU_API CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                      const void *, size_t count, const CUgraphNodeParams *params) {
  return add(node, graph, after, count, [=](Driver &driver) { return anyWork(driver, params); });
}
FP8EMU_API CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                   const CUgraphNodeParams *params) {
  return cuGraphAddNode_v2(node, graph, after, nullptr, count, params);
}

FP8EMU_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
  return replace(node, [=](Driver &driver) { return kernelWork(driver, params); });
}
FP8EMU_API CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params) {
  return replace(node, [=](Driver &driver) { return kernelWork(driver, params); });
}
FP8EMU_API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params) {
  return replace(node, [=](Driver &) { return copyWork(params); });
}
FP8EMU_API CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params) {
  return replace(node, [=](Driver &) { return setWork(params); });
}
FP8EMU_API CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params) {
  return replace(node, [=](Driver &) { return hostWork(params); });
}
FP8EMU_API CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return replace(node, [=](Driver &driver) { return eventWork(driver, Work::RecordEvent, event); });
}
FP8EMU_API CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return replace(node, [=](Driver &driver) { return eventWork(driver, Work::WaitEvent, event); });
}
FP8EMU_API CUresult cuGraphNodeSetParams(CUgraphNode node, const CUgraphNodeParams *params) {
  return replace(node, [=](Driver &driver) { return anyWork(driver, params); });
}

FP8EMU_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS_v1 *params) {
  return replaceInExec(exec, node, [=](Driver &driver) { return kernelWork(driver, params); });
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
FP8EMU_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_HOST_NODE_PARAMS *params) {
  return replaceInExec(exec, node, [=](Driver &) { return hostWork(params); });
}
FP8EMU_API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return replaceInExec(exec, node, [=](Driver &driver) { return graphWork(driver, child); });
}
FP8EMU_API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return replaceInExec(exec, node,
                       [=](Driver &driver) { return eventWork(driver, Work::RecordEvent, event); });
}
FP8EMU_API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return replaceInExec(exec, node, [=](Driver &driver) { return eventWork(driver, Work::WaitEvent, event); });
}
FP8EMU_API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             const CUgraphNodeParams *params) {
  return replaceInExec(exec, node, [=](Driver &driver) { return anyWork(driver, params); });
}

namespace {
/// The work of a node of this kind.
const Work &workOf(Driver &driver, CUgraphNode node, Work::Kind kind) {
  const Work &work = driver.check(node, CUDA_ERROR_INVALID_VALUE).work;
  require(work.kind == kind);
  return work;
}

/// A kernel's parameters as they were given; the pointers are the node's own.
CUDA_KERNEL_NODE_PARAMS_v1 kernelParams(Driver &driver, CUgraphNode node) {
  const Work &work = workOf(driver, node, Work::Kernel);
  node->pointers.clear();
  for (const ParameterPlace &place : driver.check(work.kernel).code().parameters)
    node->pointers.push_back(const_cast<uint8_t *>(work.config.parameters.data()) + place.offset);
  CUDA_KERNEL_NODE_PARAMS_v1 params{};
  params.function = work.kernel;
  std::tie(params.gridX, params.gridY, params.gridZ) = std::tuple_cat(work.config.grid);
  std::tie(params.blockX, params.blockY, params.blockZ) = std::tuple_cat(work.config.block);
  params.sharedBytes = work.config.dynamicShared;
  params.parameters = node->pointers.data();
  return params;
}
} // namespace

FP8EMU_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
  return enter([=](Driver &driver) {
    require(params);
    *params = {kernelParams(driver, node), nullptr, nullptr};
  });
}
FP8EMU_API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params) {
  return enter([=](Driver &driver) {
    require(params);
    *params = kernelParams(driver, node);
  });
}
FP8EMU_API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *params) {
  return enter([=](Driver &driver) {
    require(params);
    *params = workOf(driver, node, Work::Copy).copy;
  });
}
FP8EMU_API CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params) {
  return enter([=](Driver &driver) {
    require(params);
    *params = workOf(driver, node, Work::Set).set;
  });
}
FP8EMU_API CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *params) {
  return enter([=](Driver &driver) {
    require(params);
    *params = workOf(driver, node, Work::Host).host;
  });
}
FP8EMU_API CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event) {
  return enter([=](Driver &driver) {
    require(event);
    *event = workOf(driver, node, Work::RecordEvent).event;
  });
}
FP8EMU_API CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event) {
  return enter([=](Driver &driver) {
    require(event);
    *event = workOf(driver, node, Work::WaitEvent).event;
  });
}
