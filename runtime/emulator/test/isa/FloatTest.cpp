// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic in f32 and f64 against the host's own in its rounding modes.

#include "Lanewise.h"

#include <cfenv>
#include <functional>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

const std::pair<const char *, int> kRoundings[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

/// `f` under the host's rounding.
template <class T>
T rounded(int mode, const std::function<T(T, T, T)> &f, T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  std::fesetround(mode);
  volatile T result = f(x, y, z);
  std::fesetround(FE_TONEAREST);
  return result;
}

float flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

float expected(float value, bool ftz, bool sat) {
  if (ftz)
    value = flush(value);
  if (sat)
    return value > 0 ? std::min(value, 1.0f) : 0.0f;
  return value;
}

uint32_t canonicalBits(float value) { return std::isnan(value) ? 0x7fffffff : asBits(value); }

struct Case {
  const char *name;
  unsigned sources;
  bool hasSat;
  std::function<float(float, float, float)> f;
  std::function<double(double, double, double)> d;
};

std::vector<Case> cases() {
  return {{"add", 2, true, [](float a, float b, float) { return a + b; },
           [](double a, double b, double) { return a + b; }},
          {"sub", 2, true, [](float a, float b, float) { return a - b; },
           [](double a, double b, double) { return a - b; }},
          {"mul", 2, true, [](float a, float b, float) { return a * b; },
           [](double a, double b, double) { return a * b; }},
          {"div", 2, false, [](float a, float b, float) { return a / b; },
           [](double a, double b, double) { return a / b; }},
          {"fma", 3, true, [](float a, float b, float c) { return std::fma(a, b, c); },
           [](double a, double b, double c) { return std::fma(a, b, c); }},
          {"mad", 3, true, [](float a, float b, float c) { return std::fma(a, b, c); },
           [](double a, double b, double c) { return std::fma(a, b, c); }},
          {"rcp", 1, false, [](float a, float, float) { return 1 / a; },
           [](double a, double, double) { return 1 / a; }},
          {"sqrt", 1, false, [](float a, float, float) { return std::sqrt(a); },
           [](double a, double, double) { return std::sqrt(a); }}};
}

const char *operandsOf(unsigned sources) {
  return sources == 1 ? " D, A;" : sources == 2 ? " D, A, B;" : " D, A, B, C;";
}

TEST(Float, F32RoundsInEveryDirection) {
  std::vector<float> a, b, c;
  pairs(edgeFloats(), a, b);
  for (size_t i = 0; i < a.size(); ++i)
    c.push_back(edgeFloats()[i * 7 % edgeFloats().size()]);
  for (const Case &op : cases())
    for (auto [name, mode] : kRoundings)
      for (bool ftz : {false, true})
        for (bool sat : {false, true}) {
          if (sat && !op.hasSat)
            continue;
          std::string text = std::string(op.name) + "." + name + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") +
                             ".f32" + operandsOf(op.sources);
          auto got = lanewise<uint32_t>(text, a, b, c);
          for (size_t i = 0; i < a.size(); ++i) {
            auto in = [&](float v) { return ftz ? flush(v) : v; };
            float want = rounded<float>(mode, op.f, in(a[i]), in(b[i]), in(c[i]));
            ASSERT_EQ(got[i], canonicalBits(expected(want, ftz, sat)))
                << text << " of " << a[i] << ", " << b[i] << ", " << c[i];
          }
        }
}

TEST(Float, F64RoundsInEveryDirection) {
  std::vector<double> values, a, b, c;
  for (uint64_t bits :
       {uint64_t(0), uint64_t(1), uint64_t(0x000fffffffffffff), uint64_t(0x0010000000000000),
        uint64_t(0x3fb999999999999a), uint64_t(0x3fefffffffffffff), uint64_t(0x3ff0000000000000),
        uint64_t(0x3ff0000000000001), uint64_t(0x4008000000000000), uint64_t(0x7fefffffffffffff),
        uint64_t(0x7ff0000000000000), uint64_t(0x7ff8000000000000)}) {
    values.push_back(asDouble(bits));
    values.push_back(asDouble(bits | uint64_t(1) << 63));
  }
  pairs(values, a, b);
  for (size_t i = 0; i < a.size(); ++i)
    c.push_back(values[i * 7 % values.size()]);
  for (const Case &op : cases())
    for (auto [name, mode] : kRoundings) {
      std::string text = std::string(op.name) + "." + name + ".f64" + operandsOf(op.sources);
      auto got = lanewise<double>(text, a, b, c);
      for (size_t i = 0; i < a.size(); ++i) {
        double want = rounded<double>(mode, op.d, a[i], b[i], c[i]);
        if (std::isnan(want))
          ASSERT_TRUE(std::isnan(got[i])) << text << " of " << a[i] << ", " << b[i];
        else
          ASSERT_EQ(asBits(got[i]), asBits(want)) << text << " of " << a[i] << ", " << b[i] << ", " << c[i];
      }
    }
}

TEST(Float, PairsOfF32AreTwo) {
  std::vector<uint64_t> a, b;
  std::vector<float> x, y;
  pairs(edgeFloats(), x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    a.push_back(asBits(x[i]) | uint64_t(asBits(y[i])) << 32);
    b.push_back(asBits(y[i]) | uint64_t(asBits(1.0f)) << 32);
  }
  auto sum = lanewise<uint64_t>("add.rz.ftz.f32x2 D, A, B;", a, b);
  auto product = lanewise<uint64_t>("fma.rn.f32x2 D, A, B, A;", a, b);
  auto low = lanewise<uint32_t>("add.rz.ftz.f32 D, A, B;", x, y);
  auto high = lanewise<uint32_t>("add.rz.ftz.f32 D, A, 0f3F800000;", y);
  auto lowProduct = lanewise<uint32_t>("fma.rn.f32 D, A, B, A;", x, y);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(sum[i], low[i] | uint64_t(high[i]) << 32);
    ASSERT_EQ(uint32_t(product[i]), lowProduct[i]);
  }
}

