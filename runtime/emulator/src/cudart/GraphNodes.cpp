// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: nodes of graphs whose parameters the runtime describes in another way than the driver:
// kernels by the addresses of host functions, copies by their kind.

#include "Registry.h"

using namespace fp8emu::cudart;

namespace {

CUcontext current() {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context));
  return context;
}

CUDA_KERNEL_NODE_PARAMS launchOf(const cudaKernelNodeParams *params) {
  require(params);
  CUDA_KERNEL_NODE_PARAMS out{};
  out.launch = {functionOf(params->func), params->gridDim.x,  params->gridDim.y,  params->gridDim.z,
                params->blockDim.x,       params->blockDim.y, params->blockDim.z, params->sharedMemBytes,
                params->kernelParams,     params->extra};
  return out;
}

CUDA_MEMCPY3D copyOf(const cudaMemcpy3DParms *params) {
  require(params);
  return boxOf(*params);
}

/// Nodes of other kinds have the same parameters in both.
CUgraphNodeParams nodeOf(const cudaGraphNodeParams *params) {
  require(params);
  CUgraphNodeParams out{};
  out.type = params->type;
  // cudaGraphNodeTypeKernel, …Memcpy
  if (params->type == 0) {
    out.of.kernel = launchOf(&params->of.kernel);
  } else if (params->type == 1) {
    out.of.copy.params = boxOf(params->of.copy.copyParams);
    out.of.copy.context = current();
  } else {
    static_assert(sizeof out.of == sizeof params->of);
    __builtin_memcpy(out.of.bytes, params->of.bytes, sizeof out.of);
  }
  return out;
}

cudaError_t addCopy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                    const CUDA_MEMCPY3D &box) {
  return cudaError_t(cuGraphAddMemcpyNode(node, graph, after, count, &box, current()));
}
cudaError_t setCopy(cudaGraphNode_t node, const CUDA_MEMCPY3D &box) {
  return cudaError_t(cuGraphMemcpyNodeSetParams(node, &box));
}
cudaError_t setCopy(cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_MEMCPY3D &box) {
  return cudaError_t(cuGraphExecMemcpyNodeSetParams(exec, node, &box, current()));
}

} // namespace

FP8CUDART_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                                 const cudaGraphNode_t *after, size_t count,
                                                 const cudaKernelNodeParams *params) {
  return enter([=] {
    const CUDA_KERNEL_NODE_PARAMS launch = launchOf(params);
    return cuGraphAddKernelNode_v2(node, graph, after, count, &launch);
  });
}
FP8CUDART_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *params) {
  return enter([=] {
    require(params);
    CUDA_KERNEL_NODE_PARAMS found{};
    check(cuGraphKernelNodeGetParams_v2(node, &found));
    const CUDA_KERNEL_NODE_PARAMS_v1 &launch = found.launch;
    *params = {kernelOf(launch.function),
               {launch.gridX, launch.gridY, launch.gridZ},
               {launch.blockX, launch.blockY, launch.blockZ},
               launch.sharedBytes,
               launch.parameters,
               launch.extra};
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                                       const cudaKernelNodeParams *params) {
  return enter([=] {
    const CUDA_KERNEL_NODE_PARAMS launch = launchOf(params);
    return cuGraphKernelNodeSetParams_v2(node, &launch);
  });
}
FP8CUDART_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                           const cudaKernelNodeParams *params) {
  return enter([=] {
    const CUDA_KERNEL_NODE_PARAMS launch = launchOf(params);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &launch);
  });
}

