// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events, functions of the host, and graphs: captured, and built node by node.

#include "check.h"

__global__ void twice(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = 2 * x[i] + 1; // fault: nothing has written the memory
}

static int called;
static void CUDART_CB fromTheStream(void *number) { called += *(int *)number; }
static void CUDART_CB withStatus(cudaStream_t, cudaError_t status, void *number) {
  called += status == cudaSuccess ? 10 * *(int *)number : 1000;
}

static void streams() {
  cudaStream_t first, second;
  cudaEvent_t start, ready, end;
  int least, greatest, priority;
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  OK(cudaStreamCreateWithPriority(&first, cudaStreamNonBlocking, greatest));
  OK(cudaStreamGetPriority(first, &priority));
  SAME(greatest, priority);
  OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  OK(cudaEventCreate(&start));
  OK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  OK(cudaEventCreate(&end));
  int *x, out[64], number = 3;
  OK(cudaMalloc(&x, 256));
  OK(cudaEventRecord(start, first));
  OK(cudaMemsetAsync(x, 0, 256, first));
  twice<<<2, 32, 0, first>>>(x, 64);
  OK(cudaEventRecord(ready, first));
  OK(cudaStreamWaitEvent(second, ready, 0));
  twice<<<2, 32, 0, second>>>(x, 64);
  OK(cudaMemcpyAsync(out, x, 256, cudaMemcpyDeviceToHost, second));
  OK(cudaLaunchHostFunc(second, fromTheStream, &number));
  OK(cudaStreamAddCallback(second, withStatus, &number, 0));
  OK(cudaEventRecord(end, second));
  OK(cudaStreamSynchronize(second));
  OK(cudaEventQuery(end));
  SAME(3, out[63]);
  SAME(33, called);
  float milliseconds = -1;
  OK(cudaEventElapsedTime(&milliseconds, start, end));
  SAME(true, milliseconds >= 0);
  RETURNS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, ready));
  OK(cudaEventDestroy(start));
  OK(cudaStreamDestroy(first));
  RETURNS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(first));
  cudaGetLastError();
}

static void captured() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  int *x, out[64];
  OK(cudaMalloc(&x, 256));
  OK(cudaMemset(x, 0, 256));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  twice<<<2, 32, 0, stream>>>(x, 64);
  twice<<<2, 32, 0, stream>>>(x, 64);
  OK(cudaMemcpyAsync(out, x, 256, cudaMemcpyDeviceToHost, stream));
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(stream, &status));
  SAME(cudaStreamCaptureStatusActive, status);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  SAME(3, nodes);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  SAME(3, out[7]);
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  SAME(15, out[7]);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

static void built() {
  int *x, out[64], n = 64, half = 32;
  OK(cudaMalloc(&x, 256));
  cudaGraph_t graph;
  cudaGraphNode_t set, launch, copy;
  OK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill{};
  fill.dst = x;
  fill.value = 4;
  fill.elementSize = 4;
  fill.width = 64;
  fill.height = 1;
  OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &fill));
  void *parameters[] = {&x, &n};
  cudaKernelNodeParams kernel{};
  kernel.func = (void *)twice;
  kernel.gridDim = dim3(2);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = parameters;
  OK(cudaGraphAddKernelNode(&launch, graph, &set, 1, &kernel));
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, &launch, 1, out, x, 256, cudaMemcpyDeviceToHost));
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  SAME(9, out[63]);
  cudaKernelNodeParams found{};
  OK(cudaGraphKernelNodeGetParams(launch, &found));
  SAME(true, found.func == (void *)twice);
  SAME(32, found.blockDim.x);
  parameters[1] = &half;
  OK(cudaGraphExecKernelNodeSetParams(exec, launch, &kernel));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  SAME(9, out[31]);
  SAME(4, out[63]);
  cudaMemcpy3DParms read{};
  OK(cudaGraphMemcpyNodeGetParams(copy, &read));
  SAME(256, read.extent.width);
  SAME(cudaMemcpyDeviceToHost, read.kind);
}

int main(int count, char **arguments) {
  streams();
  captured();
  built();
  if (wantsFault(count, arguments)) {
    int *x;
    OK(cudaMalloc(&x, 256));
    twice<<<2, 32>>>(x, 64);
    RETURNS(cudaErrorLaunchFailure, cudaDeviceSynchronize());
    return 1;
  }
  std::puts("ok");
}