TEST(Float, MixedPrecision) {
  // 1 + 2^-10, the largest and the smallest f16; 3.140625 in bf16.
  std::vector<uint16_t> f16{0x3c01, 0x7bff, 0x0001, 0xfc00}, bf16{0x4049, 0x4049, 0xc049, 0x7f80};
  std::vector<float> c{1.0f, 0x1p-20f, -1.0f, 0.0f};
  auto sum = lanewise<float>("add.f32.f16 D, A, B;", f16, c);
  EXPECT_EQ(sum, (std::vector<float>{2.0f + 0x1p-10f, 65504.0f, -1.0f + 0x1p-24f, -INFINITY}));
  auto up = lanewise<float>("add.rp.f32.f16 D, A, B;", f16, c);
  EXPECT_EQ(up[1], std::nextafter(65504.0f, 1e9f));
  auto difference = lanewise<float>("sub.rn.f32.bf16 D, A, B;", bf16, c);
  EXPECT_EQ(difference[0], 2.140625f);
  auto fma = lanewise<float>("fma.rn.sat.f32.bf16 D, A, A, B;", bf16, c);
  EXPECT_EQ(fma, (std::vector<float>{1, 1, 1, 1}));
  auto squares = lanewise<float>("fma.rn.f32.f16 D, A, A, B;", f16, c);
  EXPECT_EQ(squares[1], 65504.0f * 65504.0f);
}

