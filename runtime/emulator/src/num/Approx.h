// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The approximate instructions (PTX ISA 9.7.3.8 to 9.7.3.22, 9.7.4.9, 9.7.4.10). PTX
// bounds their errors and fixes their results at special values; hardware's bits
// within the bounds are not published. These here are the correctly rounded results
// (to within double rounding), but where PTX tells how a value is computed it is
// computed so. `ftz` flushes subnormal operands and results to zeros of their sign.

#ifndef FP8EMU_NUM_APPROX_H
#define FP8EMU_NUM_APPROX_H

#include "Arith.h"
#include "Half.h"

#include <cmath>
#include <cstdint>

namespace fp8emu::num {

/// At most 1 ulp off; subnormal results unless `ftz`.
inline float rcpApprox(float a, bool ftz) { return rcp(a, Rounding::NearestEven, ftz); }

/// Relative error at most 2^-23; NaN below 0, -0 for -0.
inline float sqrtApprox(float a, bool ftz) { return sqrt(a, Rounding::NearestEven, ftz); }

/// Relative error at most 2^-22.9; infinity of the sign for zeros, NaN below 0.
inline float rsqrtApprox(float a, bool ftz) {
  a = flushIf(ftz, a);
  return flushIf(ftz, canonical(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a)))));
}

/// Absolute error at most 2^-20.5 in [-2 pi, 2 pi] and 2^-14.7 in [-100 pi, 100 pi];
/// NaN for infinities.
inline float sinApprox(float a, bool ftz) {
  a = flushIf(ftz, a);
  return flushIf(ftz, canonical(static_cast<float>(std::sin(static_cast<double>(a)))));
}
inline float cosApprox(float a, bool ftz) {
  a = flushIf(ftz, a);
  return flushIf(ftz, canonical(static_cast<float>(std::cos(static_cast<double>(a)))));
}

/// Absolute error at most 2^-22 in (0.5, 2), relative elsewhere; -infinity for zeros,
/// NaN below 0.
inline float lg2Approx(float a, bool ftz) {
  a = flushIf(ftz, a);
  return flushIf(ftz, canonical(static_cast<float>(std::log2(static_cast<double>(a)))));
}

/// At most 2 ulp off; 1 for zeros.
inline float ex2Approx(float a, bool ftz) {
  a = flushIf(ftz, a);
  return flushIf(ftz, canonical(static_cast<float>(std::exp2(static_cast<double>(a)))));
}

/// Relative error at most 2^-11; subnormal numbers pass through.
inline float tanhApprox(float a) { return canonical(static_cast<float>(std::tanh(static_cast<double>(a)))); }

/// "Computed as a * (1/b)" (ISA 9.7.3.8): at most 2 ulp off for |b| in [2^-126, 2^126].
/// For larger finite |b| a zero of the quotient's sign, NaN if a is infinite.
inline float divApprox(float a, float b, bool ftz) {
  a = flushIf(ftz, a);
  b = flushIf(ftz, b);
  float reciprocal = canonical(1.0f / b);
  if (num::abs(b) > 0x1p126f)
    reciprocal = floatOf(bitsOf(b) & 0x80000000U);
  if (isNaN(b))
    reciprocal = b;
  return flushIf(ftz, canonical(a * reciprocal));
}

/// At most 2 ulp off over the full range.
inline float divFull(float a, float b, bool ftz) { return div(a, b, Rounding::NearestEven, ftz); }

/// rsqrt.approx.f64, whose error PTX does not bound.
double rsqrtApprox(double a);

/// rcp.approx.ftz.f64 (ISA 9.7.3.14): of the upper 32 bits, to the upper 32 bits; the
/// lower ones are 0. Subnormal operands and results are zeros, NaN 0x7fffffff00000000.
double rcpApproxFtz(double a);

/// rsqrt.approx.ftz.f64 (ISA 9.7.3.17), likewise.
double rsqrtApproxFtz(double a);

/// Absolute error at most 2^-10.987 in f16, 2^-8 in bf16.
template <const Format &format>
inline uint16_t tanhApprox(uint16_t a) {
  return fromDouble<format>(std::tanh(static_cast<double>(toFloat<format>(a))));
}

/// Relative error at most 2^-9.9 in f16, 2^-7 in bf16, which has no form without ftz.
template <const Format &format>
inline uint16_t ex2Approx(uint16_t a, bool ftz) {
  if (ftz)
    a = flushHalf<format>(a);
  uint16_t result = fromDouble<format>(std::exp2(static_cast<double>(toFloat<format>(a))));
  return ftz ? flushHalf<format>(result) : result;
}

} // namespace fp8emu::num

#endif // FP8EMU_NUM_APPROX_H
