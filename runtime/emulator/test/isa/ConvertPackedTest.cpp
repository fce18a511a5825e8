// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt of several numbers at once, against a list of all values of each format.

#include "Lanewise.h"

#include <random>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

struct Narrow {
  const char *name;
  const Grid &grid;
  /// Bits of a number and to the next one, and what NaN becomes.
  unsigned width, slot;
  uint32_t nan;
};
const Narrow kNarrow[] = {{"e4m3", kE4M3, 8, 8, 0x7f},
                          {"e5m2", kE5M2, 8, 8, 0x7f},
                          {"e2m3", kE2M3, 6, 8, 0x1f},
                          {"e3m2", kE3M2, 6, 8, 0x1f},
                          {"e2m1", kE2M1, 4, 4, 7}};

uint32_t narrowOf(const Narrow &to, double value, bool relu = false) {
  if (std::isnan(value))
    return to.nan;
  if (relu && std::signbit(value))
    return 0;
  uint32_t largest = uint32_t(to.grid.size()) - 1, sign = std::signbit(value) ? to.grid.sign() : 0;
  if (std::isinf(value))
    return largest | sign;
  return std::min(to.grid.round((long double)std::fabs(value), 'n'), largest) | sign;
}

/// Values in, between and beyond those of a format.
std::vector<float> valuesAround(const Grid &grid) {
  auto values = edgeFloats();
  for (size_t code = 0; code < grid.size(); ++code) {
    double here = grid[uint32_t(code)],
           next = code + 1 < grid.size() ? grid[uint32_t(code + 1)] : here * 1.25;
    for (double part : {0.0, 0.25, 0.5, 0.500001, 0.75})
      values.push_back(float(here + part * (next - here))), values.push_back(-values.back());
  }
  return values;
}

/// Instructions write and read e2m1x2 in 8-bit registers.
std::string through(const Narrow &type, const std::string &instruction, bool isSource) {
  if (type.width != 4)
    return instruction;
  std::string text = "{ .reg .b8 %b;\n";
  if (isSource)
    text += "cvt.u8.u16 %b, A;\n";
  for (char c : instruction)
    text += c == (isSource ? 'A' : 'D') ? "%b" : std::string(1, c);
  return text + (isSource ? "" : "\ncvt.u16.u8 D, %b;") + " }";
}

TEST(ConvertPacked, FloatsToNarrow) {
  for (const Narrow &to : kNarrow)
    for (bool relu : {false, true}) {
      auto a = valuesAround(to.grid);
      std::vector<float> b(a.rbegin(), a.rend());
      std::string text =
          std::string("cvt.rn.satfinite") + (relu ? ".relu." : ".") + to.name + "x2.f32 D, A, B;";
      auto got = lanewise<uint16_t>(through(to, text, false), a, b);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i], narrowOf(to, a[i], relu) << to.slot | narrowOf(to, b[i], relu))
            << text << a[i] << ", " << b[i];
    }
}

TEST(ConvertPacked, HalvesToNarrow) {
  std::vector<uint32_t> pairs;
  for (uint32_t code = 0; code < 0x10000; ++code)
    pairs.push_back(code << 16 | ((code * 31) & 0xffff));
  for (const Narrow &to : kNarrow)
    for (const auto &[type, grid] :
         {std::pair<const char *, const Grid &>{"f16x2", kF16}, {"bf16x2", kBF16}}) {
      std::string text = std::string("cvt.rn.satfinite.") + to.name + "x2." + type + " D, A;";
      auto got = lanewise<uint16_t>(through(to, text, false), pairs);
      auto want = [&, &values = grid](uint32_t code) {
        if (values.isFinite(code))
          return narrowOf(to, values[code]);
        return (code & 0x7fff) == values.size() ? narrowOf(to, code & 0x8000 ? -INFINITY : INFINITY) : to.nan;
      };
      for (size_t i = 0; i < pairs.size(); ++i)
        ASSERT_EQ(got[i], want(pairs[i] >> 16) << to.slot | want(pairs[i] & 0xffff)) << text << pairs[i];
    }
}

