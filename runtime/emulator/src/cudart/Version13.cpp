// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libcudart.so.13: entry points whose name or form is that of CUDA 13.

#include "Runtime.h"

using namespace fp8emu::cudart;

const int fp8emu::cudart::kVersion = 13000;

FP8CUDART_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp13 *out, int device) {
  return getProperties(out, device);
}

FP8CUDART_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes13 *out, const void *address) {
  if (out)
    *out = {};
  return getAttributes(out ? &out->own : nullptr, address);
}

FP8CUDART_API cudaError_t cudaMemAdvise(const void *address, size_t bytes, int advice,
                                        CUmemLocation location) {
  return forward(cuMemAdvise_v2, number(address), bytes, advice, location);
}
FP8CUDART_API cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, CUmemLocation location,
                                               unsigned flags, cudaStream_t stream) {
  return forward(cuMemPrefetchAsync_v2, number(address), bytes, location, flags, stream);
}

FP8CUDART_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int *status, uint64_t *id,
                                                   cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                                                   const CUgraphEdgeData **edges, size_t *count) {
  return forward(cuStreamGetCaptureInfo_v3, stream, status, id, graph, nodes, edges, count);
}

FP8CUDART_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *after, const CUgraphEdgeData *edges,
                                           size_t count, cudaGraphNodeParams *params) {
  return addNode(node, graph, after, edges, count, params);
}
FP8CUDART_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                   const cudaGraphNode_t *to, const CUgraphEdgeData *edges,
                                                   size_t count) {
  return forward(cuGraphAddDependencies_v2, graph, from, to, edges, count);
}
FP8CUDART_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                      const cudaGraphNode_t *to, const CUgraphEdgeData *edges,
                                                      size_t count) {
  return forward(cuGraphRemoveDependencies_v2, graph, from, to, edges, count);
}
FP8CUDART_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                            CUgraphEdgeData *edges, size_t *count) {
  return forward(cuGraphGetEdges_v2, graph, from, to, edges, count);
}
FP8CUDART_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                                       CUgraphEdgeData *edges, size_t *count) {
  return forward(cuGraphNodeGetDependencies_v2, node, nodes, edges, count);
}
FP8CUDART_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                                         CUgraphEdgeData *edges, size_t *count) {
  return forward(cuGraphNodeGetDependentNodes_v2, node, nodes, edges, count);
}