FP8CUDART_API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                                 const cudaGraphNode_t *after, size_t count,
                                                 const cudaMemcpy3DParms *params) {
  return enter([=] { return addCopy(node, graph, after, count, copyOf(params)); });
}
FP8CUDART_API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                                   const cudaGraphNode_t *after, size_t count, void *to,
                                                   const void *from, size_t bytes, cudaMemcpyKind kind) {
  return enter([=] { return addCopy(node, graph, after, count, rowOf(to, from, bytes, kind)); });
}
FP8CUDART_API cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                                         const cudaGraphNode_t *after, size_t count,
                                                         const void *symbol, const void *from, size_t bytes,
                                                         size_t offset, cudaMemcpyKind kind) {
  return enter(
      [=] { return addCopy(node, graph, after, count, rowToSymbol(symbol, from, bytes, offset, kind)); });
}
FP8CUDART_API cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                                           const cudaGraphNode_t *after, size_t count,
                                                           void *to, const void *symbol, size_t bytes,
                                                           size_t offset, cudaMemcpyKind kind) {
  return enter(
      [=] { return addCopy(node, graph, after, count, rowFromSymbol(to, symbol, bytes, offset, kind)); });
}
FP8CUDART_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *params) {
  return enter([=] {
    require(params);
    CUDA_MEMCPY3D box{};
    check(cuGraphMemcpyNodeGetParams(node, &box));
    *params = fp8emu::cudart::copyOf(box);
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                                       const cudaMemcpy3DParms *params) {
  return enter([=] { return setCopy(node, copyOf(params)); });
}
FP8CUDART_API cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from,
                                                         size_t bytes, cudaMemcpyKind kind) {
  return enter([=] { return setCopy(node, rowOf(to, from, bytes, kind)); });
}
FP8CUDART_API cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
                                                               const void *from, size_t bytes, size_t offset,
                                                               cudaMemcpyKind kind) {
  return enter([=] { return setCopy(node, rowToSymbol(symbol, from, bytes, offset, kind)); });
}
FP8CUDART_API cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to,
                                                                 const void *symbol, size_t bytes,
                                                                 size_t offset, cudaMemcpyKind kind) {
  return enter([=] { return setCopy(node, rowFromSymbol(to, symbol, bytes, offset, kind)); });
}
FP8CUDART_API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                           const cudaMemcpy3DParms *params) {
  return enter([=] { return setCopy(exec, node, copyOf(params)); });
}
FP8CUDART_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                             void *to, const void *from, size_t bytes,
                                                             cudaMemcpyKind kind) {
  return enter([=] { return setCopy(exec, node, rowOf(to, from, bytes, kind)); });
}
FP8CUDART_API cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                                   const void *symbol, const void *from,
                                                                   size_t bytes, size_t offset,
                                                                   cudaMemcpyKind kind) {
  return enter([=] { return setCopy(exec, node, rowToSymbol(symbol, from, bytes, offset, kind)); });
}
FP8CUDART_API cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec,
                                                                     cudaGraphNode_t node, void *to,
                                                                     const void *symbol, size_t bytes,
                                                                     size_t offset, cudaMemcpyKind kind) {
  return enter([=] { return setCopy(exec, node, rowFromSymbol(to, symbol, bytes, offset, kind)); });
}

FP8CUDART_API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                                 const cudaGraphNode_t *after, size_t count,
                                                 const CUDA_MEMSET_NODE_PARAMS *params) {
  return enter([=] { return cuGraphAddMemsetNode(node, graph, after, count, params, current()); });
}
FP8CUDART_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                           const CUDA_MEMSET_NODE_PARAMS *params) {
  return enter([=] { return cuGraphExecMemsetNodeSetParams(exec, node, params, current()); });
}
FP8CUDART_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                               const cudaGraphNode_t *after, size_t count,
                                               const CUDA_HOST_NODE_PARAMS *params) {
  return forward(cuGraphAddHostNode, node, graph, after, count, params);
}
FP8CUDART_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                                const cudaGraphNode_t *after, size_t count) {
  return forward(cuGraphAddEmptyNode, node, graph, after, count);
}
FP8CUDART_API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                                      const cudaGraphNode_t *after, size_t count,
                                                      cudaEvent_t event) {
  return forward(cuGraphAddEventRecordNode, node, graph, after, count, event);
}
FP8CUDART_API cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                                    const cudaGraphNode_t *after, size_t count,
                                                    cudaEvent_t event) {
  return forward(cuGraphAddEventWaitNode, node, graph, after, count, event);
}
FP8CUDART_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                                     const cudaGraphNode_t *after, size_t count,
                                                     cudaGraph_t child) {
  return forward(cuGraphAddChildGraphNode, node, graph, after, count, child);
}

cudaError_t fp8emu::cudart::addNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                    const CUgraphEdgeData *edges, size_t count,
                                    const cudaGraphNodeParams *params) {
  return enter([=] {
    CUgraphNodeParams wanted = nodeOf(params);
    return cuGraphAddNode_v2(node, graph, after, edges, count, &wanted);
  });
}
FP8CUDART_API cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, const cudaGraphNodeParams *params) {
  return enter([=] {
    const CUgraphNodeParams wanted = nodeOf(params);
    return cuGraphNodeSetParams(node, &wanted);
  });
}
FP8CUDART_API cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const cudaGraphNodeParams *params) {
  return enter([=] {
    const CUgraphNodeParams wanted = nodeOf(params);
    return cuGraphExecNodeSetParams(exec, node, &wanted);
  });
}