TEST(ConvertPacked, NarrowToHalves) {
  std::vector<uint16_t> pairs;
  for (uint32_t code = 0; code < 0x10000; ++code)
    pairs.push_back(uint16_t(code));
  for (const Narrow &from : kNarrow)
    for (const auto &[type, grid] :
         {std::pair<const char *, const Grid &>{"f16x2", kF16}, {"bf16x2", kBF16}}) {
      std::string text = std::string("cvt.rn.") + type + "." + from.name + "x2 D, A;";
      auto got = lanewise<uint32_t>(through(from, text, true), pairs);
      auto relu = lanewise<uint32_t>(through(from, "cvt.rn.relu." + text.substr(7), true), pairs);
      auto want = [&, &values = grid](uint32_t code, bool clamp) -> uint32_t {
        code &= (1U << from.width) - 1;
        uint32_t sign = code & from.grid.sign() ? 0x8000 : 0;
        if (!from.grid.isFinite(code)) {
          bool infinite = std::string(from.name) == "e5m2" && (code & 0x7f) == 0x7c;
          return infinite ? (clamp && sign ? 0 : uint32_t(values.size()) | sign) : 0x7fff;
        }
        if (clamp && sign)
          return 0;
        return values.round((long double)std::fabs(from.grid[code]), 'n') | sign;
      };
      for (uint32_t pair : pairs) {
        ASSERT_EQ(got[pair], want(pair >> from.slot, false) << 16 | want(pair, false)) << text << pair;
        ASSERT_EQ(relu[pair], want(pair >> from.slot, true) << 16 | want(pair, true)) << text << pair;
      }
    }
}

TEST(ConvertPacked, FloatsToPairsOfHalves) {
  auto a = valuesAround(kE5M2);
  std::vector<float> b(a.rbegin(), a.rend());
  for (std::string type : {"f16", "bf16"})
    for (std::string modifiers : {"rn.", "rz.", "rn.relu.", "rz.relu.satfinite.", "rn.satfinite."}) {
      auto pair = lanewise<uint32_t>("cvt." + modifiers + type + "x2.f32 D, A, B;", a, b);
      auto high = lanewise<uint16_t>("cvt." + modifiers + type + ".f32 D, A;", a);
      auto low = lanewise<uint16_t>("cvt." + modifiers + type + ".f32 D, A;", b);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(pair[i], uint32_t(high[i]) << 16 | low[i]) << type << modifiers << a[i] << ", " << b[i];
    }
  EXPECT_EQ(lanewise<uint64_t>("cvt.rn.f16x2.f32 D, A, A;", std::vector<float>{-1})[0], 0xbc00bc00U);
}

TEST(ConvertPacked, ScalesArePowersOfTwo) {
  // 1, 1.5, the largest, infinity, the least, zero, NaN, and a number without a sign.
  std::vector<uint32_t> a{0x3f800000, 0x3fc00000, 0x7f7fffff, 0x7f800000,
                          0x00000001, 0,          0x7fc00000, 0xbfc00000};
  using V = std::vector<uint16_t>;
  EXPECT_EQ(lanewise<uint16_t>("cvt.rz.ue8m0x2.f32 D, A, 0f40000000;", a),
            (V{0x7f80, 0x7f80, 0xfe80, 0xff80, 0x0080, 0x0080, 0xff80, 0x7f80}));
  EXPECT_EQ(lanewise<uint16_t>("cvt.rp.satfinite.ue8m0x2.f32 D, 0f40000000, A;", a),
            (V{0x807f, 0x8080, 0x80fe, 0x80fe, 0x8000, 0x8000, 0x80ff, 0x8080}));
  EXPECT_EQ(lanewise<uint16_t>("cvt.rp.ue8m0x2.bf16x2 D, A;", std::vector<uint32_t>{0x3fc03f80})[0], 0x807f);
  EXPECT_EQ(lanewise<uint32_t>("cvt.rn.bf16x2.ue8m0x2 D, A;", V{0x7f80, 0x00ff, 0xfe01}),
            (std::vector<uint32_t>{0x3f804000, 0x00407fff, 0x7f000080}));
}