TEST(Float, MinAndMaxKnowNaNsAndZeros) {
  const uint32_t nan = 0x7fffffff, zero = 0, minus = 0x80000000, one = 0x3f800000, three = 0xc0400000,
                 tiny = 0x80000001, quiet = 0xffc01234;
  std::vector<uint32_t> a{zero, minus, quiet, one, quiet, three, tiny},
      b{minus, zero, one, quiet, nan, one, zero};
  using V = std::vector<uint32_t>;
  EXPECT_EQ(lanewise<uint32_t>("min.f32 D, A, B;", a, b), (V{minus, minus, one, one, nan, three, tiny}));
  EXPECT_EQ(lanewise<uint32_t>("max.f32 D, A, B;", a, b), (V{zero, zero, one, one, nan, one, zero}));
  EXPECT_EQ(lanewise<uint32_t>("max.NaN.f32 D, A, B;", a, b), (V{zero, zero, nan, nan, nan, one, zero}));
  EXPECT_EQ(lanewise<uint32_t>("min.ftz.f32 D, A, B;", a, b), (V{minus, minus, one, one, nan, three, minus}));
  // The larger magnitude, its sign the product's.
  EXPECT_EQ(lanewise<uint32_t>("max.xorsign.abs.f32 D, A, B;", a, b)[5], three);
  EXPECT_EQ(lanewise<uint32_t>("min.xorsign.abs.f32 D, A, B;", a, b)[5], 0xbf800000);
  V c{one, three, three, three, three, 0x40000000, one};
  EXPECT_EQ(lanewise<uint32_t>("min.f32 D, A, B, C;", a, b, c),
            (V{minus, three, three, three, three, three, tiny}));
  EXPECT_EQ(lanewise<uint32_t>("max.NaN.abs.f32 D, A, B, C;", a, b, c),
            (V{one, 0x40400000, nan, nan, nan, 0x40400000, one}));
  std::vector<double> x{-0.0, 1.0, NAN}, y{0.0, NAN, NAN};
  auto least = lanewise<double>("min.f64 D, A, B;", x, y);
  EXPECT_TRUE(least[0] == 0 && std::signbit(least[0]) && least[1] == 1 && std::isnan(least[2]));
}

TEST(Float, SignsAndProperties) {
  std::vector<uint32_t> a{0x00000001, 0x80000000, 0x7fc00000, 0xff800000, 0x3f800000};
  using V = std::vector<uint32_t>;
  EXPECT_EQ(lanewise<uint32_t>("neg.ftz.f32 D, A;", a),
            (V{0x80000000, 0, 0xffc00000, 0x7f800000, 0xbf800000}));
  EXPECT_EQ(lanewise<uint32_t>("abs.f32 D, A;", a), (V{1, 0, 0x7fc00000, 0x7f800000, 0x3f800000}));
  // The sign of the first operand, the value of the second.
  EXPECT_EQ(lanewise<uint32_t>("copysign.f32 D, A, 0f40000000;", a),
            (V{0x40000000, 0xc0000000, 0x40000000, 0xc0000000, 0x40000000}));
  auto test = [&](const std::string &property) {
    return lanewise<uint32_t>("testp." + property + ".f32 %p1, A;\nselp.u32 D, 1, 0, %p1;", a);
  };
  EXPECT_EQ(test("finite"), (V{1, 1, 0, 0, 1}));
  EXPECT_EQ(test("infinite"), (V{0, 0, 0, 1, 0}));
  EXPECT_EQ(test("number"), (V{1, 1, 0, 1, 1}));
  EXPECT_EQ(test("notanumber"), (V{0, 0, 1, 0, 0}));
  EXPECT_EQ(test("subnormal"), (V{1, 0, 0, 0, 0}));
  // A zero is a normal number here (PTX ISA 9.7.3.1).
  EXPECT_EQ(test("normal"), (V{0, 1, 0, 0, 1}));
}

