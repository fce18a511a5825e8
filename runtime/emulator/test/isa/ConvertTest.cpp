// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt between integers and floats of 32 and 64 bits, one number each, and roundings to integral values,
// against the host's own conversions and a list of all values of the 16-bit formats.

#include "Lanewise.h"

#include <cfenv>
#include <limits>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

const std::pair<char, int> kRoundings[] = {
    {'n', FE_TONEAREST}, {'z', FE_TOWARDZERO}, {'m', FE_DOWNWARD}, {'p', FE_UPWARD}};

/// A 64-bit register of a number, and its type's name.
template <class T>
struct TypeName;
template <>
struct TypeName<uint8_t> {
  static constexpr const char *kName = "u8";
};
template <>
struct TypeName<int8_t> {
  static constexpr const char *kName = "s8";
};
template <>
struct TypeName<uint16_t> {
  static constexpr const char *kName = "u16";
};
template <>
struct TypeName<int16_t> {
  static constexpr const char *kName = "s16";
};
template <>
struct TypeName<uint32_t> {
  static constexpr const char *kName = "u32";
};
template <>
struct TypeName<int32_t> {
  static constexpr const char *kName = "s32";
};
template <>
struct TypeName<uint64_t> {
  static constexpr const char *kName = "u64";
};
template <>
struct TypeName<int64_t> {
  static constexpr const char *kName = "s64";
};

template <class F>
void forIntegers(F f) {
  f(uint8_t()), f(int8_t()), f(uint16_t()), f(int16_t());
  f(uint32_t()), f(int32_t()), f(uint64_t()), f(int64_t());
}

std::vector<uint64_t> edgeIntegers() {
  std::vector<uint64_t> values;
  for (unsigned bit : {0, 1, 7, 8, 11, 15, 16, 23, 24, 31, 32, 52, 53, 54, 62, 63})
    for (int64_t offset : {-2, -1, 0, 1, 3}) {
      values.push_back((uint64_t(1) << bit) + uint64_t(offset));
      values.push_back(0 - values.back());
    }
  for (uint64_t bits :
       {0x0123456789abcdefULL, 0xfedcba9876543210ULL, 0xffffff8000000001ULL, 0x2000000000000400ULL,
        0x7ffffffffffffbffULL, 0xfffffffffffffbffULL, 0x1000001ULL, 0x1000003ULL, 0x801ULL, 0x803ULL})
    values.push_back(bits);
  return values;
}

template <class To, class From>
bool holds() {
  using T = std::numeric_limits<To>;
  using F = std::numeric_limits<From>;
  return (T::is_signed || !F::is_signed) && T::digits >= F::digits;
}

TEST(Convert, IntegersWrapAndSaturateInWideRegisters) {
  auto values = edgeIntegers();
  forIntegers([&](auto to) {
    forIntegers([&](auto from) {
      using To = decltype(to);
      using From = decltype(from);
      std::string types = std::string(TypeName<To>::kName) + "." + TypeName<From>::kName + " D, A;";
      auto wrapped = lanewise<uint64_t>("cvt." + types, values);
      std::vector<uint64_t> clamped;
      if (!holds<To, From>())
        clamped = lanewise<uint64_t>("cvt.sat." + types, values);
      for (size_t i = 0; i < values.size(); ++i) {
        __int128 value = From(values[i]);
        ASSERT_EQ(wrapped[i], uint64_t(To(From(values[i])))) << types << values[i];
        if (clamped.empty())
          continue;
        __int128 low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
        ASSERT_EQ(clamped[i], uint64_t(To(value < low    ? low
                                          : value > high ? high
                                                         : value)))
            << types << values[i];
      }
    });
  });
}

TEST(Convert, NarrowRegistersHoldNarrowNumbers) {
  using V = std::vector<uint16_t>;
  V values{0x0080, 0x12ff, 0x7f7f, 0x8001};
  EXPECT_EQ(lanewise<uint16_t>("cvt.s8.s16 D, A;", values), (V{0xff80, 0xffff, 0x7f, 1}));
  EXPECT_EQ(lanewise<uint16_t>("cvt.u8.u16 D, A;", values), (V{0x80, 0xff, 0x7f, 1}));
  EXPECT_EQ(lanewise<uint16_t>("cvt.sat.s8.s16 D, A;", values), (V{0x7f, 0x7f, 0x7f, 0xff80}));
  EXPECT_EQ(lanewise<uint32_t>("cvt.s32.s8 D, A;", values),
            (std::vector<uint32_t>{0xffffff80, 0xffffffff, 0x7f, 1}));
  EXPECT_EQ(lanewise<uint32_t>("{ .reg .b8 %b; cvt.u8.u16 %b, A; cvt.u32.u8 D, %b; }", values),
            (std::vector<uint32_t>{0x80, 0xff, 0x7f, 1}));
}

