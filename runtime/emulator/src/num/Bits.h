// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats as the bits that they are made of, and bits as floats.

#ifndef FP8EMU_NUM_BITS_H
#define FP8EMU_NUM_BITS_H

#include <cstdint>

namespace fp8emu::num {

constexpr uint32_t bitsOf(float value) { return __builtin_bit_cast(uint32_t, value); }
constexpr uint64_t bitsOf(double value) { return __builtin_bit_cast(uint64_t, value); }
constexpr float floatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }
constexpr double doubleOf(uint64_t bits) { return __builtin_bit_cast(double, bits); }

constexpr bool isNaN(float value) { return value != value; }
constexpr bool isNaN(double value) { return value != value; }

/// Neither infinite nor NaN.
constexpr bool isFinite(float value) { return (bitsOf(value) & 0x7f800000U) != 0x7f800000U; }
constexpr bool isFinite(double value) { return ((bitsOf(value) >> 52) & 0x7ffU) != 0x7ffU; }

} // namespace fp8emu::num

#endif // FP8EMU_NUM_BITS_H
