// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the kernels of steps.

#ifndef FP8RT_PROGRAM_PROFILER_H
#define FP8RT_PROGRAM_PROFILER_H

#include "Library.h"
#include "fp8rt/profiler.h"

#include <chrono>

namespace fp8rt {

/// A kernel's row: what the library says of it, and what was measured.
struct ProfiledKernel {
  std::string name, kind;
  std::vector<const char *> sites; // of the profiler
  int64_t bytesRead = -1, bytesWritten = -1, operations = -1;
  uint64_t calls = 0;
  std::chrono::steady_clock::duration time{0};
};

/// The base is what compiled code sees.
class Profiler : public fp8rt_profile {
public:
  explicit Profiler(std::shared_ptr<const Library> library);
  Profiler(const Profiler &) = delete;
  Profiler &operator=(const Profiler &) = delete;

  /// Surround a step.
  void begin() { last = Clock::now(); }
  void end() { outside += takeTime(); }
  /// Adds a call of kernel `index` of the list, which took so long within the step; any other index is
  /// time outside kernels.
  void addKernel(int32_t index, double seconds);
  void reset();

  const Library &library() const { return *program; }
  const std::vector<ProfiledKernel> &list() const { return kernels; }
  double outsideSeconds() const { return std::chrono::duration<double>(outside).count(); }

private:
  using Clock = std::chrono::steady_clock;

  void parse();
  static void recordKernel(fp8rt_profile *profile, int32_t kernel);
  bool isKernel(int32_t index) const { return index >= 0 && static_cast<size_t>(index) < kernels.size(); }
  /// Returns the time since the last record, begin or end.
  Clock::duration takeTime();

  std::shared_ptr<const Library> program;
  std::vector<std::string> sites;
  std::vector<ProfiledKernel> kernels;
  Clock::duration outside{0};
  Clock::time_point last;
};

} // namespace fp8rt

/// The C ABI's handle.
struct fp8rt_profiler {
  std::shared_ptr<fp8rt::Profiler> shared;
};

#endif // FP8RT_PROGRAM_PROFILER_H
