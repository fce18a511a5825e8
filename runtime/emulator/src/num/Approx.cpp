// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The approximations in f64.

#include "Approx.h"

using namespace fp8emu;
using namespace fp8emu::num;

namespace {

/// The upper half of a double, flushed.
double upperHalf(double value) {
  if (isNaN(value))
    return doubleOf(uint64_t(0x7fffffff) << 32);
  uint64_t upper = bitsOf(value) & 0xffffffff00000000U;
  bool subnormal = (upper >> 52 & 0x7ffU) == 0;
  return doubleOf(subnormal ? upper & (uint64_t(1) << 63) : upper);
}

} // namespace

double num::rsqrtApprox(double a) {
  // In the 64 bits of an x87 mantissa where there is one.
  return static_cast<double>(1.0L / std::sqrt(static_cast<long double>(a)));
}

double num::rcpApproxFtz(double a) { return upperHalf(1.0 / upperHalf(a)); }

double num::rsqrtApproxFtz(double a) { return upperHalf(1.0 / std::sqrt(upperHalf(a))); }
