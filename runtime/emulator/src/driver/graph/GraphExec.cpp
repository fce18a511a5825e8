// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: graphs made ready to run, running and changing them.

#include "../Work.h"

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::driver;

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

/// As it was before CUDA 11.4, with a log that nothing is written to.
FP8EMU_API CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *errorNode, char *log,
                                          size_t bytes) {
  if (errorNode)
    *errorNode = nullptr;
  if (log && bytes)
    *log = '\0';
  return cuGraphInstantiateWithFlags(exec, graph, 0);
}
FP8EMU_API CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *errorNode, char *log,
                                       size_t bytes) {
  return cuGraphInstantiate_v2(exec, graph, errorNode, log, bytes);
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
      if (node->isEnabled)
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

namespace {
/// CUgraphExecUpdateResult.
enum Update { Updated = 0, TopologyChanged = 2, KindChanged = 3 };

/// Where a graph is not what another was made from: the nodes of both in their order.
Update compare(const Graph &from, const Graph &to, GraphNode *&node) {
  std::map<const GraphNode *, const GraphNode *> twins;
  node = nullptr;
  if (from.nodes.size() != to.nodes.size())
    return TopologyChanged;
  for (size_t i = 0; i < to.nodes.size(); ++i)
    twins[to.nodes[i].get()] = from.nodes[i].get();
  for (size_t i = 0; i < to.nodes.size(); ++i) {
    node = to.nodes[i].get();
    if (node->work.kind != from.nodes[i]->work.kind)
      return KindChanged;
    std::set<const GraphNode *> before(from.nodes[i]->after.begin(), from.nodes[i]->after.end()), after;
    for (const GraphNode *one : node->after)
      after.insert(twins[one]);
    if (before != after)
      return TopologyChanged;
  }
  node = nullptr;
  return Updated;
}
} // namespace

/// Gives the nodes the work of another graph's, which has the same kinds of nodes, added in
/// the same order, and the same edges. Both graphs' nodes name the nodes of the other.
FP8EMU_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  return enter([=](Driver &driver) {
    GraphExec &own = driver.check(exec);
    Graph &other = driver.check(graph);
    require(info);
    *info = {};
    info->result = compare(*own.graph, other, info->errorNode);
    require(info->result == Updated, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    auto copy = other.clone();
    for (size_t i = 0; i < copy->nodes.size(); ++i) {
      own.graph->nodes[i]->work = std::move(copy->nodes[i]->work);
      own.twins[other.nodes[i].get()] = own.graph->nodes[i].get();
    }
  });
}
FP8EMU_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *errorNode, int *result) {
  CUgraphExecUpdateResultInfo info{};
  CUresult code = cuGraphExecUpdate_v2(exec, graph, &info);
  if (errorNode)
    *errorNode = info.errorNode;
  if (result)
    *result = info.result;
  return code;
}

/// A node that is switched off does nothing; those after it run.
FP8EMU_API CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned isEnabled) {
  return enter([=](Driver &driver) { twinOf(driver, exec, node).isEnabled = isEnabled != 0; });
}
FP8EMU_API CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *isEnabled) {
  return enter([=](Driver &driver) {
    require(isEnabled);
    *isEnabled = twinOf(driver, exec, node).isEnabled;
  });
}
