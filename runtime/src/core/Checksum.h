// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checksum of state files: CRC-32C, which notices every flipped bit and every damaged run of up to 32
// bits, as fast as memory is read where the processor has an instruction for it.

#ifndef FP8RT_CORE_CHECKSUM_H
#define FP8RT_CORE_CHECKSUM_H

#include <cstdint>
#include <string>

namespace fp8rt {

/// The CRC-32C of everything added so far.
class Checksum {
public:
  void add(const void *data, uint64_t bytes);
  /// Returns eight hexadecimal digits.
  std::string text() const;

private:
  uint32_t state = 0xffffffff;
};

/// The same without the processor's instruction, for tests. `state` is of the bytes before.
uint32_t crc32cByTable(uint32_t state, const void *data, uint64_t bytes);

} // namespace fp8rt

#endif // FP8RT_CORE_CHECKSUM_H
