// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: capturing what streams are given as a graph.

#include "../Work.h"

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::driver;

FP8EMU_API CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  return enter([=](Driver &driver) {
    static uint64_t captures = 0;
    driver.current();
    require(!isDefault(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    require(!driver.check(stream).capture, CUDA_ERROR_ILLEGAL_STATE);
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream;
    stream->capture->id = ++captures;
    stream->frontier.clear();
  });
}

/// The streams that joined leave the capture, wherever it ends.
static void leave(Driver &driver, const std::shared_ptr<Capture> &capture) {
  for (CUstream stream : driver.streams)
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->frontier.clear();
    }
}

FP8EMU_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  return enter([=](Driver &driver) {
    require(graph);
    *graph = nullptr;
    driver.current();
    auto capture = isDefault(stream) ? nullptr : driver.check(stream).capture;
    require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(capture->origin == stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    // Work captured on other streams must have been joined to this one by an event.
    auto frontier = stream->frontier;
    leave(driver, capture);
    require(!capture->isInvalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    for (const auto &node : capture->graph->nodes)
      require(!capture->graph->dependents(node.get()).empty() ||
                  std::find(frontier.begin(), frontier.end(), node.get()) != frontier.end(),
              CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    *graph = driver.track(std::move(capture->graph));
  });
}

FP8EMU_API CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  return enter([=](Driver &driver) {
    require(status);
    driver.current();
    auto capture = isDefault(stream) ? nullptr : driver.check(stream).capture;
    // CU_STREAM_CAPTURE_STATUS_ACTIVE, _INVALIDATED
    *status = !capture ? 0 : capture->isInvalid ? 2 : 1;
  });
}

FP8EMU_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                              const CUgraphNode **nodes, size_t *count) {
  return enter([=](Driver &driver) {
    require(status);
    auto capture = captureOf(driver, stream);
    *status = capture != nullptr;
    if (!capture)
      return;
    if (id)
      *id = capture->id;
    if (graph)
      *graph = capture->graph.get();
    if (nodes)
      *nodes = stream->frontier.data();
    if (count)
      *count = stream->frontier.size();
  });
}
FP8EMU_API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                              const CUgraphNode **nodes, const void **edges, size_t *count) {
  if (edges)
    *edges = nullptr;
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}

FP8EMU_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  return enter([=](Driver &) {
    thread_local int own = 0;
    require(mode && *mode >= 0 && *mode <= 2);
    std::swap(own, *mode);
  });
}
