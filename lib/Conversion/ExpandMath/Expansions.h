// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expansions: each returns its function of f32 (a scalar or a vector) as straight-line code of
// correctly rounded operations, with an error of at most 4 units in the last place. README.md has
// the measured errors. Private to the library.

#ifndef FP8_LIB_CONVERSION_EXPANDMATH_EXPANSIONS_H
#define FP8_LIB_CONVERSION_EXPANDMATH_EXPANSIONS_H

#include "fp8/Conversion/ExpandMath/Expr.h"
#include <utility>

namespace fp8 {

// Exponentials.cpp
Expr expandExp(Expr x);
Expr expandExp2(Expr x);
Expr expandExpM1(Expr x);
Expr expandTanh(Expr x);
Expr expandSinh(Expr x);
Expr expandCosh(Expr x);

// Logarithms.cpp
Expr expandLog(Expr x);
Expr expandLog2(Expr x);
Expr expandLog10(Expr x);
Expr expandLog1p(Expr x);
Expr expandAsinh(Expr x);
Expr expandAcosh(Expr x);
Expr expandAtanh(Expr x);

// Powers.cpp
Expr expandPowF(Expr x, Expr y);
/// `n` is an i32.
Expr expandFPowI(Expr x, Expr n);
Expr expandCbrt(Expr x);
Expr expandRsqrt(Expr x);

// Remainders.cpp
Expr expandRemF(Expr x, Expr y);
/// Of signless integers of the same width.
Expr expandIPowI(Expr x, Expr n);

// Trigonometry.cpp
Expr expandSin(Expr x);
Expr expandCos(Expr x);
Expr expandTan(Expr x);
std::pair<Expr, Expr> expandSincos(Expr x);

// InverseTrigonometry.cpp
Expr expandAsin(Expr x);
Expr expandAcos(Expr x);
Expr expandAtan(Expr x);
Expr expandAtan2(Expr y, Expr x);

// ErrorFunctions.cpp
Expr expandErf(Expr x);
Expr expandErfc(Expr x);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_EXPANDMATH_EXPANSIONS_H
