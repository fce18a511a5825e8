// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparing the runtime's declarations of a function with those of the header that it stands for.

#ifndef FP8RT_TEST_DECLARATIONS_H
#define FP8RT_TEST_DECLARATIONS_H

#include <type_traits>

namespace fp8rt_test {

/// Whether a call through our type passes the same registers: integers of the same size, pointers for
/// pointers, structs of the same size.
template <typename Ours, typename Real>
constexpr bool isPassedAlike() {
  return std::is_pointer_v<Ours> == std::is_pointer_v<Real> &&
         std::is_class_v<Ours> == std::is_class_v<Real> && sizeof(Ours) == sizeof(Real);
}

template <typename Ours, typename Real>
struct AreAlike;
template <typename OurResult, typename... Ours, typename RealResult, typename... Reals>
struct AreAlike<OurResult (*)(Ours...), RealResult (*)(Reals...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(Ours) == sizeof...(Reals))
      return isPassedAlike<OurResult, RealResult>() && (isPassedAlike<Ours, Reals>() && ...);
    return false;
  }
  static constexpr bool kAre = compare();
};

} // namespace fp8rt_test

#endif // FP8RT_TEST_DECLARATIONS_H
