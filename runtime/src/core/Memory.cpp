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
#include <sys/mman.h>

using namespace fp8rt;

/// Large buffers are asked to lie in pages of this size: products read so many ordinary pages that looking
/// them up takes up to 7% of their time.
static constexpr uint64_t kHugePage = 1 << 21;

namespace {

class HostMemory : public Memory {
public:
  DLDevice place() const override { return {kDLCPU, 0}; }

  void *allocate(uint64_t bytes, uint64_t alignment) override {
    bool isLarge = bytes >= 2 * kHugePage;
    void *memory = nullptr;
    if (posix_memalign(&memory, std::max<uint64_t>(alignment, isLarge ? kHugePage : 64), bytes))
      throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (isLarge) // a system without such pages refuses, and the memory is as good
      madvise(memory, bytes, MADV_HUGEPAGE);
#endif
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
