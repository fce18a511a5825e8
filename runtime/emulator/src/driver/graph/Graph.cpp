// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: graphs of work, their nodes and edges.

#include "../Work.h"

#include <algorithm>
#include <fstream>

using namespace fp8emu;
using namespace fp8emu::driver;

namespace {

/// Writes up to *count nodes, null behind the last, and says how many it wrote; without
/// room for any, how many there are.
void hand(const std::vector<GraphNode *> &list, CUgraphNode *out, size_t *count) {
  require(count);
  if (!out) {
    *count = list.size();
    return;
  }
  const size_t room = *count;
  *count = std::min(room, list.size());
  std::fill(std::copy_n(list.begin(), *count, out), out + room, nullptr);
}

/// The work of a node, in a line.
std::string describe(const Work &work) {
  switch (work.kind) {
  case Work::Kernel: {
    auto [gridX, gridY, gridZ] = work.config.grid;
    auto [blockX, blockY, blockZ] = work.config.block;
    auto sizes = [](uint32_t x, uint32_t y, uint32_t z) {
      return std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
    };
    // Its module may have been unloaded.
    std::string name = Driver::get().isLive(work.kernel) ? work.kernel->name : "unloaded kernel";
    return name + " <<<(" + sizes(gridX, gridY, gridZ) + "), (" + sizes(blockX, blockY, blockZ) + ")>>>";
  }
  case Work::Copy:
    return "copy of " + std::to_string(work.copy.width * work.copy.height * work.copy.depth) + " bytes";
  case Work::Set:
    return "fill of " + std::to_string(work.set.width * work.set.height) + " elements";
  case Work::Host:
    return "function of the host";
  case Work::Graph:
    return "graph of " + std::to_string(work.child->nodes.size()) + " nodes";
  case Work::Empty:
    return "nothing";
  case Work::WaitEvent:
    return "wait for an event";
  case Work::RecordEvent:
    return "record an event";
  }
  return "";
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

FP8EMU_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           size_t count) {
  return enter([=](Driver &driver) {
    Graph &own = driver.check(graph);
    require(count == 0 || (from && to));
    for (size_t i = 0; i < count; ++i) {
      require(own.has(from[i]) && own.has(to[i]) && from[i] != to[i]);
      auto &after = to[i]->after;
      require(std::find(after.begin(), after.end(), from[i]) == after.end());
      after.push_back(from[i]);
    }
  });
}
FP8EMU_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                              const void *, size_t count) {
  return cuGraphAddDependencies(graph, from, to, count);
}

FP8EMU_API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                              size_t count) {
  return enter([=](Driver &driver) {
    Graph &own = driver.check(graph);
    require(count == 0 || (from && to));
    for (size_t i = 0; i < count; ++i) {
      require(own.has(from[i]) && own.has(to[i]));
      auto &after = to[i]->after;
      auto found = std::find(after.begin(), after.end(), from[i]);
      require(found != after.end());
      after.erase(found);
    }
  });
}
FP8EMU_API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                                 const CUgraphNode *to, const void *, size_t count) {
  return cuGraphRemoveDependencies(graph, from, to, count);
}

FP8EMU_API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
  return enter([=](Driver &driver) {
    std::vector<GraphNode *> sources, targets;
    for (const auto &node : driver.check(graph).nodes)
      for (GraphNode *before : node->after) {
        sources.push_back(before);
        targets.push_back(node.get());
      }
    require(count && !from == !to);
    size_t room = *count;
    hand(sources, from, count);
    hand(targets, to, &room);
  });
}
FP8EMU_API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                                       CUgraphEdgeData *edges, size_t *count) {
  size_t room = count ? *count : 0;
  CUresult code = cuGraphGetEdges(graph, from, to, count);
  // Edges have no ports here.
  if (code == CUDA_SUCCESS && edges)
    std::fill_n(edges, std::min(room, *count), CUgraphEdgeData());
  return code;
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
  return enter([=](Driver &driver) {
    require(type);
    *type = driver.check(node, CUDA_ERROR_INVALID_VALUE).work.kind;
  });
}

FP8EMU_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
  return enter(
      [=](Driver &driver) { hand(driver.check(node, CUDA_ERROR_INVALID_VALUE).after, nodes, count); });
}
FP8EMU_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, void *,
                                                  size_t *count) {
  return cuGraphNodeGetDependencies(node, nodes, count);
}
FP8EMU_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
  return enter([=](Driver &driver) {
    hand(driver.check(node, CUDA_ERROR_INVALID_VALUE).owner->dependents(node), nodes, count);
  });
}
FP8EMU_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, void *,
                                                    size_t *count) {
  return cuGraphNodeGetDependentNodes(node, nodes, count);
}

FP8EMU_API CUresult cuGraphDestroyNode(CUgraphNode node) {
  return enter([=](Driver &driver) {
    Graph &own = *driver.check(node, CUDA_ERROR_INVALID_VALUE).owner;
    for (GraphNode *other : own.dependents(node))
      other->after.erase(std::remove(other->after.begin(), other->after.end(), node), other->after.end());
    own.nodes.erase(
        std::find_if(own.nodes.begin(), own.nodes.end(), [=](const auto &one) { return one.get() == node; }));
  });
}

FP8EMU_API CUresult cuGraphNodeFindInClone(CUgraphNode *twin, CUgraphNode node, CUgraph clone) {
  return enter([=](Driver &driver) {
    require(twin && node);
    const auto &nodes = driver.check(clone).nodes;
    auto found =
        std::find_if(nodes.begin(), nodes.end(), [=](const auto &own) { return own->original == node; });
    require(found != nodes.end());
    *twin = found->get();
  });
}

FP8EMU_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
  return enter([=](Driver &driver) {
    require(graph && driver.check(node, CUDA_ERROR_INVALID_VALUE).work.kind == Work::Graph);
    *graph = driver.share(node->work.child);
  });
}

/// Writes a picture of the graph for Graphviz.
FP8EMU_API CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned) {
  return enter([=](Driver &driver) {
    const Graph &own = driver.check(graph);
    require(path);
    std::map<const GraphNode *, size_t> numbers;
    std::string text = "digraph work {\n  node [shape=box]\n";
    for (const auto &node : own.nodes) {
      numbers.emplace(node.get(), numbers.size());
      text += "  n" + std::to_string(numbers[node.get()]) + " [label=\"" + describe(node->work) + "\"]\n";
    }
    for (const auto &node : own.nodes)
      for (const GraphNode *before : node->after)
        text +=
            "  n" + std::to_string(numbers[before]) + " -> n" + std::to_string(numbers[node.get()]) + "\n";
    std::ofstream file(path);
    file << text << "}\n";
    require(file.flush().good(), CUDA_ERROR_OPERATING_SYSTEM);
  });
}
