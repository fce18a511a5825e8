// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic in f16 and bf16 against exact sums and products, rounded among a list of
// all the format's values.

#include "Lanewise.h"

#include <random>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

__extension__ typedef __float128 Exact;

struct Format {
  const char *name;
  const Grid &grid;
  /// Codes whose sums and products 113 bits hold.
  uint16_t least, most;
};
const Format kFormats[] = {{"f16", kF16, 0, 0x7bff}, {"bf16", kBF16, 0x3400, 0x4b00}};

std::vector<uint16_t> randomCodes(const Format &format, unsigned seed) {
  std::mt19937 numbers(seed);
  std::vector<uint16_t> codes;
  for (int i = 0; i < 4096; ++i)
    codes.push_back(
        uint16_t((format.least + numbers() % (format.most - format.least + 1)) | (numbers() & 0x8000)));
  return codes;
}

uint16_t nearest(const Format &format, Exact value, bool negativeZero) {
  if (value == 0)
    return negativeZero ? 0x8000 : 0;
  return uint16_t(format.grid.round(value, 'n')); // the code beyond the largest is infinity
}

TEST(Half, ArithmeticRoundsOnce) {
  for (const Format &format : kFormats) {
    auto a = randomCodes(format, 1), b = randomCodes(format, 2), c = randomCodes(format, 3);
    std::string type = std::string(".") + format.name;
    auto sum = lanewise<uint16_t>("add" + type + " D, A, B;", a, b);
    auto difference = lanewise<uint16_t>("sub.rn" + type + " D, A, B;", a, b);
    auto product = lanewise<uint16_t>("mul" + type + " D, A, B;", a, b);
    auto fma = lanewise<uint16_t>("fma.rn" + type + " D, A, B, C;", a, b, c);
    auto relu = lanewise<uint16_t>("fma.rn.relu" + type + " D, A, B, C;", a, b, c);
    for (size_t i = 0; i < a.size(); ++i) {
      Exact x = format.grid[a[i]], y = format.grid[b[i]], z = format.grid[c[i]];
      ASSERT_EQ(sum[i], nearest(format, x + y, (a[i] & b[i]) >> 15)) << type << " " << a[i] << " " << b[i];
      ASSERT_EQ(difference[i], nearest(format, x - y, (a[i] & ~b[i]) >> 15 & 1)) << type;
      ASSERT_EQ(product[i], nearest(format, x * y, (a[i] ^ b[i]) >> 15))
          << type << " " << a[i] << " " << b[i];
      uint16_t want = nearest(format, x * y + z, false);
      if (x * y + z != 0) {
        ASSERT_EQ(fma[i], want) << type << " " << a[i] << " " << b[i] << " " << c[i];
        ASSERT_EQ(relu[i], want & 0x8000 ? 0 : want);
      }
    }
  }
}

TEST(Half, PairsAreTwo) {
  auto a = randomCodes(kFormats[0], 4), b = randomCodes(kFormats[0], 5);
  std::vector<uint32_t> x, y;
  for (size_t i = 0; i < a.size(); ++i) {
    x.push_back(a[i] | uint32_t(b[i]) << 16);
    y.push_back(b[i] | uint32_t(a[a.size() - 1 - i]) << 16);
  }
  for (std::string text : {"add.ftz.sat.", "mul.rn.", "min.", "max.NaN.xorsign.abs.", "sub."}) {
    auto low = lanewise<uint16_t>(text + "f16 D, A, B;", a, b);
    std::vector<uint16_t> reversed(a.rbegin(), a.rend());
    auto high = lanewise<uint16_t>(text + "f16 D, A, B;", b, reversed);
    auto pair = lanewise<uint32_t>(text + "f16x2 D, A, B;", x, y);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(pair[i], low[i] | uint32_t(high[i]) << 16) << text;
  }
}

TEST(Half, ModifiersAndSpecialValues) {
  using V = std::vector<uint16_t>;
  V a{0x0001, 0x8001, 0x7e01, 0xbc00, 0x4000, 0x7c00}, b{0x0000, 0x8001, 0x3c00, 0x3800, 0x4000, 0xfc00};
  EXPECT_EQ(lanewise<uint16_t>("add.f16 D, A, B;", a, b), (V{1, 0x8002, 0x7fff, 0xb800, 0x4400, 0x7fff}));
  EXPECT_EQ(lanewise<uint16_t>("add.ftz.f16 D, A, B;", a, b), (V{0, 0x8000, 0x7fff, 0xb800, 0x4400, 0x7fff}));
  EXPECT_EQ(lanewise<uint16_t>("add.sat.f16 D, A, B;", a, b), (V{1, 0, 0, 0, 0x3c00, 0}));
  EXPECT_EQ(lanewise<uint16_t>("neg.ftz.f16 D, A;", a), (V{0x8000, 0, 0xfe01, 0x3c00, 0xc000, 0xfc00}));
  EXPECT_EQ(lanewise<uint16_t>("abs.f16 D, A;", a), (V{1, 1, 0x7e01, 0x3c00, 0x4000, 0x7c00}));
  EXPECT_EQ(lanewise<uint16_t>("min.f16 D, A, B;", a, b), (V{0, 0x8001, 0x3c00, 0xbc00, 0x4000, 0xfc00}));
  EXPECT_EQ(lanewise<uint16_t>("min.NaN.f16 D, A, B;", a, b), (V{0, 0x8001, 0x7fff, 0xbc00, 0x4000, 0xfc00}));
  EXPECT_EQ(lanewise<uint16_t>("max.ftz.f16 D, A, B;", a, b), (V{0, 0x8000, 0x3c00, 0x3800, 0x4000, 0x7c00}));
  EXPECT_EQ(lanewise<uint16_t>("fma.rn.ftz.relu.f16 D, A, B, A;", a, b),
            (V{0, 0, 0x7fff, 0, 0x4600, 0x7fff}));
}

