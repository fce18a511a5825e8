// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the tensors of a program lie: the host's memory, or a device's. Sessions and states use
// this interface and know no device.

#ifndef FP8RT_CORE_MEMORY_H
#define FP8RT_CORE_MEMORY_H

#include "fp8rt/dlpack.h"

#include <cstdint>
#include <memory>

namespace fp8rt {

/// Memory of one kind. All functions but release throw Errors; addresses of data are of this memory
/// unless they are said to be the host's. Functions that move data return when it is moved.
class Memory {
public:
  virtual ~Memory() = default;

  /// The device in tensors' descriptions.
  virtual DLDevice place() const = 0;

  /// Returns uninitialised memory for `bytes` > 0, at least 64-byte aligned.
  virtual void *allocate(uint64_t bytes, uint64_t alignment) = 0;
  virtual void release(void *data) noexcept = 0;

  virtual void write(void *target, const void *host, uint64_t bytes) = 0;
  virtual void read(void *host, const void *source, uint64_t bytes) = 0;
  virtual void copy(void *target, const void *source, uint64_t bytes) = 0;
  virtual void zero(void *target, uint64_t bytes) = 0;

  bool isHost() const { return place().device_type == kDLCPU; }
};

/// Returns the host's memory.
std::shared_ptr<Memory> hostMemory();

/// Gives memory back to where it came from.
struct Release {
  std::shared_ptr<Memory> memory;
  void operator()(void *data) const { memory->release(data); }
};

/// Owns memory of one kind.
using Buffer = std::unique_ptr<void, Release>;

/// Allocates uninitialised memory; null for 0 bytes.
Buffer allocateBuffer(const std::shared_ptr<Memory> &memory, uint64_t bytes, uint64_t alignment = 64);

} // namespace fp8rt

#endif // FP8RT_CORE_MEMORY_H
