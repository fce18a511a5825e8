// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measuring the kernels of calls on the CPU that XLA makes.

#ifndef FP8_PYTHON_LIB_PROFILING_H
#define FP8_PYTHON_LIB_PROFILING_H

#include "fp8rt/call.h"
#include "fp8rt/profiler.h"

#include <atomic>
#include <mutex>

namespace fp8_jax {

/// The profiler of the calls of one entry point.
class Profiling {
public:
  using Begin = fp8rt_profile *(*)(fp8rt_profiler *);
  using End = void (*)(fp8rt_profiler *);

  /// Measures all following calls with functions of libfp8rt; a null profiler measures none. Returns when no
  /// call uses the former one.
  void set(Begin begin, End end, fp8rt_profiler *profiler);

private:
  friend class Measured;

  std::atomic<fp8rt_profiler *> profiler{nullptr};
  Begin begin = nullptr;
  End end = nullptr;
};

/// As long as it lives, a call that is measured. A profiler measures one call at a time, so these take turns.
class Measured {
public:
  Measured(Profiling &profiling, fp8rt_call &call);
  Measured(const Measured &) = delete;
  Measured &operator=(const Measured &) = delete;
  ~Measured();

private:
  Profiling &profiling;
  std::unique_lock<std::mutex> turn;
  fp8rt_profiler *profiler = nullptr;
};

} // namespace fp8_jax

#endif // FP8_PYTHON_LIB_PROFILING_H
