// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exact sum, read out.

#include "ExactSum.h"

using namespace fp8emu;
using namespace fp8emu::num;

double ExactSum::roundedToOdd() const {
  // Carried out into 32 bits each; the last carry is the sign.
  std::array<uint32_t, kLimbs> digits;
  int64_t carry = 0;
  for (unsigned i = 0; i < kLimbs; ++i) {
    carry += limbs[i];
    digits[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  bool negative = carry < 0;
  if (negative) { // its two's complement
    uint64_t borrow = 1;
    for (uint32_t &digit : digits) {
      borrow += static_cast<uint32_t>(~digit);
      digit = static_cast<uint32_t>(borrow);
      borrow >>= 32;
    }
  }
  unsigned top = kLimbs;
  while (top > 0 && digits[top - 1] == 0)
    --top;
  if (top == 0)
    return 0;
  // The topmost 64 bits from the leading one on, and whether any are below.
  auto digit = [&](unsigned below) { return top > below ? uint64_t(digits[top - 1 - below]) : 0; };
  unsigned lead = static_cast<unsigned>(__builtin_clz(digits[top - 1]));
  uint64_t high = digit(0) << 32 | digit(1);
  uint64_t low = digit(2) << 32;
  uint64_t bits = lead == 0 ? high : high << lead | low >> (64 - lead);
  bool rest = (low << lead) != 0;
  for (unsigned i = 3; i < top; ++i)
    rest |= digit(i) != 0;
  uint64_t significand = bits >> 11;
  significand |= (bits & 0x7ffU) != 0 || rest;
  int lowest = static_cast<int>(top) * 32 - static_cast<int>(lead) - 53 - kPoint;
  double value = static_cast<double>(significand) * doubleOf(static_cast<uint64_t>(lowest + 1023) << 52);
  return negative ? -value : value;
}