TEST(ConvertPacked, ScaledNumbers) {
  // 1.5 * 2^3 and -1 * 2^-2; without scales they are themselves.
  std::vector<uint16_t> pair{0x3cb8}, scales{0x827d};
  EXPECT_EQ(lanewise<uint32_t>("cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 D, A, B;", pair, scales)[0],
            0x4140be80U);
  EXPECT_EQ(lanewise<uint32_t>("cvt.rn.bf16x2.e4m3x2 D, A;", pair)[0], 0x3fc0bf80U);
  // Fixed point: 127/64 and -2, then as bytes by a scale of 64.
  EXPECT_EQ(lanewise<uint32_t>("cvt.rn.bf16x2.s2f6x2 D, A;", std::vector<uint16_t>{0x7f80})[0], 0x3ffec000U);
  EXPECT_EQ(lanewise<uint32_t>("cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.s2f6x2 D, A, B;",
                               std::vector<uint16_t>{0x7f80}, std::vector<uint16_t>{0x8585})[0],
            0x42fec300U);
  std::vector<float> a{1.0f, 1.9921875f, -3.0f, NAN, 0.0234375f},
      b{-1.0f, 100, -0.0078125f, 0.0078126f, -0.5f};
  EXPECT_EQ(lanewise<uint16_t>("cvt.rn.satfinite.s2f6x2.f32 D, A, B;", a, b),
            (std::vector<uint16_t>{0x40c0, 0x7f7f, 0x8000, 0x7f01, 0x02e0}));
  EXPECT_EQ(lanewise<uint16_t>("cvt.rn.satfinite.relu.scaled::n2::ue8m0.s2f6x2.f32 D, A, B, 32896;", a, b)[0],
            0x2000);
}

TEST(ConvertPacked, PacksClampedIntegers) {
  std::vector<int32_t> a{5, -200, 70000}, b{-3, 200, -70000};
  std::vector<uint32_t> c{0x01020304, 0xffffffff, 0};
  using V = std::vector<uint32_t>;
  EXPECT_EQ(lanewise<uint32_t>("cvt.pack.sat.s16.s32 D, A, B;", a, b),
            (V{0x0005fffd, 0xff3800c8, 0x7fff8000}));
  EXPECT_EQ(lanewise<uint32_t>("cvt.pack.sat.u16.s32 D, A, B;", a, b),
            (V{0x00050000, 0x000000c8, 0xffff0000}));
  EXPECT_EQ(lanewise<uint32_t>("cvt.pack.sat.s8.s32.b32 D, A, B, C;", a, b, c),
            (V{0x030405fd, 0xffff807f, 0x7f80}));
  EXPECT_EQ(lanewise<uint32_t>("cvt.pack.sat.u4.s32.b32 D, A, B, C;", a, b, c),
            (V{0x02030450, 0xffffff0f, 0xf0}));
  EXPECT_EQ(lanewise<uint32_t>("cvt.pack.sat.s2.s32.b32 D, A, B, C;", a, b, c),
            (V{0x10203046 | 0, 0xfffffff9, 6}));
}

uint32_t reversed(uint32_t bits, unsigned width) {
  uint32_t out = 0;
  for (unsigned i = 0; i < width; ++i)
    out = out << 1 | (bits >> i & 1);
  return out;
}

/// Of the two codes around |value|, the upper one if the part above the lower one and
/// random / 2^bits make one.
uint32_t stochastic(const Grid &grid, double value, uint32_t random, unsigned bits) {
  uint32_t low = grid.round((long double)std::fabs(value), 'z'), sign = std::signbit(value) ? grid.sign() : 0;
  if (low + 1 >= grid.size())
    return uint32_t(grid.size() - 1) | sign;
  double part = (std::fabs(value) - grid[low]) / (grid[low + 1] - grid[low]);
  bool up = std::floor(std::ldexp(part, int(bits))) + random >= std::ldexp(1.0, int(bits));
  return (low + up) | sign;
}

TEST(ConvertPacked, StochasticRounding) {
  std::mt19937 numbers(7);
  std::vector<float> a, b, c, e;
  std::vector<uint32_t> random;
  for (int i = 0; i < 4096; ++i) {
    auto next = [&] { return std::ldexp(float(int32_t(numbers())), -28 - int(numbers() % 12)); };
    a.push_back(next()), b.push_back(next()), c.push_back(next()), e.push_back(next());
    random.push_back(numbers());
  }
  auto f16 = lanewise<uint32_t>("cvt.rs.f16x2.f32 D, A, B, C;", a, b, random);
  auto bf16 = lanewise<uint32_t>("cvt.rs.satfinite.bf16x2.f32 D, A, B, C;", a, b, random);
  for (size_t i = 0; i < a.size(); ++i) {
    uint32_t high = random[i] >> 16, low = random[i] & 0xffff;
    ASSERT_EQ(f16[i],
              stochastic(kF16, a[i], high & 0x1fff, 13) << 16 | stochastic(kF16, b[i], low & 0x1fff, 13));
    ASSERT_EQ(bf16[i], stochastic(kBF16, a[i], high, 16) << 16 | stochastic(kBF16, b[i], low, 16));
  }
  // Four at a time: c and e stand for the last two, random bits are those of a.
  for (const Narrow &to : kNarrow) {
    std::string text = std::string("cvt.rs.satfinite.") + to.name + "x4.f32 D, {A, B, C, E}, A;";
    std::vector<uint32_t> got;
    if (to.width == 4)
      for (uint16_t value : lanewise<uint16_t>(text, a, b, c, e))
        got.push_back(value);
    else
      got = lanewise<uint32_t>(text, a, b, c, e);
    for (size_t i = 0; i < a.size(); ++i) {
      uint32_t bits = asBits(a[i]), low = bits & 0xffff, high = bits >> 16;
      if (to.width == 4) {
        low = (bits >> 16 & 0xff) << 8 | (bits & 0xff);
        high = (bits >> 24) << 8 | (bits >> 8 & 0xff);
      }
      uint32_t want = stochastic(to.grid, a[i], reversed(high, 16), 16) << 3 * to.slot |
                      stochastic(to.grid, b[i], high, 16) << 2 * to.slot |
                      stochastic(to.grid, c[i], reversed(low, 16), 16) << to.slot |
                      stochastic(to.grid, e[i], low, 16);
      ASSERT_EQ(got[i], want) << text << a[i] << " " << b[i] << " " << c[i] << " " << e[i];
    }
  }
}

