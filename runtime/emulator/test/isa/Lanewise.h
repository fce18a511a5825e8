// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tests of instructions that do the same in every lane: one run on many values,
// and what numbers of small formats mean, written down once more and differently.

#ifndef FP8EMU_TEST_LANEWISE_H
#define FP8EMU_TEST_LANEWISE_H

#include "Harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace fp8emu::test {

inline float asFloat(uint32_t bits) {
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}
inline uint32_t asBits(float value) {
  uint32_t out;
  std::memcpy(&out, &value, 4);
  return out;
}
inline double asDouble(uint64_t bits) {
  double out;
  std::memcpy(&out, &bits, 8);
  return out;
}
inline uint64_t asBits(double value) {
  uint64_t out;
  std::memcpy(&out, &value, 8);
  return out;
}

template <class T>
std::string registerOf(unsigned i) {
  return (sizeof(T) == 2 ? "%rs" : sizeof(T) == 4 ? "%r" : "%rd") + std::to_string(10 + i);
}

/// Runs `text`, in which D is the result's register and A, B, C, E those of the inputs,
/// for each index of the inputs.
template <class R, class... S>
std::vector<R> lanewise(std::string text, std::vector<S>... inputs) {
  size_t count = std::max({inputs.size()...});
  uint32_t blocks = uint32_t((count + 127) / 128);
  (inputs.resize(128 * blocks, inputs[0]), ...);
  std::string body;
  unsigned n = 0;
  std::map<char, std::string> names{{'D', registerOf<R>(9)}};
  auto load = [&](auto value) {
    using T = decltype(value);
    std::string bytes = std::to_string(sizeof(T)), in = "%in" + std::to_string(n);
    body += "mad.wide.u32 %rd0, %i, " + bytes + ", " + in + ";\nld.global.b" + std::to_string(8 * sizeof(T)) +
            " " + registerOf<T>(n) + ", [%rd0];\n";
    names["ABCE"[n]] = registerOf<T>(n);
    ++n;
  };
  (load(S()), ...);
  for (char c : text) {
    auto found = names.find(c);
    body += found == names.end() ? std::string(1, c) : found->second;
  }
  body += "\nmad.wide.u32 %rd0, %i, " + std::to_string(sizeof(R)) + ", %out;\nst.global.b" +
          std::to_string(8 * sizeof(R)) + " [%rd0], " + registerOf<R>(9) + ";\n";
  TestMachine machine(kernelText(body, n, "sm_100a"));
  uint64_t out = machine.allocate(128 * blocks * sizeof(R));
  LaunchConfig config;
  config.block = {128, 1, 1};
  config.grid = {blocks, 1, 1};
  auto fault = machine.launch("k", config, out, machine.upload(inputs)...);
  EXPECT_FALSE(fault) << fault->text();
  auto values = machine.download<R>(out, 128 * blocks);
  values.resize(count);
  return values;
}

/// All finite values of a small format by code, and rounding among them.
class Grid {
public:
  enum Top { InfinityAndNaN, OneNaN, Finite };
  Grid(int exponentBits, int mantissaBits, int bias, Top top) : signShift(exponentBits + mantissaBits) {
    int codes = 1 << signShift, special = top == InfinityAndNaN ? 1 << mantissaBits : top == OneNaN ? 1 : 0;
    for (int code = 0; code < codes - special; ++code) {
      int exponent = code >> mantissaBits, mantissa = code & ((1 << mantissaBits) - 1);
      values.push_back(
          exponent ? std::ldexp(double(mantissa + (1 << mantissaBits)), exponent - bias - mantissaBits)
                   : std::ldexp(double(mantissa), 1 - bias - mantissaBits));
    }
  }

  double max() const { return values.back(); }
  /// Of the code with its sign; the code must be finite.
  double operator[](uint32_t code) const {
    double value = values[code & ((1U << signShift) - 1)];
    return code >> signShift & 1 ? -value : value;
  }
  bool isFinite(uint32_t code) const { return (code & ((1U << signShift) - 1)) < values.size(); }
  size_t size() const { return values.size(); }
  uint32_t sign() const { return 1U << signShift; }

  /// The code next to a finite value: 'n' to nearest even, 'a' to nearest away, 'z', 'm',
  /// 'p'; size() for what is beyond the largest, as if the format had more exponents.
  template <class Real>
  uint32_t round(Real value, char rounding) const {
    bool negative = value < 0;
    Real size = negative ? -value : value;
    uint32_t low = uint32_t(std::upper_bound(values.begin(), values.end(), size,
                                             [](Real a, double b) { return a < Real(b); }) -
                            values.begin()) -
                   1;
    Real below = values[low],
         above = low + 1 < values.size() ? values[low + 1] : 2 * values[low] - values[low - 1];
    Real first = size - below, second = above - size;
    bool up = false;
    if (first != 0)
      up = rounding == 'n'   ? first > second || (first == second && low % 2)
           : rounding == 'a' ? first >= second
           : rounding == 'm' ? negative
           : rounding == 'p' ? !negative
                             : false;
    return (low + up) | (negative ? sign() : 0);
  }

private:
  int signShift;
  std::vector<double> values;
};

inline const Grid kF16(5, 10, 15, Grid::InfinityAndNaN);
inline const Grid kBF16(8, 7, 127, Grid::InfinityAndNaN);
inline const Grid kE4M3(4, 3, 7, Grid::OneNaN);
inline const Grid kE5M2(5, 2, 15, Grid::InfinityAndNaN);
inline const Grid kE2M3(2, 3, 1, Grid::Finite);
inline const Grid kE3M2(3, 2, 3, Grid::Finite);
inline const Grid kE2M1(2, 1, 1, Grid::Finite);

/// Of floats: what instructions are wrong on, if on anything.
inline std::vector<float> edgeFloats() {
  std::vector<float> values;
  for (uint32_t bits :
       {0x00000000U, 0x00000001U, 0x007fffffU, 0x00800000U, 0x00800001U, 0x33000000U, 0x33800001U,
        0x38ffffffU, 0x3dcccccdU, 0x3effffffU, 0x3f000000U, 0x3f7fffffU, 0x3f800000U, 0x3f800001U,
        0x3fc00000U, 0x40200000U, 0x40490fdbU, 0x43e00000U, 0x477fefffU, 0x477ff000U, 0x4f000000U,
        0x5f000000U, 0x7f7f7fffU, 0x7f7fffffU, 0x7f800000U, 0x7fc00000U}) {
    values.push_back(asFloat(bits));
    values.push_back(asFloat(bits | 0x80000000U));
  }
  return values;
}

/// All pairs of the values.
template <class T>
void pairs(const std::vector<T> &values, std::vector<T> &a, std::vector<T> &b) {
  for (T first : values)
    for (T second : values) {
      a.push_back(first);
      b.push_back(second);
    }
}

/// The messages for the instructions, one each, in order; empty where one is known.
/// Registers %b (8 bits), %h, %r, %d, %f, %e (f64), %p are there.
std::vector<std::string> refusals(const std::vector<std::string> &instructions);

} // namespace fp8emu::test

#endif // FP8EMU_TEST_LANEWISE_H
