// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic that is rare enough not to be inlined: f64 in directed rounding, by
// switching the host's (this file is compiled with -frounding-math), min, max and
// testp.

#include "Arith.h"

#include <cfenv>

using namespace fp8emu;
using namespace fp8emu::num;

namespace {

int hostRounding(Rounding rounding) {
  switch (rounding) {
  case Rounding::Zero:
    return FE_TOWARDZERO;
  case Rounding::Down:
    return FE_DOWNWARD;
  case Rounding::Up:
    return FE_UPWARD;
  default:
    return FE_TONEAREST;
  }
}

/// The host rounds as told while this lives.
class HostRounding {
public:
  explicit HostRounding(Rounding rounding) : before(std::fegetround()) {
    std::fesetround(hostRounding(rounding));
  }
  ~HostRounding() { std::fesetround(before); }
  HostRounding(const HostRounding &) = delete;
  HostRounding &operator=(const HostRounding &) = delete;

private:
  int before;
};

double apply(detail::Operation operation, double a, double b, double c) {
  switch (operation) {
  case detail::Operation::Add:
    return a + b;
  case detail::Operation::Mul:
    return a * b;
  case detail::Operation::Fma:
    return std::fma(a, b, c);
  case detail::Operation::Div:
    return a / b;
  case detail::Operation::Sqrt:
    return std::sqrt(a);
  }
  return 0;
}

template <bool isMax>
double minMax(double a, double b) {
  if (isNaN(a) || isNaN(b))
    return isNaN(a) ? b : a;
  if (a == b)
    return doubleOf(isMax ? bitsOf(a) & bitsOf(b) : bitsOf(a) | bitsOf(b));
  return (isMax ? a > b : a < b) ? a : b;
}

template <typename Float>
bool hasProperty(Property property, Float value) {
  bool subnormal = value != 0 && num::abs(value) < (sizeof(Float) == 4 ? 0x1p-126 : 0x1p-1022);
  switch (property) {
  case Property::Finite:
    return isFinite(value);
  case Property::Infinite:
    return !isFinite(value) && !isNaN(value);
  case Property::Number:
    return !isNaN(value);
  case Property::NotANumber:
    return isNaN(value);
  case Property::Normal:
    return isFinite(value) && !subnormal;
  case Property::Subnormal:
    return subnormal;
  }
  return false;
}

} // namespace

double detail::directed(Operation operation, double a, double b, double c, Rounding rounding) {
  HostRounding scope(rounding);
  // Kept from being moved out of the scope.
  volatile double x = a, y = b, z = c;
  volatile double result = apply(operation, x, y, z);
  return result;
}

double num::min(double a, double b) { return minMax<false>(a, b); }
double num::max(double a, double b) { return minMax<true>(a, b); }

bool num::testp(Property property, float value) { return hasProperty(property, value); }
bool num::testp(Property property, double value) { return hasProperty(property, value); }
