// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recording events and reading their times.

#include "KernelTimer.h"

using namespace fp8rt;
using namespace fp8rt::cuda;

KernelTimer::~KernelTimer() {
  Entered entered(device);
  if (!entered)
    return;
  for (const Pair &pair : pairs)
    for (CUevent event : {pair.start, pair.end})
      if (event)
        device.driver().eventDestroy(event);
}

void KernelTimer::before(int32_t line) {
  const Driver &driver = device.driver();
  if (used == pairs.size()) {
    Pair &made = pairs.emplace_back(); // first, so that the destructor sees what follows
    driver.check(driver.eventCreate(&made.start, 0), "the time of a kernel cannot be measured");
    driver.check(driver.eventCreate(&made.end, 0), "the time of a kernel cannot be measured");
  }
  pairs[used].line = line;
  driver.check(driver.eventRecord(pairs[used].start, device.stream()),
               "the time of a kernel cannot be measured");
}

void KernelTimer::after() {
  const Driver &driver = device.driver();
  driver.check(driver.eventRecord(pairs[used].end, device.stream()),
               "the time of a kernel cannot be measured");
  ++used;
}

void KernelTimer::addTo(Profiler &profiler) const {
  for (size_t i = 0; i < used; ++i) {
    float milliseconds = 0;
    device.driver().check(device.driver().eventElapsedTime(&milliseconds, pairs[i].start, pairs[i].end),
                          "the time of a kernel cannot be measured");
    profiler.addKernel(pairs[i].line, double(milliseconds) * 1e-3);
  }
}
