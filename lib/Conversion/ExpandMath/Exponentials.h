// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Powers of 2 and e for other expansions. Private to the library.

#ifndef FP8_LIB_CONVERSION_EXPANDMATH_EXPONENTIALS_H
#define FP8_LIB_CONVERSION_EXPANDMATH_EXPONENTIALS_H

#include "fp8/Conversion/ExpandMath/Expr.h"

namespace fp8 {

/// Returns 2^(high + low); `low` is below the last digit of `high`, or the number 0.
Expr buildExp2(Expr high, Expr low = 0.0);

/// Returns value * e^(high + low) for a `value` in [2^-10, 2^10], with high + low in [-120, 80] and
/// `low` below the last digit of `high`.
Expr multiplyByExp(Expr value, Expr high, Expr low);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_EXPANDMATH_EXPONENTIALS_H
