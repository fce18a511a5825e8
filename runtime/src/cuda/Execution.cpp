// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running steps, from a graph or not.

#include "Execution.h"

#include <cstdlib>
#include <cstring>

using namespace fp8rt;
using namespace fp8rt::cuda;

Execution::Execution(std::shared_ptr<const DeviceProgram> program, bool capturable)
    : program(std::move(program)), launcher(this->program), capturable(capturable) {
  const char *asked = std::getenv("FP8RT_GRAPH");
  if (Launcher::isToWaitForEach() || (asked && std::strcmp(asked, "0") == 0))
    this->capturable = false;
}

void Execution::run(const std::function<void()> &enqueue, const Key &key, Profiler *profiler) {
  Current current(program->device());
  if (profiler && !timer)
    timer.emplace(program->device());
  if (timer)
    timer->reset();
  launcher.measureWith(profiler ? &*timer : nullptr);
  // Most mistakes show in the first step, which compiles and allocates too: its errors name the kernel.
  launcher.waitForEach(isFirst || Launcher::isToWaitForEach());
  isFirst = false;
  try {
    if (capturable && !profiler)
      enqueueOrReplay(enqueue, key);
    else
      enqueue();
    launcher.wait();
  } catch (...) {
    launcher.abandon(); // the step's buffers may be released next
    throw;
  }
  if (profiler)
    timer->addTo(*profiler);
}

void Execution::enqueueOrReplay(const std::function<void()> &enqueue, const Key &key) {
  bool isKnown = graph && key == graphKey;
  if (!isKnown && key != lastKey) {
    enqueue();
  } else {
    if (!isKnown) {
      capture(enqueue);
      graphKey = key;
    }
    graph->launch();
  }
  lastKey = key;
}

void Execution::capture(const std::function<void()> &enqueue) {
  graph.reset();
  launcher.setCapturing(true);
  try {
    graph.emplace(program->device(), enqueue);
  } catch (...) {
    launcher.setCapturing(false);
    throw;
  }
  launcher.setCapturing(false);
}
