// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices in shared memory as tensor cores read them (PTX ISA 9.7.16.3 to 9.7.16.4.1,
// 9.7.16.10.6): where a descriptor says that their parts of 16 bytes lie.

#ifndef FP8EMU_MEMORY_SHAREDMATRIX_H
#define FP8EMU_MEMORY_SHAREDMATRIX_H

#include <cstdint>

namespace fp8emu {

/// How the 16-byte parts of a row of so many bytes change places.
enum class MatrixSwizzle : uint8_t { None, Bytes32, Bytes64, Bytes128, Bytes128By32 };

/// Bytes of a row of the pattern; 16 without one.
constexpr unsigned swizzleBytes(MatrixSwizzle swizzle) {
  return swizzle == MatrixSwizzle::None      ? 16
         : swizzle == MatrixSwizzle::Bytes32 ? 32
         : swizzle == MatrixSwizzle::Bytes64 ? 64
                                             : 128;
}

/// Where the byte of an address lies: upper bits of the address are added, without
/// carry, to lower ones. `phase` is an address in the row of the pattern, the address
/// itself where patterns begin at multiples of their size.
inline uint32_t swizzled(MatrixSwizzle swizzle, uint32_t address, uint32_t phase) {
  switch (swizzle) {
  case MatrixSwizzle::None:
    return address;
  case MatrixSwizzle::Bytes32:
    return address ^ (phase >> 3 & 0x10);
  case MatrixSwizzle::Bytes64:
    return address ^ (phase >> 3 & 0x30);
  case MatrixSwizzle::Bytes128:
    return address ^ (phase >> 3 & 0x70);
  case MatrixSwizzle::Bytes128By32:
    return address ^ (phase >> 2 & 0x60);
  }
  return address;
}

struct SharedMatrix {
  /// In bytes.
  uint32_t start = 0, leading = 0, stride = 0;
  /// Where patterns begin, modulo 1024, in units of 128 bytes.
  uint32_t baseOffset = 0;
  MatrixSwizzle swizzle = MatrixSwizzle::None;

  /// Of tcgen05 (PTX ISA 9.7.16.4.1). Returns the mistake of the descriptor in words, null for none.
  const char *decodeTensor(uint64_t descriptor);

  /// The address of 16 bytes: number `along` in the direction in which elements are
  /// contiguous, at `across` in the other one. Contiguous is K, or M or N where
  /// `transposed`.
  uint32_t part(bool transposed, unsigned across, unsigned along) const;
};

} // namespace fp8emu

#endif // FP8EMU_MEMORY_SHAREDMATRIX_H
