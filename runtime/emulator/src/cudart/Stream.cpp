// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: streams and events, and what streams capture.

#include "Runtime.h"

using namespace fp8emu::cudart;

FP8CUDART_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  return enter([=] {
    require(flags <= 1); // cudaStreamNonBlocking
    return cuStreamCreateWithPriority(stream, flags, priority);
  });
}
FP8CUDART_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
FP8CUDART_API cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}
FP8CUDART_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return forward(cuStreamDestroy_v2, stream);
}
FP8CUDART_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return forward(cuStreamSynchronize, stream);
}
FP8CUDART_API cudaError_t cudaStreamQuery(cudaStream_t stream) { return forward(cuStreamQuery, stream); }
FP8CUDART_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  return forward(cuStreamGetFlags, stream, flags);
}
FP8CUDART_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  return forward(cuStreamGetPriority, stream, priority);
}
FP8CUDART_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
  return forward(cuStreamGetDevice, stream, device);
}
FP8CUDART_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
  return forward(cuStreamGetId, stream, id);
}
FP8CUDART_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return forward(cuStreamWaitEvent, stream, event, flags);
}
FP8CUDART_API cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                                void (*function)(cudaStream_t, CUresult, void *), void *data,
                                                unsigned flags) {
  return forward(cuStreamAddCallback, stream, function, data, flags);
}

FP8CUDART_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) {
  return forward(cuStreamBeginCapture_v2, stream, mode);
}
FP8CUDART_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  return forward(cuStreamEndCapture, stream, graph);
}
FP8CUDART_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status) {
  return forward(cuStreamIsCapturing, stream, status);
}
FP8CUDART_API cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) {
  return forward(cuThreadExchangeStreamCaptureMode, mode);
}

FP8CUDART_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  return forward(cuEventCreate, event, flags);
}
FP8CUDART_API cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }
FP8CUDART_API cudaError_t cudaEventDestroy(cudaEvent_t event) { return forward(cuEventDestroy_v2, event); }
FP8CUDART_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return forward(cuEventRecordWithFlags, event, stream, flags);
}
FP8CUDART_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
FP8CUDART_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return forward(cuEventSynchronize, event);
}
FP8CUDART_API cudaError_t cudaEventQuery(cudaEvent_t event) { return forward(cuEventQuery, event); }
FP8CUDART_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return forward(cuEventElapsedTime_v2, milliseconds, start, end);
}