TEST(ConvertPacked, WhatAssemblersTakeIsKnownAndNothingElse) {
  for (const auto &message :
       refusals({"cvt.rz.relu.satfinite.bf16x2.f32 %r1, %f2, %f3;", "cvt.rn.f16x2.f32 %d1, %f2, %f3;",
                 "cvt.rs.relu.satfinite.bf16x2.f32 %r1, %f2, %f3, %r4;",
                 "cvt.rn.satfinite.relu.e5m2x2.f16x2 %h1, %r2;", "cvt.rn.relu.f16x2.e4m3x2 %r1, %h2;",
                 "cvt.rn.satfinite.e2m1x2.f32 %b1, %f2, %f3;", "cvt.rn.f16x2.e2m1x2 %r1, %b2;",
                 "cvt.rp.satfinite.ue8m0x2.bf16x2 %h1, %r2;",
                 "cvt.rs.relu.satfinite.e2m1x4.f32 %h1, {%f1, %f2, %f3, %f4}, %r2;"}))
    EXPECT_EQ(message, "");
  std::vector<std::string> wrong{"cvt.rp.f16x2.f32 %r1, %f2, %f3;",
                                 "cvt.rna.bf16x2.f32 %r1, %f2, %f3;",
                                 "cvt.rn.ftz.f16x2.f32 %r1, %f2, %f3;",
                                 "cvt.rn.e4m3x2.f32 %h1, %f2, %f3;",
                                 "cvt.rn.satfinite.e4m3x2.f32 %r1, %f2, %f3;",
                                 "cvt.rn.satfinite.f16x2.e4m3x2 %r1, %h2;",
                                 "cvt.f16x2.e4m3x2 %r1, %h2;",
                                 "cvt.rn.f16x2.e4m3x2 %r1, %r2;",
                                 "cvt.rn.f16x2.e4m3x2 %d1, %h2;",
                                 "cvt.rn.ue8m0x2.bf16x2 %h1, %r2;",
                                 "cvt.rp.satfinite.relu.ue8m0x2.bf16x2 %h1, %r3;",
                                 "cvt.bf16x2.ue8m0x2 %r1, %h2;",
                                 "cvt.rs.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;",
                                 "cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2}, %r2;",
                                 "cvt.rs.f16.f32 %h1, %f2, %r2;",
                                 "cvt.rs.satfinite.e4m3x2.f32 %h1, %f1, %f2, %r2;",
                                 "cvt.rn.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;",
                                 "cvt.rn.bf16x2.f32 %d1, %f2, %f3;",
                                 "cvt.pack.sat.s8.u32.b32 %r1, %r2, %r3, %r4;",
                                 "cvt.pack.sat.u16.u32 %r1, %r2, %r3;",
                                 "cvt.pack.u16.s32 %r1, %r2, %r3;",
                                 "cvt.pack.sat.s8.s32 %r1, %r2, %r3;",
                                 "cvt.rn.f16x2.s32 %r1, %r2;",
                                 "cvt.rn.satfinite.e4m3x2.f64 %h1, %e1, %e2;"};
  auto messages = refusals(wrong);
  for (size_t i = 0; i < wrong.size(); ++i)
    EXPECT_NE(messages[i], "") << wrong[i];
  EXPECT_EQ(messages[3], "cvt.rn.e4m3x2.f32: .satfinite is missing");
}

} // namespace