TEST(Half, Approximations) {
  std::vector<uint16_t> f16, bf16;
  for (uint32_t code = 0; code < 0x10000; code += 37) {
    f16.push_back(uint16_t(code));
    bf16.push_back(uint16_t(code));
  }
  auto check = [](const char *text, const Grid &grid, const std::vector<uint16_t> &in, double (*f)(double),
                  double relative, double absolute) {
    auto got = lanewise<uint16_t>(text, in);
    for (size_t i = 0; i < in.size(); ++i) {
      if (!grid.isFinite(in[i]))
        continue;
      double want = f(grid[in[i]]);
      if (want > grid.max())
        ASSERT_EQ(got[i], uint16_t(grid.size())) << text << in[i];
      else
        ASSERT_LE(std::fabs(grid[got[i]] - want), want * relative + absolute) << text << in[i];
    }
  };
  auto tanh = [](double v) { return std::tanh(v); };
  auto ex2 = [](double v) { return std::exp2(v); };
  // PTX ISA 9.7.4.9, 9.7.4.10.
  check("tanh.approx.f16 D, A;", kF16, f16, tanh, 0, 0x1p-10);
  check("tanh.approx.bf16 D, A;", kBF16, bf16, tanh, 0, 0x1p-8);
  check("ex2.approx.f16 D, A;", kF16, f16, ex2, 0x1p-9, 0x1p-24);
  check("ex2.approx.ftz.bf16 D, A;", kBF16, bf16, ex2, 0x1p-7, 0x1p-126);
  auto pair = lanewise<uint32_t>("ex2.approx.f16x2 D, A;", std::vector<uint32_t>{0x40003c00});
  EXPECT_EQ(pair[0], 0x44004000U);
}

TEST(Half, WhatAssemblersTakeIsKnownAndNothingElse) {
  for (const auto &message : refusals(
           {"fma.rn.ftz.relu.f16 %h1, %h2, %h3, %h4;", "fma.rn.oob.f16 %h1, %h2, %h3, %h4;",
            "fma.rn.oob.relu.bf16x2 %r1, %r2, %r3, %r4;", "add.ftz.sat.f16x2 %r1, %r2, %r3;",
            "mul.rn.bf16x2 %r1, %r2, %r3;", "abs.ftz.f16x2 %r1, %r2;", "neg.bf16 %h1, %h2;",
            "max.ftz.NaN.xorsign.abs.f16x2 %r1, %r2, %r3;", "max.NaN.xorsign.abs.bf16x2 %r1, %r2, %r3;",
            "tanh.approx.bf16x2 %r1, %r2;", "ex2.approx.f16x2 %r1, %r2;", "ex2.approx.ftz.bf16x2 %r1, %r2;"}))
    EXPECT_EQ(message, "");
  std::vector<std::string> wrong{"fma.f16 %h1, %h2, %h3, %h4;",
                                 "fma.rn.sat.relu.f16 %h1, %h2, %h3, %h4;",
                                 "fma.rn.oob.ftz.f16 %h1, %h2, %h3, %h4;",
                                 "fma.rn.ftz.bf16 %h1, %h2, %h3, %h4;",
                                 "fma.rn.sat.bf16 %h1, %h2, %h3, %h4;",
                                 "add.sat.bf16 %h1, %h2, %h3;",
                                 "add.ftz.bf16 %h1, %h2, %h3;",
                                 "add.rz.f16 %h1, %h2, %h3;",
                                 "neg.ftz.bf16 %h1, %h2;",
                                 "abs.ftz.bf16 %h1, %h2;",
                                 "min.ftz.bf16 %h1, %h2, %h3;",
                                 "max.f16 %h1, %h2, %h3, %h4;",
                                 "max.abs.bf16 %h1, %h2, %h3;",
                                 "ex2.approx.ftz.f16 %h1, %h2;",
                                 "ex2.approx.bf16 %h1, %h2;",
                                 "tanh.approx.ftz.bf16 %h1, %h2;"};
  auto messages = refusals(wrong);
  for (size_t i = 0; i < wrong.size(); ++i)
    EXPECT_NE(messages[i], "") << wrong[i];
}

} // namespace