TEST(Float, ApproximationsAreWithinTheirBounds) {
  std::vector<float> x;
  for (int i = -400; i <= 400; ++i)
    x.push_back(float(i) * 0.37f + 0.001f);
  struct Bound {
    const char *text;
    double (*f)(double);
    double relative, absolute;
  };
  // PTX ISA 9.7.3.13 to 9.7.3.22.
  const Bound bounds[] = {{"rcp.approx.f32 D, A;", [](double v) { return 1 / v; }, 0x1p-23, 0},
                          {"sqrt.approx.ftz.f32 D, A;", [](double v) { return std::sqrt(v); }, 0x1p-23, 0},
                          {"rsqrt.approx.f32 D, A;", [](double v) { return 1 / std::sqrt(v); }, 0x1.2p-23, 0},
                          {"sin.approx.f32 D, A;", [](double v) { return std::sin(v); }, 0, 0x1p-14},
                          {"cos.approx.ftz.f32 D, A;", [](double v) { return std::cos(v); }, 0, 0x1p-14},
                          {"lg2.approx.f32 D, A;", [](double v) { return std::log2(v); }, 0x1p-22, 0x1p-22},
                          {"ex2.approx.f32 D, A;", [](double v) { return std::exp2(v); }, 0x1p-22, 0x1p-149},
                          {"tanh.approx.f32 D, A;", [](double v) { return std::tanh(v); }, 0x1p-11, 0}};
  for (const Bound &bound : bounds) {
    auto got = lanewise<float>(bound.text, x);
    for (size_t i = 0; i < x.size(); ++i) {
      double want = bound.f(x[i]);
      if (std::isnan(want))
        ASSERT_EQ(asBits(got[i]), 0x7fffffffU) << bound.text << x[i];
      else if (std::isinf(float(want)))
        ASSERT_EQ(got[i], float(want)) << bound.text << x[i];
      else
        ASSERT_LE(std::fabs(got[i] - want), std::fabs(want) * bound.relative + bound.absolute)
            << bound.text << x[i];
    }
  }
  using V = std::vector<uint32_t>;
  V special{0, 0x80000000, 0x7f800000, 0xff800000, 0x00000001};
  EXPECT_EQ(lanewise<uint32_t>("rcp.approx.ftz.f32 D, A;", special),
            (V{0x7f800000, 0xff800000, 0, 0x80000000, 0x7f800000}));
  EXPECT_EQ(lanewise<uint32_t>("rsqrt.approx.ftz.f32 D, A;", special),
            (V{0x7f800000, 0xff800000, 0, 0x7fffffff, 0x7f800000}));
  EXPECT_EQ(lanewise<uint32_t>("lg2.approx.ftz.f32 D, A;", special),
            (V{0xff800000, 0xff800000, 0x7f800000, 0x7fffffff, 0xff800000}));
  EXPECT_EQ(lanewise<uint32_t>("ex2.approx.ftz.f32 D, A;", special),
            (V{0x3f800000, 0x3f800000, 0x7f800000, 0, 0x3f800000}));
  EXPECT_EQ(lanewise<uint32_t>("sin.approx.f32 D, A;", special),
            (V{0, 0x80000000, 0x7fffffff, 0x7fffffff, 1}));
}

TEST(Float, ApproximateDivisionAndF64) {
  std::vector<float> a{1, 2, INFINITY, 1, 6, 0}, b{3, 0x1.8p127f, 0x1.8p127f, 0, 2, 0};
  auto approximate = lanewise<float>("div.approx.f32 D, A, B;", a, b);
  EXPECT_NEAR(approximate[0], 1.0 / 3, 0x1p-23);
  // For |b| above 2^126 a zero, a NaN if a is infinite (PTX ISA 9.7.3.8).
  EXPECT_EQ(approximate[1], 0.0f);
  EXPECT_TRUE(std::isnan(approximate[2]) && std::isinf(approximate[3]) && std::isnan(approximate[5]));
  auto full = lanewise<float>("div.full.ftz.f32 D, A, B;", a, b);
  EXPECT_NEAR(full[0], 1.0 / 3, 0x1p-24);
  EXPECT_EQ(full[4], 3.0f);
  auto reciprocal = lanewise<uint64_t>("rcp.approx.ftz.f64 D, A;", std::vector<double>{3, 0, 0x1p-1070});
  EXPECT_EQ(reciprocal[0] & 0xffffffff, 0U);
  EXPECT_NEAR(asDouble(reciprocal[0]), 1.0 / 3, 0x1p-20);
  EXPECT_EQ(reciprocal[1], uint64_t(0x7ff) << 52);
  EXPECT_EQ(reciprocal[2], uint64_t(0x7ff) << 52);
  EXPECT_DOUBLE_EQ(lanewise<double>("rsqrt.approx.f64 D, A;", std::vector<double>{2})[0], 1 / std::sqrt(2.0));
}

