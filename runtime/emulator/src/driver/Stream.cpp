// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: streams and events. Work is done when it is given, which is an order
// that every program must allow: waiting has nothing to wait for.

#include "Work.h"

#include <algorithm>

using namespace fp8emu::driver;

Stream::~Stream() { Driver::get().streams.erase(this); }

namespace {
void checkStream(Driver &driver, CUstream stream) {
  driver.current();
  if (!isDefault(stream))
    driver.check(stream);
}
} // namespace

FP8EMU_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  return enter([=](Driver &driver) {
    require(stream);
    auto own = std::make_unique<Stream>();
    own->context = &driver.current();
    own->flags = flags;
    own->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    *stream = driver.track(std::move(own), &driver.current());
    driver.streams.insert(*stream);
  });
}

FP8EMU_API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

FP8EMU_API CUresult cuStreamDestroy_v2(CUstream stream) {
  return enter([=](Driver &driver) {
    driver.check(stream);
    driver.drop(stream);
  });
}

FP8EMU_API CUresult cuStreamSynchronize(CUstream stream) {
  return enter([=](Driver &driver) { refuseCapture(driver, stream); });
}
FP8EMU_API CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }

FP8EMU_API CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
  return enter([=](Driver &driver) {
    require(flags);
    *flags = isDefault(stream) ? 0 : driver.check(stream).flags;
  });
}

FP8EMU_API CUresult cuStreamGetPriority(CUstream stream, int *priority) {
  return enter([=](Driver &driver) {
    require(priority);
    *priority = isDefault(stream) ? 0 : driver.check(stream).priority;
  });
}

FP8EMU_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  return enter([=](Driver &driver) {
    require(context);
    *context = isDefault(stream) ? &driver.current() : driver.check(stream).context;
  });
}

FP8EMU_API CUresult cuStreamGetDevice(CUstream stream, CUdevice *device) {
  return enter([=](Driver &driver) {
    require(device);
    *device = (isDefault(stream) ? &driver.current() : driver.check(stream).context)->device;
  });
}

FP8EMU_API CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
  return enter([=](Driver &driver) {
    require(id);
    checkStream(driver, stream);
    *id = reinterpret_cast<uintptr_t>(stream);
  });
}

FP8EMU_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return enter([=](Driver &driver) {
    checkStream(driver, stream);
    driver.check(event);
    // Later work of this stream comes after the work that the event recorded.
    auto capture = event->capture.lock();
    if (!capture)
      return;
    require(!capture->isInvalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // The default stream is never captured: its next work could not wait.
    capture->isInvalid = isDefault(stream);
    require(!capture->isInvalid, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    auto other = captureOf(driver, stream);
    require(!other || other == capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    stream->capture = capture;
    stream->frontier.insert(stream->frontier.end(), event->frontier.begin(), event->frontier.end());
  });
}

FP8EMU_API CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void *), void *data) {
  if (!function)
    return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.kind = Work::Host;
  work.host = {function, data};
  return submit(stream, std::move(work));
}

FP8EMU_API CUresult cuStreamAddCallback(CUstream stream, void (*function)(CUstream, CUresult, void *),
                                        void *data, unsigned flags) {
  if (!function || flags)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult code = enter([=](Driver &driver) { refuseCapture(driver, stream); });
  if (code == CUDA_SUCCESS)
    function(stream, code, data);
  return code;
}

FP8EMU_API CUresult cuEventCreate(CUevent *event, unsigned flags) {
  return enter([=](Driver &driver) {
    require(event);
    auto own = std::make_unique<Event>();
    own->context = &driver.current();
    own->flags = flags;
    *event = driver.track(std::move(own), &driver.current());
  });
}

FP8EMU_API CUresult cuEventDestroy_v2(CUevent event) {
  return enter([=](Driver &driver) {
    driver.check(event);
    driver.drop(event);
  });
}

FP8EMU_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  bool captured = false;
  CUresult code = enter([&](Driver &driver) {
    auto capture = captureOf(driver, stream);
    Event &own = driver.check(event);
    Context *context = isDefault(stream) ? &driver.current() : stream->context;
    require(own.context == context, CUDA_ERROR_INVALID_HANDLE);
    own.capture = capture;
    own.frontier = capture ? stream->frontier : std::vector<GraphNode *>();
    captured = capture != nullptr;
  });
  if (code != CUDA_SUCCESS || captured)
    return code;
  Work work;
  work.kind = Work::RecordEvent;
  work.event = event;
  return perform(work);
}
FP8EMU_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return cuEventRecord(event, stream);
}

FP8EMU_API CUresult cuEventSynchronize(CUevent event) {
  return enter([=](Driver &driver) {
    driver.current();
    driver.check(event);
  });
}
FP8EMU_API CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }

FP8EMU_API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  return enter([=](Driver &driver) {
    require(milliseconds);
    Event &first = driver.check(start), &last = driver.check(end);
    require(first.recorded && last.recorded, CUDA_ERROR_INVALID_HANDLE);
    // CU_EVENT_DISABLE_TIMING
    require(!(first.flags & 2) && !(last.flags & 2), CUDA_ERROR_INVALID_HANDLE);
    *milliseconds = float((last.time - first.time) * 1e3);
  });
}
FP8EMU_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
