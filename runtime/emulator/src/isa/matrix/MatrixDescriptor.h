// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma's matrices in shared memory (PTX ISA 9.7.15.5.1.2): where the 16 bytes at a row
// and a column lie. The canonical layouts of 9.7.15.5.1.2.1.3, in units of 16 bytes:
//
//   K-major           row r, 16 bytes c along K: r % 8 rows of the swizzle's width, then
//                     r / 8 strides; without a swizzle c leading offsets of rows of 16.
//   MN-major          16 bytes c along M or N, element k: rows are those of k, of the
//                     swizzle's width; k / 8 strides, c / width leading offsets. Without
//                     a swizzle the two offsets change their roles.

#ifndef FP8EMU_ISA_MATRIX_MATRIXDESCRIPTOR_H
#define FP8EMU_ISA_MATRIX_MATRIXDESCRIPTOR_H

#include <cstdint>

namespace fp8emu {

/// The 64-bit matrix descriptor (9.7.15.5.1.2.2).
class MatrixDescriptor {
public:
  explicit MatrixDescriptor(uint64_t bits)
      : start(field(bits, 0)), leading(field(bits, 16)), stride(field(bits, 32)),
        phase(uint32_t(bits >> 49 & 7)) {
    // 0: none, 1: 128 bytes, 2: 64, 3: 32.
    static const uint32_t widths[] = {16, 128, 64, 32};
    width = widths[bits >> 62];
  }

  uint32_t alongK(uint32_t row, uint32_t chunk) const {
    uint32_t step = width == 16 ? leading : 16;
    return swizzle(start + row % 8 * width + row / 8 * stride + chunk * step);
  }
  uint32_t acrossK(uint32_t chunk, uint32_t k) const {
    if (width == 16)
      return start + chunk * stride + k % 8 * 16 + k / 8 * leading;
    uint32_t perAtom = width / 16;
    return swizzle(start + chunk % perAtom * 16 + chunk / perAtom * leading + k % 8 * width + k / 8 * stride);
  }

private:
  static uint32_t field(uint64_t bits, unsigned from) { return uint32_t(bits >> from & 0x3FFF) << 4; }

  /// The number of the 16 bytes in their row is xor'ed with that of the row of 128 bytes,
  /// as counted from where the pattern begins: with base offset 0 a multiple of 8 rows.
  uint32_t swizzle(uint32_t address) const {
    uint32_t row = (address >> 7) - phase;
    return address ^ (row & (width / 16 - 1)) << 4;
  }

  uint32_t start, leading, stride, phase, width;
};

} // namespace fp8emu

#endif // FP8EMU_ISA_MATRIX_MATRIXDESCRIPTOR_H
