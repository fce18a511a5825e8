// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device's memory.

#ifndef FP8RT_CUDA_DEVICEMEMORY_H
#define FP8RT_CUDA_DEVICEMEMORY_H

#include "../core/Memory.h"
#include "Device.h"

#include <map>
#include <mutex>

namespace fp8rt::cuda {

/// All work is given to the device's stream.
///
/// Memory that was released is kept for the next allocation of a like size, for a driver takes longer to
/// allocate than a kernel to run. It may be used again at once, as all users wait for their work before they
/// release it; those that cannot, for their work is in a stream of the caller, say so by expectUses().
class DeviceMemory : public Memory {
public:
  /// A driver aligns to this at least.
  static constexpr uint64_t kAlignment = 256;

  /// Without `keepsReleased`, released memory is given back to the driver at once, and the emulator
  /// finds uses of it.
  DeviceMemory(std::shared_ptr<const Device> device, bool keepsReleased);
  ~DeviceMemory() override;

  DLDevice place() const override { return {kDLCUDA, device->ordinal()}; }

  void *allocate(uint64_t bytes, uint64_t alignment) override;
  void release(void *data) noexcept override;
  void write(void *target, const void *host, uint64_t bytes) override;
  void read(void *host, const void *source, uint64_t bytes) override;
  void copy(void *target, const void *source, uint64_t bytes) override;
  void zero(void *target, uint64_t bytes) override;

  /// Memory released from now on may still be in use: the device is waited for before the memory is used
  /// again.
  void expectUses() noexcept;

private:
  void *takeReleased(uint64_t bytes);
  void giveBack(void *data) noexcept;
  void trim() noexcept;
  [[noreturn]] void failToAllocate(CUresult code, uint64_t bytes) const;

  std::shared_ptr<const Device> device;
  bool keeps, hasUses = false;
  std::mutex mutex;
  std::map<void *, uint64_t> inUse;         // their sizes
  std::multimap<uint64_t, void *> released; // by size
};

/// An address as the driver has it, and as tensors have it.
inline CUdeviceptr toAddress(const void *data) { return reinterpret_cast<uintptr_t>(data); }
inline void *toPointer(CUdeviceptr address) { return reinterpret_cast<void *>(uintptr_t(address)); }

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_DEVICEMEMORY_H
