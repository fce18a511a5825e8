// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of fp8rt_device (device.h), for one session or one prepared entry point.

#ifndef FP8RT_CUDA_LAUNCHER_H
#define FP8RT_CUDA_LAUNCHER_H

#include "DeviceProgram.h"
#include "KernelTimer.h"

namespace fp8rt::cuda {

class Launcher {
public:
  explicit Launcher(std::shared_ptr<const DeviceProgram> program);
  Launcher(const Launcher &) = delete;
  Launcher &operator=(const Launcher &) = delete;
  /// Work that was not waited for may still use memory of the device.
  ~Launcher();

  const fp8rt_device &functions() const { return table; }

  /// The stream of the following calls: the device's own, or another one of its context.
  void useStream(CUstream with) { stream = with; }
  CUstream currentStream() const { return stream; }
  /// Measure the kernels of the following calls; null measures none.
  void measureWith(KernelTimer *with) { timer = with; }
  /// Returns whether the environment asks to wait after each kernel, by FP8RT_SYNC=1.
  static bool isToWaitForEach();
  /// Returns whether the environment asks not to wait for checks, by FP8RT_CHECKS=later.
  static bool isToCheckLater();
  /// Wait after each kernel, so that an error names the one that failed; at first as the environment says.
  void waitForEach(bool wait) { waitsForEach = wait; }
  /// The following calls are captured: calls that cannot be part of a graph are refused.
  void setCapturing(bool capturing) { isCapturing = capturing; }

  /// Ends a call that is not waited for, unless it has allocated memory: memory that it released may be
  /// used again by work of another stream.
  void leave();
  /// Waits for the work that was enqueued; throws an Error that names the kernel that failed, if that can
  /// be told.
  void wait();
  /// After a step that failed: waits without an error, and releases what compiled code has not.
  void abandon() noexcept;

private:
  struct Functions; // as C calls them

  void launch(uint32_t kernel, int32_t line, const uint64_t (&grid)[3], void **parameters);
  CUresult launchChecked(const fp8rt_device_kernel &kernel, CUfunction function, const uint64_t (&grid)[3],
                         void **parameters) const;
  void copy(void *target, const void *source, uint64_t bytes);
  void fill(void *target, uint8_t value, uint64_t bytes);
  void read(void *host, const void *source, uint64_t bytes);
  void check(const void *flag, const char *message);
  void *allocate(uint64_t bytes);
  void release(void *memory);
  void encodeMap(void *map, uint32_t type, uint32_t rank, void *base, const uint64_t *sizes,
                 const uint64_t *strides, const uint32_t *box, uint32_t swizzle) const;
  void refuseCapture(const char *what) const;
  bool isInCapture() const;
  std::string describeLateFailure(CUresult code) const;

  std::shared_ptr<const DeviceProgram> program;
  const Device &device;
  fp8rt_device table = {};
  CUstream stream;
  KernelTimer *timer = nullptr;
  bool waitsForEach = isToWaitForEach(), checksLater = isToCheckLater(), isCapturing = false;
  std::string failure;           // of the last function that failed
  std::vector<Buffer> allocated; // by the call of compiled code
  bool hasAllocated = false;     // since the last wait

  /// The launches that have not been waited for: how many, and the last of them.
  uint64_t inFlight = 0;
  uint32_t lastKernel = 0;
  int32_t lastLine = -1;
};

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_LAUNCHER_H
