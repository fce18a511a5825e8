// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libcudart.so.12: entry points whose name or form is that of CUDA 12.

#include "Runtime.h"

using namespace fp8emu::cudart;

const int fp8emu::cudart::kVersion = 12090;

FP8CUDART_API cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp12 *out, int device) {
  return getProperties(out, device);
}
/// The properties of CUDA 11, which programs for CUDA 12 do not ask for.
FP8CUDART_API cudaError_t cudaGetDeviceProperties() {
  return missing("cudaGetDeviceProperties of CUDA 11", "compile the program with CUDA 12 or 13");
}
FP8CUDART_API cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return forward(cuEventElapsedTime_v2, milliseconds, start, end);
}

FP8CUDART_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes12 *out, const void *address) {
  return getAttributes(out, address);
}

FP8CUDART_API cudaError_t cudaMemAdvise_v2(const void *address, size_t bytes, int advice,
                                           CUmemLocation location) {
  return forward(cuMemAdvise_v2, number(address), bytes, advice, location);
}
FP8CUDART_API cudaError_t cudaMemPrefetchAsync_v2(const void *address, size_t bytes, CUmemLocation location,
                                                  unsigned flags, cudaStream_t stream) {
  return forward(cuMemPrefetchAsync_v2, number(address), bytes, location, flags, stream);
}
// Where memory lies makes no difference.
FP8CUDART_API cudaError_t cudaMemAdvise(const void *address, size_t bytes, int advice, int) {
  return cudaMemAdvise_v2(address, bytes, advice, {});
}
FP8CUDART_API cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, int, cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(address, bytes, {}, 0, stream);
}

FP8CUDART_API cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, int *status, uint64_t *id,
                                                      cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                                                      const CUgraphEdgeData **edges, size_t *count) {
  return forward(cuStreamGetCaptureInfo_v3, stream, status, id, graph, nodes, edges, count);
}
FP8CUDART_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, int *status, uint64_t *id,
                                                      cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                                                      size_t *count) {
  return forward(cuStreamGetCaptureInfo_v2, stream, status, id, graph, nodes, count);
}
FP8CUDART_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int *status, uint64_t *id) {
  return cudaStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr);
}

FP8CUDART_API cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                              const cudaGraphNode_t *after, const CUgraphEdgeData *edges,
                                              size_t count, cudaGraphNodeParams *params) {
  return addNode(node, graph, after, edges, count, params);
}
FP8CUDART_API cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                      const cudaGraphNode_t *to, const CUgraphEdgeData *edges,
                                                      size_t count) {
  return forward(cuGraphAddDependencies_v2, graph, from, to, edges, count);
}
FP8CUDART_API cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                         const cudaGraphNode_t *to,
                                                         const CUgraphEdgeData *edges, size_t count) {
  return forward(cuGraphRemoveDependencies_v2, graph, from, to, edges, count);
}
FP8CUDART_API cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                               CUgraphEdgeData *edges, size_t *count) {
  return forward(cuGraphGetEdges_v2, graph, from, to, edges, count);
}
FP8CUDART_API cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                                          CUgraphEdgeData *edges, size_t *count) {
  return forward(cuGraphNodeGetDependencies_v2, node, nodes, edges, count);
}
FP8CUDART_API cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                                            CUgraphEdgeData *edges, size_t *count) {
  return forward(cuGraphNodeGetDependentNodes_v2, node, nodes, edges, count);
}

FP8CUDART_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *after, size_t count,
                                           cudaGraphNodeParams *params) {
  return addNode(node, graph, after, nullptr, count, params);
}
FP8CUDART_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                   const cudaGraphNode_t *to, size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
FP8CUDART_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                      const cudaGraphNode_t *to, size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}
FP8CUDART_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                            size_t *count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
}
FP8CUDART_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                                       size_t *count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}
FP8CUDART_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                                         size_t *count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

// Names from before devices were chosen by thread.
FP8CUDART_API cudaError_t cudaThreadSynchronize() { return forward(cuCtxSynchronize); }
FP8CUDART_API cudaError_t cudaThreadGetLimit(size_t *value, int which) {
  return forward(cuCtxGetLimit, value, which);
}
FP8CUDART_API cudaError_t cudaThreadSetLimit(int which, size_t value) {
  return forward(cuCtxSetLimit, which, value);
}
FP8CUDART_API cudaError_t cudaDeviceReset();
FP8CUDART_API cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
