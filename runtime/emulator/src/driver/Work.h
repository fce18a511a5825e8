// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work that a stream is given, and graphs of work. A stream does its work at once; while it is
// captured, it puts the work into a graph.

#ifndef FP8EMU_DRIVER_WORK_H
#define FP8EMU_DRIVER_WORK_H

#include "Driver.h"

namespace fp8emu::driver {

struct Work {
  /// CUgraphNodeType.
  enum Kind : int {
    Kernel = 0,
    Copy = 1,
    Set = 2,
    Host = 3,
    Graph = 4,
    Empty = 5,
    WaitEvent = 6,
    RecordEvent = 7
  };
  Kind kind = Empty;
  KernelHandle *kernel = nullptr;
  LaunchConfig config;
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS set{};
  CUDA_HOST_NODE_PARAMS host{};
  CUevent event = nullptr;
  /// Of Kind::Graph: a copy of the graph as it was.
  std::shared_ptr<driver::Graph> child;
};

struct GraphNode : Owned<GraphNode> {
  Work work;
  driver::Graph *owner = nullptr;
  std::vector<GraphNode *> after;
  /// Of a node of a clone: the node it was made from.
  const GraphNode *original = nullptr;
  /// Of a node of a graph made ready to run: whether it does anything.
  bool isEnabled = true;
  /// Handed out by cuGraphKernelNodeGetParams.
  std::vector<void *> pointers;
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;

  GraphNode *add(Work work, std::vector<GraphNode *> after);
  bool has(const GraphNode *node) const;
  /// The nodes that come after `node`.
  std::vector<GraphNode *> dependents(const GraphNode *node) const;
  /// All nodes, each behind those it comes after; an Error where there is a circle.
  std::vector<GraphNode *> order() const;
  /// A copy; `twins` says which node became which.
  std::unique_ptr<Graph> clone(std::map<const GraphNode *, GraphNode *> *twins = nullptr) const;
};

/// A graph made ready to run: a copy that later changes of the graph do not reach.
struct GraphExec {
  std::unique_ptr<Graph> graph;
  std::map<const GraphNode *, GraphNode *> twins;
  std::vector<GraphNode *> order;
};

/// The node of a ready graph that one of the graph it was made from became.
GraphNode &twinOf(Driver &driver, CUgraphExec exec, const GraphNode *node);

/// The capture that streams take part in: their work becomes nodes.
struct Capture {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  CUstream origin = nullptr;
  uint64_t id = 0;
  /// Whether something was asked that a capture does not allow: the capture can only be ended.
  bool isInvalid = false;
};

/// Does the work, or captures it where the stream is being captured.
CUresult submit(CUstream stream, Work work);
/// Does the work now; a function of the host is called without the lock.
CUresult perform(const Work &work);

/// The parameters of a launch, from an array of pointers or from one buffer.
std::vector<uint8_t> gatherParameters(const FunctionCode &code, void **pointers, void **extra);
/// Refuses kernels of another context, and, with a report, what the chip would not launch.
void checkSizes(Driver &driver, const KernelHandle &kernel, LaunchConfig &config);

/// Sets an attribute of a kernel for devices of this chip.
void setAttribute(const Chip &chip, KernelHandle &kernel, int which, int value);

void copyBytes(Driver &driver, uint64_t to, uint64_t from, size_t bytes);
void copyBox(Driver &driver, const CUDA_MEMCPY3D &box);
void setRows(Driver &driver, const CUDA_MEMSET_NODE_PARAMS &set);

/// The default stream and its kin are numbers instead of handles.
inline bool isDefault(CUstream stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }
/// The stream's capture, null where it has none; an error where it has become invalid.
std::shared_ptr<Capture> captureOf(Driver &driver, CUstream stream);
/// Refuses calls that a capture does not allow; the capture is invalid from then on.
void refuseCapture(Driver &driver, CUstream stream);

} // namespace fp8emu::driver

#endif // FP8EMU_DRIVER_WORK_H
