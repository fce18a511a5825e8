// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: graphs that are made ready and launched. Handles are the driver's.

#include "Runtime.h"

using namespace fp8emu::cudart;

FP8CUDART_API cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
  return forward(cuGraphCreate, graph, flags);
}
FP8CUDART_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return forward(cuGraphDestroy, graph); }
FP8CUDART_API cudaError_t cudaGraphClone(cudaGraph_t *copy, cudaGraph_t graph) {
  return forward(cuGraphClone, copy, graph);
}
FP8CUDART_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags) {
  return forward(cuGraphDebugDotPrint, graph, path, flags);
}
FP8CUDART_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  return forward(cuGraphGetNodes, graph, nodes, count);
}
FP8CUDART_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  return forward(cuGraphGetRootNodes, graph, nodes, count);
}
FP8CUDART_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, int *type) {
  return forward(cuGraphNodeGetType, node, type);
}
FP8CUDART_API cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *twin, cudaGraphNode_t node,
                                                   cudaGraph_t clone) {
  return forward(cuGraphNodeFindInClone, twin, node, clone);
}
FP8CUDART_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return forward(cuGraphDestroyNode, node);
}

FP8CUDART_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                               unsigned long long flags) {
  return forward(cuGraphInstantiateWithFlags, exec, graph, flags);
}
FP8CUDART_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                        unsigned long long flags) {
  return forward(cuGraphInstantiateWithFlags, exec, graph, flags);
}
FP8CUDART_API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                         CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  return forward(cuGraphInstantiateWithParams, exec, graph, params);
}
FP8CUDART_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return forward(cuGraphExecDestroy, exec);
}
FP8CUDART_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, uint64_t *flags) {
  return forward(cuGraphExecGetFlags, exec, flags);
}
FP8CUDART_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                              CUgraphExecUpdateResultInfo *info) {
  return forward(cuGraphExecUpdate_v2, exec, graph, info);
}
FP8CUDART_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return forward(cuGraphUpload, exec, stream);
}
FP8CUDART_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return forward(cuGraphLaunch, exec, stream);
}
FP8CUDART_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                  unsigned isEnabled) {
  return forward(cuGraphNodeSetEnabled, exec, node, isEnabled);
}
FP8CUDART_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                  unsigned *isEnabled) {
  return forward(cuGraphNodeGetEnabled, exec, node, isEnabled);
}

FP8CUDART_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
  return forward(cuGraphChildGraphNodeGetGraph, node, graph);
}
FP8CUDART_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                               cudaGraph_t child) {
  return forward(cuGraphExecChildGraphNodeSetParams, exec, node, child);
}
FP8CUDART_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, CUDA_HOST_NODE_PARAMS *params) {
  return forward(cuGraphHostNodeGetParams, node, params);
}
FP8CUDART_API cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                                     const CUDA_HOST_NODE_PARAMS *params) {
  return forward(cuGraphHostNodeSetParams, node, params);
}
FP8CUDART_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                         const CUDA_HOST_NODE_PARAMS *params) {
  return forward(cuGraphExecHostNodeSetParams, exec, node, params);
}
FP8CUDART_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                                       CUDA_MEMSET_NODE_PARAMS *params) {
  return forward(cuGraphMemsetNodeGetParams, node, params);
}
FP8CUDART_API cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                                       const CUDA_MEMSET_NODE_PARAMS *params) {
  return forward(cuGraphMemsetNodeSetParams, node, params);
}
FP8CUDART_API cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  return forward(cuGraphEventRecordNodeGetEvent, node, event);
}
FP8CUDART_API cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return forward(cuGraphEventRecordNodeSetEvent, node, event);
}
FP8CUDART_API cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                               cudaEvent_t event) {
  return forward(cuGraphExecEventRecordNodeSetEvent, exec, node, event);
}
FP8CUDART_API cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  return forward(cuGraphEventWaitNodeGetEvent, node, event);
}
FP8CUDART_API cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return forward(cuGraphEventWaitNodeSetEvent, node, event);
}
FP8CUDART_API cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                             cudaEvent_t event) {
  return forward(cuGraphExecEventWaitNodeSetEvent, exec, node, event);
}
