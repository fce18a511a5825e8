// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measuring the kernels of calls on the CPU that XLA makes.

#include "Profiling.h"

using namespace fp8_jax;

/// Entry points of one library share a profiler.
static std::mutex &turns() {
  static auto *instance = new std::mutex; // Never destroyed: threads of XLA may outlive main.
  return *instance;
}

void Profiling::set(Begin withBegin, End withEnd, fp8rt_profiler *with) {
  std::lock_guard<std::mutex> turn(turns());
  begin = withBegin;
  end = withEnd;
  profiler = with;
}

Measured::Measured(Profiling &profiling, fp8rt_call &call) : profiling(profiling) {
  if (!profiling.profiler)
    return;
  turn = std::unique_lock<std::mutex>(turns());
  profiler = profiling.profiler;
  if (!profiler)
    return; // since the question before
  call.profile = profiling.begin(profiler);
  call.flags |= FP8RT_CALL_HAS_PROFILE;
}

Measured::~Measured() {
  if (profiler)
    profiling.end(profiler);
}
