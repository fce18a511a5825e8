// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The error function and its complement.

#include "Expansions.h"
#include "Exponentials.h"

using namespace fp8;

/// Returns erf(a) for a in [0, 1].
static Expr buildSmallErf(Expr a) {
  // erf(a) / a - 1, in a^2: minimax, relative to erf 2^-29.4.
  Expr p = polynomial(a * a, {1.2837917e-01f, -3.7612626e-01f, 1.1283579e-01f, -2.6853347e-02f, 5.187162e-03f,
                              -7.997853e-04f, 7.806904e-05f});
  return fma(a, p, a);
}

Expr fp8::expandErf(Expr x) {
  Expr a = atMost(abs(x), 4.0); // erf is 1 from 3.92 on
  // log2(1 - erf(a)) / a on [1, 3.95]: minimax, relative to erf 2^-28.6.
  Expr p = polynomial(
      a, {-1.6280526e+00f, -9.173108e-01f, -1.5165076e-01f, 3.2891396e-02f, -4.5978534e-03f, 3.039027e-04f});
  Expr large = 1.0 - buildExp2(a * p);
  return copySign(select(a > 1.0, large, buildSmallErf(a)), x);
}

/// Returns erfc(a) for a in [0, 10.5].
static Expr buildErfc(Expr a) {
  // erfc(a) e^(a^2) (1 + 2a) on [0, 10.1], in (a - 2) / (a + 2): minimax, relative error 2^-25.9.
  Expr t = (a - 2.0) / (a + 2.0);
  Expr p = polynomial(t, {1.2769784e+00f, -9.2763916e-02f, -1.6603096e-01f, 1.6405459e-01f, -5.4207508e-02f,
                          -8.057903e-03f, 8.6404625e-03f, 1.3140497e-03f, -1.2383162e-03f, -4.047492e-04f});
  // Times e^(-a^2), with the digits of a^2 that one float lacks.
  Expr square = a * a, squareLow = fma(a, a, -square);
  return multiplyByExp(p / fma(a, 2.0, 1.0), -square, -squareLow);
}

Expr fp8::expandErfc(Expr x) {
  Expr a = atMost(abs(x), 10.5); // erfc is 0 from 10.06 on
  Expr isSmall = a < 0.5;
  Expr ofMagnitude = select(isSmall, 1.0 - buildSmallErf(a), buildErfc(a));
  return select(x < 0.0, 2.0 - ofMagnitude, ofMagnitude);
}
