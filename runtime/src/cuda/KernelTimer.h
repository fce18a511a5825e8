// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The times of kernels on a device, by an event before and one after each.

#ifndef FP8RT_CUDA_KERNELTIMER_H
#define FP8RT_CUDA_KERNELTIMER_H

#include "../program/Profiler.h"
#include "Device.h"

#include <vector>

namespace fp8rt::cuda {

class KernelTimer {
public:
  explicit KernelTimer(const Device &device) : device(device) {}
  KernelTimer(const KernelTimer &) = delete;
  KernelTimer &operator=(const KernelTimer &) = delete;
  ~KernelTimer();

  /// Forgets the kernels so far.
  void reset() { used = 0; }
  /// Surround the launch of a kernel, which has that position in the library's list of kernels.
  void before(int32_t line);
  void after();
  /// Adds the times of all kernels to a profile; their work must be done.
  void addTo(Profiler &profiler) const;

private:
  struct Pair {
    int32_t line = -1;
    CUevent start = nullptr, end = nullptr;
  };

  const Device &device;
  std::vector<Pair> pairs; // kept for later steps
  size_t used = 0;
};

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_KERNELTIMER_H
