// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt to and from f16, bf16 and tf32, one number each, against a list of all values of the 16-bit formats.

#include "Lanewise.h"

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

uint32_t halfOf(const Grid &grid, float value, char rounding, bool satfinite, bool relu) {
  if (std::isnan(value))
    return 0x7fff;
  if (relu && std::signbit(value))
    return 0;
  uint32_t sign = std::signbit(value) ? 0x8000 : 0, infinity = uint32_t(grid.size());
  uint32_t code = std::isinf(value) ? infinity : grid.round((long double)value, rounding) & 0x7fff;
  return sign | (satfinite ? std::min(code, infinity - 1) : code);
}

TEST(Convert, FloatsToHalves) {
  auto values = edgeFloats();
  for (uint32_t code = 0; code < 0x7c00; code += 5)
    for (float offset : {0.5f, 0.49f, 0.51f, 1.0f, 0.0f})
      values.push_back(float(kF16[code] + offset * (kF16[code + (code < 0x7bff)] - kF16[code])));
  for (const auto &[type, grid] : {std::pair<const char *, const Grid &>{"f16", kF16}, {"bf16", kBF16}})
    for (char name : {'n', 'z', 'm', 'p'})
      for (int flags = 0; flags < 4; ++flags) {
        bool relu = flags & 1, satfinite = flags & 2;
        if (flags && (name == 'm' || name == 'p'))
          continue;
        std::string text = std::string("cvt.r") + name + (relu ? ".relu" : "") +
                           (satfinite ? ".satfinite." : ".") + type + ".f32 D, A;";
        auto got = lanewise<uint16_t>(text, values);
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(got[i], halfOf(grid, values[i], name, satfinite, relu)) << text << values[i];
        if (flags == 0 && std::string(type) == "f16") { // zero-extended
          auto wide = lanewise<uint64_t>(text, values);
          for (size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(wide[i], got[i]);
        }
      }
  EXPECT_EQ(lanewise<uint16_t>("cvt.rn.sat.f16.f32 D, A;", std::vector<float>{-1, 0.5f, 2, NAN, -0.0f}),
            (std::vector<uint16_t>{0, 0x3800, 0x3c00, 0, 0}));
}

TEST(Convert, DoublesToHalvesRoundOnce) {
  // Values that rounding to f32 first would take for a tie.
  std::vector<double> values{1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40, 65519.999999, 65520, 0x1p-25,
                             0x1.00000001p-25};
  EXPECT_EQ(lanewise<uint16_t>("cvt.rn.f16.f64 D, A;", values),
            (std::vector<uint16_t>{0x3c01, 0x3c00, 0x7bff, 0x7c00, 0, 1}));
  EXPECT_EQ(
      lanewise<uint16_t>("cvt.rn.bf16.f64 D, A;", std::vector<double>{1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8})[0],
      0x3f81);
}

TEST(Convert, HalvesToFloats) {
  std::vector<uint16_t> codes;
  for (uint32_t code = 0; code < 0x10000; ++code)
    codes.push_back(uint16_t(code));
  auto f16 = lanewise<uint32_t>("cvt.f32.f16 D, A;", codes);
  auto bf16 = lanewise<float>("cvt.f32.bf16 D, A;", codes);
  auto wide = lanewise<double>("cvt.f64.f16 D, A;", codes);
  auto toBF16 = lanewise<uint16_t>("cvt.bf16.f16 D, A;", codes);
  auto toF16 = lanewise<uint16_t>("cvt.rz.f16.bf16 D, A;", codes);
  for (uint32_t code = 0; code < 0x10000; ++code) {
    uint32_t sign = code & 0x8000;
    if (kF16.isFinite(code)) {
      ASSERT_EQ(f16[code], asBits(float(kF16[code])));
      ASSERT_EQ(asBits(wide[code]), asBits(kF16[code]));
      ASSERT_EQ(toBF16[code], kBF16.round((long double)std::fabs(kF16[code]), 'n') | sign) << code;
    } else {
      ASSERT_EQ(f16[code], (code & 0x7fff) == 0x7c00 ? 0x7f800000 | sign << 16 : 0x7fffffff);
    }
    if (kBF16.isFinite(code)) {
      ASSERT_EQ(asBits(bf16[code]), asBits(float(kBF16[code])));
      ASSERT_EQ(toF16[code], kF16.round((long double)std::fabs(kBF16[code]), 'z') | sign) << code;
    } else {
      ASSERT_EQ(std::isnan(bf16[code]), (code & 0x7fff) != 0x7f80);
    }
  }
}

TEST(Convert, TF32KeepsTenBits) {
  using V = std::vector<uint32_t>;
  V values{0x3f801000, 0x3f800fff, 0x3f803000, 0xbf801000, 0x7f7fffff,
           0x7fc00001, 0xff800000, 0x00000fff, 0x00001000};
  EXPECT_EQ(
      lanewise<uint32_t>("cvt.rna.tf32.f32 D, A;", values),
      (V{0x3f802000, 0x3f800000, 0x3f804000, 0xbf802000, 0x7f800000, 0x7fffffff, 0xff800000, 0, 0x2000}));
  EXPECT_EQ(lanewise<uint32_t>("cvt.rn.tf32.f32 D, A;", values),
            (V{0x3f800000, 0x3f800000, 0x3f804000, 0xbf800000, 0x7f800000, 0x7fffffff, 0xff800000, 0, 0}));
  EXPECT_EQ(lanewise<uint32_t>("cvt.rz.relu.satfinite.tf32.f32 D, A;", values),
            (V{0x3f800000, 0x3f800000, 0x3f802000, 0, 0x7f7fe000, 0x7fffffff, 0, 0, 0}));
}

} // namespace