std::vector<double> edgeDoubles() {
  std::vector<double> values{0.0,   0.25,   0.5,      0.75,     1.0,     1.5,     2.5,       3.5,
                             127.5, 128.5,  255.5,    256.5,    32767.5, 65535.5, 1e10,      1e19,
                             1e300, 5e-324, 0x1p-126, INFINITY, NAN,     0.1,     8388607.5, 8388608.5};
  for (int bit : {7, 8, 15, 16, 31, 32, 63, 64})
    for (double offset : {-1.0, -0.5, 0.0, 0.5, 1.0})
      values.push_back(std::ldexp(1.0, bit) + offset);
  size_t count = values.size();
  for (size_t i = 0; i < count; ++i)
    values.push_back(-values[i]);
  return values;
}

/// Not rint in the host's mode: compilers take it that the mode is to nearest.
template <class Float>
Float integral(Float value, char rounding) {
  return rounding == 'n'   ? std::rint(value)
         : rounding == 'z' ? std::trunc(value)
         : rounding == 'm' ? std::floor(value)
                           : std::ceil(value);
}

template <class To>
uint64_t integerOf(long double value, char rounding, bool hasWideSource) {
  if (std::isnan(value))
    return hasWideSource || sizeof(To) == 8 ? uint64_t(To(uint64_t(1) << (8 * sizeof(To) - 1))) : 0;
  long double whole = integral(value, rounding);
  if (whole <= (long double)std::numeric_limits<To>::min())
    return uint64_t(std::numeric_limits<To>::min());
  if (whole >= (long double)std::numeric_limits<To>::max())
    return uint64_t(std::numeric_limits<To>::max());
  return uint64_t(To(whole));
}

TEST(Convert, FloatsToIntegers) {
  auto doubles = edgeDoubles();
  std::vector<float> floats(doubles.begin(), doubles.end());
  std::vector<uint16_t> halves;
  for (uint32_t code = 0; code < 0x10000; code += 61)
    halves.push_back(uint16_t(code));
  forIntegers([&](auto to) {
    using To = decltype(to);
    for (char name : {'n', 'z', 'm', 'p'}) {
      std::string text = std::string("cvt.r") + name + "i." + TypeName<To>::kName;
      auto fromDoubles = lanewise<uint64_t>(text + ".f64 D, A;", doubles);
      auto fromFloats = lanewise<uint64_t>(text + ".f32 D, A;", floats);
      for (size_t i = 0; i < doubles.size(); ++i) {
        ASSERT_EQ(fromDoubles[i], integerOf<To>(doubles[i], name, true)) << text << ".f64 " << doubles[i];
        ASSERT_EQ(fromFloats[i], integerOf<To>(floats[i], name, false)) << text << ".f32 " << floats[i];
      }
      auto fromF16 = lanewise<uint64_t>(text + ".f16 D, A;", halves);
      // Registers are exactly as wide as the types where one of them is bf16.
      const std::string own = TypeName<To>::kName;
      auto fromBF16 =
          lanewise<uint64_t>("{ .reg ." + own + " own; " + text + ".bf16 own, A;\n" +
                                 (std::is_signed_v<To> ? "cvt.s64." : "cvt.u64.") + own + " D, own; }",
                             halves);
      for (size_t i = 0; i < halves.size(); ++i) {
        if (kF16.isFinite(halves[i])) {
          ASSERT_EQ(fromF16[i], integerOf<To>(kF16[halves[i]], name, false)) << text << ".f16 " << halves[i];
        }
        if (kBF16.isFinite(halves[i])) {
          ASSERT_EQ(fromBF16[i], integerOf<To>(kBF16[halves[i]], name, false))
              << text << ".bf16 " << halves[i];
        }
      }
    }
  });
  // A subnormal number that is flushed is not rounded up.
  EXPECT_EQ(lanewise<uint32_t>("cvt.rpi.ftz.u32.f32 D, A;", std::vector<uint32_t>{1})[0], 0U);
  EXPECT_EQ(lanewise<uint32_t>("cvt.rpi.u32.f32 D, A;", std::vector<uint32_t>{1})[0], 1U);
}

