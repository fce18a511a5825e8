// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SideStream.h"

using namespace fp8rt::cuda;

static const char *const kWhat = "work cannot be ordered between two streams";

SideStream::SideStream(const Device &device) : device(device) {
  constexpr unsigned kNonBlocking = 1; // CU_STREAM_NON_BLOCKING: the default stream is not waited for
  constexpr int kUrgent =
      -100; // the driver takes its greatest priority: what other ranks wait for goes first
  device.driver().check(device.driver().streamCreate(&stream, kNonBlocking, kUrgent),
                        "a stream cannot be created on " + device.name());
}

SideStream::~SideStream() {
  const Driver &driver = device.driver();
  for (auto [ticket, event] : marks)
    driver.eventDestroy(event);
  for (CUevent event : unused)
    driver.eventDestroy(event);
  driver.streamDestroy(stream);
}

/// Returns an event that holds what `of` has been given so far.
CUevent SideStream::record(CUstream of) {
  constexpr unsigned kNoTiming = 2; // CU_EVENT_DISABLE_TIMING
  if (unused.empty()) {
    CUevent event = nullptr;
    device.driver().check(device.driver().eventCreate(&event, kNoTiming),
                          "an event cannot be created on " + device.name());
    unused.push_back(event);
  }
  CUevent event = unused.back();
  device.driver().check(device.driver().eventRecord(event, of), kWhat);
  unused.pop_back();
  return event;
}

void SideStream::wait(CUstream later, CUevent event) {
  unused.push_back(event); // what a stream waits for is what the event holds now
  device.driver().check(device.driver().streamWaitEvent(later, event, 0), kWhat);
}

void SideStream::follow(CUstream main) { wait(stream, record(main)); }

void SideStream::mark(uint64_t ticket) { marks[ticket] = record(stream); }

void SideStream::join(uint64_t ticket, CUstream main) {
  auto found = marks.find(ticket);
  if (found == marks.end())
    return;
  CUevent event = found->second;
  marks.erase(found);
  wait(main, event);
}
