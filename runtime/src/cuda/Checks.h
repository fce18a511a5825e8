// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conditions of a program, such as indices within bounds, in work that nobody waits for.

#ifndef FP8RT_CUDA_CHECKS_H
#define FP8RT_CUDA_CHECKS_H

#include "DeviceMemory.h"

#include <memory>

namespace fp8rt::cuda {

/// A kernel that reads a condition. Where it does not hold, the kernel writes the check's message to memory
/// of the host and ends all work of the context (`trap`), as the assertions of other packages' kernels do: no
/// later kernel uses a wrong index, and every later call of the driver returns an error, for which Driver has
/// the message.
class Checks {
public:
  /// Loads the kernel, which cannot be done while a graph is captured. The device's context is current.
  explicit Checks(std::shared_ptr<const Device> device);
  Checks(const Checks &) = delete;
  Checks &operator=(const Checks &) = delete;
  ~Checks();

  /// Enqueues the check that the byte at `flag`, memory of the device, is not 0. `message` lives as long as
  /// the work may run.
  void enqueue(const void *flag, const char *message, CUstream stream) const;

private:
  void release() noexcept;

  std::shared_ptr<const Device> device;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  void *record = nullptr; ///< of the host: the address of the message of a check that has failed
  CUdeviceptr recordOnDevice = 0;
};

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_CHECKS_H