TEST(Convert, IntegersToFloats) {
  auto values = edgeIntegers();
  forIntegers([&](auto from) {
    using From = decltype(from);
    for (auto [name, mode] : kRoundings) {
      std::string text = std::string("cvt.r") + name,
                  type = std::string(".") + TypeName<From>::kName + " D, A;";
      auto toDouble = lanewise<double>(text + ".f64" + type, values);
      auto toFloat = lanewise<float>(text + ".f32" + type, values);
      auto toF16 = lanewise<uint16_t>(text + ".f16" + type, values);
      const std::string own = TypeName<From>::kName, cut = own[0] + std::string("64 own, A;\n");
      auto toBF16 = lanewise<uint16_t>(
          "{ .reg ." + own + " own; cvt." + own + "." + cut + text + ".bf16." + own + " D, own; }", values);
      for (size_t i = 0; i < values.size(); ++i) {
        volatile long double exact = From(values[i]);
        std::fesetround(mode);
        volatile double wantDouble = double(exact);
        volatile float wantFloat = float(exact);
        std::fesetround(FE_TONEAREST);
        ASSERT_EQ(toDouble[i], wantDouble) << text << ".f64" << type << values[i];
        ASSERT_EQ(toFloat[i], wantFloat) << text << ".f32" << type << values[i];
        ASSERT_EQ(toF16[i], kF16.round((long double)exact, name)) << text << ".f16" << type << values[i];
        ASSERT_EQ(toBF16[i], kBF16.round((long double)exact, name)) << text << ".bf16" << type << values[i];
      }
    }
  });
  EXPECT_EQ(lanewise<float>("cvt.rn.sat.f32.s32 D, A;", std::vector<int32_t>{-5, 0, 1, 7}),
            (std::vector<float>{0, 0, 1, 1}));
}

TEST(Convert, DoublesToFloats) {
  std::vector<double> values = edgeDoubles();
  for (float value : edgeFloats())
    for (double offset : {0.0, 0x1p-30, -0x1p-30})
      values.push_back(value * (1 + offset));
  for (double value : {0x1.ffffffp127, 0x1p128, 0x1p-150, 0x1.8p-149, 0x1p-200})
    values.push_back(value), values.push_back(-value);
  for (auto [name, mode] : kRoundings) {
    std::string text = std::string("cvt.r") + name;
    auto got = lanewise<uint32_t>(text + ".f32.f64 D, A;", values);
    auto flushed = lanewise<uint32_t>(text + ".ftz.f32.f64 D, A;", values);
    auto wide = lanewise<uint64_t>(text + ".f32.f64 D, A;", values);
    for (size_t i = 0; i < values.size(); ++i) {
      volatile double in = values[i];
      std::fesetround(mode);
      volatile float out = float(in);
      std::fesetround(FE_TONEAREST);
      uint32_t want = std::isnan(values[i]) ? 0x7fffffff : asBits(float(out));
      ASSERT_EQ(got[i], want) << text << " " << values[i];
      ASSERT_EQ(wide[i], want);
      ASSERT_EQ(flushed[i], want & 0x7f800000 ? want : want & 0x80000000) << text << " " << values[i];
    }
  }
  EXPECT_EQ(lanewise<double>("cvt.f64.f32 D, A;", std::vector<float>{0x1p-149f, -2.5f}),
            (std::vector<double>{0x1p-149, -2.5}));
  EXPECT_EQ(lanewise<uint64_t>("cvt.ftz.f64.f32 D, A;", std::vector<float>{-0x1p-149f})[0], uint64_t(1)
                                                                                                << 63);
}

TEST(Convert, RoundsToIntegralValues) {
  auto doubles = edgeDoubles();
  std::vector<float> floats(doubles.begin(), doubles.end());
  std::vector<uint16_t> codes;
  for (uint32_t code = 0; code < 0x10000; code += 3)
    codes.push_back(uint16_t(code));
  for (char name : {'n', 'z', 'm', 'p'}) {
    std::string text = std::string("cvt.r") + name + "i.";
    auto d = lanewise<double>(text + "f64.f64 D, A;", doubles);
    auto f = lanewise<float>(text + "f32.f32 D, A;", floats);
    auto h = lanewise<uint16_t>(text + "f16.f16 D, A;", codes);
    auto b = lanewise<uint16_t>(text + "bf16.bf16 D, A;", codes);
    for (size_t i = 0; i < doubles.size(); ++i) {
      if (!std::isnan(doubles[i])) {
        EXPECT_EQ(asBits(d[i]), asBits(integral(doubles[i], name))) << text << doubles[i];
        EXPECT_EQ(asBits(f[i]), asBits(integral(floats[i], name))) << text << floats[i];
      }
    }
    for (size_t i = 0; i < codes.size(); ++i) {
      if (kF16.isFinite(codes[i])) {
        EXPECT_EQ(asBits(kF16[h[i]]), asBits(integral(kF16[codes[i]], name))) << text << codes[i];
      }
      if (kBF16.isFinite(codes[i])) {
        EXPECT_EQ(asBits(kBF16[b[i]]), asBits(integral(kBF16[codes[i]], name))) << text << codes[i];
      }
    }
  }
  EXPECT_EQ(lanewise<float>("cvt.sat.f32.f32 D, A;", std::vector<float>{-1, 0.25f, 3, NAN}),
            (std::vector<float>{0, 0.25f, 1, 0}));
}

