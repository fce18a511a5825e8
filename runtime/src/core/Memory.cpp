// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's memory.

#include "Memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

using namespace fp8rt;

namespace {

class HostMemory : public Memory {
public:
  DLDevice place() const override { return {kDLCPU, 0}; }

  void *allocate(uint64_t bytes, uint64_t alignment) override {
    void *memory = nullptr;
    if (posix_memalign(&memory, std::max<uint64_t>(alignment, 64), bytes))
      throw std::bad_alloc();
    return memory;
  }
  void release(void *data) noexcept override { std::free(data); }

  void write(void *target, const void *host, uint64_t bytes) override { std::memcpy(target, host, bytes); }
  void read(void *host, const void *source, uint64_t bytes) override { std::memcpy(host, source, bytes); }
  void copy(void *target, const void *source, uint64_t bytes) override { std::memcpy(target, source, bytes); }
  void zero(void *target, uint64_t bytes) override { std::memset(target, 0, bytes); }
};

} // namespace

std::shared_ptr<Memory> fp8rt::hostMemory() {
  static const std::shared_ptr<Memory> memory = std::make_shared<HostMemory>(); // has no state
  return memory;
}

Buffer fp8rt::allocateBuffer(const std::shared_ptr<Memory> &memory, uint64_t bytes, uint64_t alignment) {
  return Buffer(bytes ? memory->allocate(bytes, alignment) : nullptr, Release{memory});
}
