// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A GPU, or one that the emulator imitates: its context, and the stream of all work that one opener
// gives it.

#ifndef FP8RT_CUDA_DEVICE_H
#define FP8RT_CUDA_DEVICE_H

#include "Chip.h"
#include "Driver.h"

#include <sys/types.h>

namespace fp8rt::cuda {

class Device {
public:
  /// Retains the primary context, which other users of the GPU in this process share, and creates a stream.
  Device(std::shared_ptr<const Driver> driver, int ordinal);
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  ~Device();

  const Driver &driver() const { return *api; }
  int ordinal() const { return number; }
  const std::string &name() const { return label; }
  Capability capability() const { return chip; }
  CUstream stream() const { return queue; }

  CUcontext handle() const { return context; }

  /// Whether this process is a fork of the one that opened the device: no context works there.
  bool isForked() const;

  /// Waits for all work of the stream. Errors begin with `what`.
  void wait(const std::string &what) const;

private:
  friend class Entered;

  std::shared_ptr<const Driver> api;
  pid_t opener; // the process
  int number;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream queue = nullptr;
  std::string label;
  Capability chip;
};

/// Makes a device's context the calling thread's as long as it lives; the thread then has the one it had.
/// False if the context cannot be used any more: then nothing is left to be released.
class Entered {
public:
  explicit Entered(const Device &device) noexcept;
  Entered(const Entered &) = delete;
  Entered &operator=(const Entered &) = delete;
  ~Entered();
  explicit operator bool() const { return code == CUDA_SUCCESS; }

protected:
  const Device &device;
  CUresult code;
};

/// The same, with an error if the context cannot be used.
class Current : public Entered {
public:
  explicit Current(const Device &device);
};

/// Returns the name and capability of a device without opening it.
std::string nameOf(const Driver &driver, CUdevice device);
Capability capabilityOf(const Driver &driver, CUdevice device);

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_DEVICE_H