TEST(Convert, WhatAssemblersTakeIsKnownAndNothingElse) {
  for (const auto &message :
       refusals({"cvt.rn.f64.s32 %e1, %r1;", "cvt.bf16.f16 %h1, %h2;", "cvt.rp.f16.bf16 %h1, %h2;",
                 "cvt.rn.sat.f32.s32 %f1, %r2;", "cvt.rn.ftz.bf16.f32 %h1, %f2;", "cvt.rn.f16.f32 %h1, %d2;",
                 "cvt.rzi.s8.f32 %b1, %f2;", "cvt.sat.u8.s32 %r1, %r2;", "cvt.rzi.sat.s32.f32 %r1, %f2;",
                 "cvt.ftz.f32.bf16 %f1, %h1;", "cvt.f64.bf16.rp %e1, %h1;", "cvt.rn.f32.s32 %f1, 5;",
                 "cvt.sat.f32.f32 %f1, 0f3F800000;", "cvt.rni.sat.f32.f32 %f1, %f1;", "cvt.s32.s32 %r1, %r2;",
                 "cvt.sat.f64.f32 %e1, %f2;", "cvt.sat.f32.f16 %f1, %h2;", "cvt.u32.u64 %r1, %d1;"}))
    EXPECT_EQ(message, "");
  std::vector<std::string> wrong{"cvt.f32.s32 %f1, %r1;",
                                 "cvt.s32.f32 %r1, %f1;",
                                 "cvt.rn.s32.f32 %r1, %f1;",
                                 "cvt.rn.f64.f32 %e1, %f1;",
                                 "cvt.f32.f64 %f1, %e1;",
                                 "cvt.rn.f32.f32 %f1, %f2;",
                                 "cvt.rni.f32.f64 %f1, %e2;",
                                 "cvt.rni.f64.f32 %e1, %f2;",
                                 "cvt.rni.f32.f16 %f1, %h2;",
                                 "cvt.rn.sat.bf16.f32 %h1, %f2;",
                                 "cvt.rn.sat.f16.bf16 %h1, %h2;",
                                 "cvt.sat.f32.bf16 %f1, %h2;",
                                 "cvt.rp.relu.f16.f32 %h1, %f2;",
                                 "cvt.rna.bf16.f32 %h1, %f2;",
                                 "cvt.rp.satfinite.bf16.f32 %h1, %f2;",
                                 "cvt.rn.ftz.relu.f16.f32 %h1, %f2;",
                                 "cvt.rzi.ftz.s32.f64 %r1, %e2;",
                                 "cvt.ftz.f16.bf16 %h2, %h1;",
                                 "cvt.rn.relu.f32.f64 %f1, %e2;",
                                 "cvt.rn.satfinite.f16.f64 %h1, %e2;",
                                 "cvt.rna.relu.tf32.f32 %r1, %f2;",
                                 "cvt.rp.tf32.f32 %r1, %f2;",
                                 "cvt.rzi.f16.f32 %h1, %f1;",
                                 "cvt.ftz.s32.s32 %r1, %r2;",
                                 "cvt.rn.s32.s64 %r1, %d2;",
                                 "cvt.rni.s32.s64 %r1, %d2;",
                                 "cvt.sat.s32.s16 %r1, %h1;",
                                 "cvt.sat.s32.u16 %r1, %h2;",
                                 "cvt.rn.bf16.f32 %r1, %f2;",
                                 "cvt.f32.bf16 %f2, %r1;",
                                 "cvt.rna.tf32.f32 %d1, %f3;",
                                 "cvt.rn.f32.f16 %f1, %h3;",
                                 "cvt.rn.bf16.bf16 %h1, %h3;",
                                 "cvt.u32.u64 %r1, %r2;",
                                 "cvt.rn.rz.f32.f64 %f1, %e2;",
                                 "cvt.rn.f32 %f1, %e2;",
                                 "cvt.rn.f32.f64.s32 %f1, %e2;",
                                 "cvt.e4m3.f32 %h1, %f1;"};
  auto messages = refusals(wrong);
  for (size_t i = 0; i < wrong.size(); ++i)
    EXPECT_NE(messages[i], "") << wrong[i];
}

} // namespace