TEST(Float, LanesThatAreOffKeepTheirs) {
  auto got = lanewise<uint32_t>("mov.b32 D, 7;\nsetp.lt.f32 %p1, A, 0f00000000;\n@%p1 add.f32 D, A, A;",
                                std::vector<float>{-1, 2, -3, 4});
  EXPECT_EQ(got, (std::vector<uint32_t>{asBits(-2.0f), 7, asBits(-6.0f), 7}));
}

TEST(Float, WhatAssemblersTakeIsKnown) {
  for (const auto &message : refusals(
           {"add.f32 %f1, %f2, %f3;", "add.ftz.sat.f32 %f1, %f2, %f3;", "add.rz.sat.f32.bf16 %f1, %h1, %f2;",
            "add.f32 %r1, %r2, %r3;", "sub.rn.f32x2 %d1, %d2, %d3;", "mul.rn.f32x2 %d1, %d2, %d3;",
            "fma.rn.ftz.f32x2 %d1, %d2, %d3, %d4;", "mad.rn.f64 %e1, %e2, %e3, %e4;",
            "max.ftz.NaN.abs.f32 %f1, %f2, %f3, %f4;", "rcp.approx.ftz.f64 %e1, %e2;",
            "rsqrt.approx.ftz.f64 %e1, %e2;", "sin.approx.ftz.f32 %f1, %f2;",
            "div.full.ftz.f32 %f1, %f2, %f3;", "div.rn.f64 %e1, %e2, %e3;", "testp.subnormal.f64 %p1, %e1;",
            "copysign.f64 %e1, %e2, %e3;", "fma.rn.f32 %f1, %f2, 0f3F800000, %f3;"}))
    EXPECT_EQ(message, "");
}

TEST(Float, WhatAssemblersRefuseIsRefused) {
  std::vector<std::string> wrong{"add.ftz.f32.f16 %f1, %h1, %f2;",
                                 "mul.f32.f16 %f1, %f2, %f3;",
                                 "add.sat.f32x2 %d1, %d2, %d3;",
                                 "add.sat.f64 %e1, %e2, %e3;",
                                 "fma.f32 %f1, %f2, %f3, %f4;",
                                 "fma.f64 %e1, %e2, %e3, %e4;",
                                 "mad.f32 %f1, %f2, %f3, %f4;",
                                 "mad.rn.f16 %h1, %h2, %h3, %h4;",
                                 "max.xorsign.abs.f32 %f1, %f2, %f3, %f4;",
                                 "max.abs.f32 %f1, %f2, %f3;",
                                 "max.xorsign.f32 %f1, %f2, %f3;",
                                 "max.NaN.f64 %e1, %e2, %e3;",
                                 "tanh.approx.ftz.f32 %f1, %f2;",
                                 "rcp.approx.f64 %e1, %e2;",
                                 "rcp.f32 %f1, %f2;",
                                 "sqrt.approx.f64 %e1, %e2;",
                                 "sqrt.f32 %f1, %f2;",
                                 "rsqrt.f32 %f1, %f2;",
                                 "sin.f32 %f1, %f2;",
                                 "div.f32 %f1, %f2, %f3;",
                                 "div.rn.ftz.f64 %e1, %e2, %e3;",
                                 "div.rn.f16 %h1, %h2, %h3;",
                                 "abs.ftz.f64 %e1, %e2;",
                                 "copysign.f16 %h1, %h2, %h3;",
                                 "neg.f32x2 %d1, %d2;",
                                 "min.f32x2 %d1, %d2, %d3;",
                                 "add.rna.f32 %f1, %f2, %f3;",
                                 "add.f32 %f1, %f2;",
                                 "add.f32 %f1, %f2, %e3;",
                                 "testp.f32 %p1, %f1;"};
  auto messages = refusals(wrong);
  for (size_t i = 0; i < wrong.size(); ++i)
    EXPECT_NE(messages[i], "") << wrong[i];
  EXPECT_EQ(messages[1], "mul.f32.f16: .f16 is not known here");
  EXPECT_EQ(messages[4], "fma.f32: one of .rn, .rz, .rm, .rp is missing");
  EXPECT_EQ(messages[10], "max.xorsign.f32: .xorsign needs .abs");
}

} // namespace
