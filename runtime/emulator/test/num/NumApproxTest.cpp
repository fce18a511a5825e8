// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The approximations within PTX's errors, and its tables of special values.

#include "NumReference.h"
#include "num/Approx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace fp8emu;
using namespace fp8emu::num::test;
using num::bitsOf;
using num::floatOf;

namespace {

const float kInf = std::numeric_limits<float>::infinity();
const float kNaN = floatOf(0x7fffffffU);
const float kTiny = 0x1p-130f; // subnormal

struct Row {
  float input;
  float result;
};

void expectTable(const std::function<float(float)> &compute, std::initializer_list<Row> rows) {
  for (const Row &row : rows)
    EXPECT_EQ(bitsOf(compute(row.input)), bitsOf(row.result)) << row.input << " gives " << compute(row.input);
}

TEST(NumApproxTest, TablesOfPtx) {
  auto bound = [](float (*function)(float, bool), bool ftz) {
    return [=](float a) { return function(a, ftz); };
  };
  for (bool ftz : {false, true}) {
    expectTable(bound(num::rcpApprox, ftz),
                {{-kInf, -0.0f}, {-0.0f, -kInf}, {0.0f, kInf}, {kInf, 0.0f}, {kNaN, kNaN}});
    expectTable(bound(num::sqrtApprox, ftz),
                {{-kInf, kNaN}, {-1.0f, kNaN}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {kInf, kInf}, {kNaN, kNaN}});
    expectTable(bound(num::rsqrtApprox, ftz),
                {{-kInf, kNaN}, {-1.0f, kNaN}, {-0.0f, -kInf}, {0.0f, kInf}, {kInf, 0.0f}, {kNaN, kNaN}});
    expectTable(bound(num::sinApprox, ftz),
                {{-kInf, kNaN}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {kInf, kNaN}, {kNaN, kNaN}});
    expectTable(bound(num::cosApprox, ftz),
                {{-kInf, kNaN}, {-0.0f, 1.0f}, {0.0f, 1.0f}, {kInf, kNaN}, {kNaN, kNaN}});
    expectTable(bound(num::lg2Approx, ftz), {{-kInf, kNaN},
                                             {-1.0f, kNaN},
                                             {-0.0f, -kInf},
                                             {0.0f, -kInf},
                                             {kInf, kInf},
                                             {kNaN, kNaN},
                                             {8.0f, 3.0f}});
    expectTable(bound(num::ex2Approx, ftz),
                {{-kInf, 0.0f}, {-0.0f, 1.0f}, {0.0f, 1.0f}, {kInf, kInf}, {kNaN, kNaN}, {-3.0f, 0.125f}});
  }
  expectTable([](float a) { return num::tanhApprox(a); },
              {{-kInf, -1.0f}, {-0.0f, -0.0f}, {0.0f, 0.0f}, {kInf, 1.0f}, {kNaN, kNaN}, {kTiny, kTiny}});
  // Subnormal operands and results are flushed.
  expectTable(bound(num::rcpApprox, true), {{kTiny, kInf}, {-kTiny, -kInf}, {-0x1.8p126f, -0.0f}});
  expectTable(bound(num::rcpApprox, false),
              {{0x1p-127f, 0x1p127f}, {0x1p127f, 0x1p-127f}, {0x1p-129f, kInf}});
  expectTable(bound(num::sqrtApprox, true), {{kTiny, 0.0f}, {-kTiny, -0.0f}});
  expectTable(bound(num::sqrtApprox, false), {{kTiny, 0x1p-65f}, {-kTiny, kNaN}});
  expectTable(bound(num::rsqrtApprox, true), {{kTiny, kInf}, {-kTiny, -kInf}});
  expectTable(bound(num::sinApprox, true), {{-kTiny, -0.0f}});
  expectTable(bound(num::lg2Approx, true), {{kTiny, -kInf}, {-kTiny, -kInf}});
  expectTable(bound(num::lg2Approx, false), {{kTiny, -130.0f}});
  expectTable(bound(num::ex2Approx, true), {{-127.0f, 0.0f}, {kTiny, 1.0f}});
  expectTable(bound(num::ex2Approx, false), {{-127.0f, 0x1p-127f}, {-151.0f, 0.0f}, {128.0f, kInf}});
}

TEST(NumApproxTest, Divisions) {
  auto approx = [](float a, float b, bool ftz = false) { return bitsOf(num::divApprox(a, b, ftz)); };
  EXPECT_EQ(approx(6.0f, 3.0f), bitsOf(2.0f));
  // 2^126 < |b| < 2^128
  EXPECT_EQ(approx(0x1p127f, 0x1.8p126f), bitsOf(0.0f));
  EXPECT_EQ(approx(-0x1p127f, 0x1.8p127f), bitsOf(-0.0f));
  EXPECT_EQ(approx(1.0f, -0x1.8p127f), bitsOf(-0.0f));
  EXPECT_EQ(approx(kInf, 0x1.8p127f), 0x7fffffffU);
  EXPECT_EQ(approx(kInf, 0x1p126f), bitsOf(kInf));
  EXPECT_EQ(approx(0x1p126f, 0x1p126f), bitsOf(1.0f));
  EXPECT_EQ(approx(1.0f, kInf), bitsOf(0.0f));
  EXPECT_EQ(approx(kInf, kInf), 0x7fffffffU);
  EXPECT_EQ(approx(1.0f, 0.0f), bitsOf(kInf));
  EXPECT_EQ(approx(0.0f, 0.0f), 0x7fffffffU);
  EXPECT_EQ(approx(kNaN, 1.0f), 0x7fffffffU);
  EXPECT_EQ(approx(1.0f, kNaN), 0x7fffffffU);
  EXPECT_EQ(approx(1.0f, kTiny, true), bitsOf(kInf));
  EXPECT_EQ(approx(-kTiny, 1.0f, true), bitsOf(-0.0f));
  EXPECT_EQ(num::divFull(0x1p127f, 0x1.8p127f, false), 0x1.555556p-1f);
  EXPECT_EQ(bitsOf(num::divFull(0x1p-126f, 2.0f, true)), bitsOf(0.0f));
  std::vector<float> values = manyFloats(100000, 21);
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    float a = values[i], b = values[i + 1];
    double exact = static_cast<double>(a) / b;
    if (!(std::fabs(b) >= 0x1p-126f && std::fabs(b) <= 0x1p126f && std::fabs(exact) >= 0x1p-126 &&
          std::fabs(exact) < 0x1.fffffcp127))
      continue;
    double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    ASSERT_LE(std::fabs(num::divApprox(a, b, false) - exact), 2 * unit) << a << " / " << b;
    ASSERT_LE(std::fabs(num::divFull(a, b, false) - exact), 2 * unit) << a << " / " << b;
  }
}

TEST(NumApproxTest, ErrorsWithinBounds) {
  for (float value : manyFloats(50000, 22)) {
    if (!std::isfinite(value))
      continue;
    float positive = std::fabs(value);
    auto exact = static_cast<long double>(positive);
    if (positive >= 0x1p-126f) {
      ASSERT_NEAR(num::sqrtApprox(positive, false) / std::sqrt(exact), 1, 0x1p-23);
      ASSERT_NEAR(num::rsqrtApprox(positive, false) * std::sqrt(exact), 1, 0x1.12p-23); // 2^-22.9
      long double log = std::log2(exact);
      bool near = positive > 0.5f && positive < 2;
      ASSERT_NEAR(num::lg2Approx(positive, false), log, near ? 0x1p-22 : std::fabs(log) * 0x1p-22);
    }
    auto wide = static_cast<long double>(value);
    if (positive < 300) {
      ASSERT_NEAR(num::sinApprox(value, false), std::sin(wide), 0x1p-21);
      ASSERT_NEAR(num::cosApprox(value, false), std::cos(wide), 0x1p-21);
    }
    if (positive < 126) {
      ASSERT_NEAR(num::ex2Approx(value, false) / std::exp2(wide), 1, 0x1p-22);
    }
    if (positive > 0x1p-126f) {
      ASSERT_NEAR(num::tanhApprox(value) / std::tanh(wide), 1, 0x1p-11);
    }
  }
}

TEST(NumApproxTest, DoublesKeepTheirUpperHalf) {
  auto rcp = [](uint64_t bits) { return bitsOf(num::rcpApproxFtz(num::doubleOf(bits))); };
  auto rsqrt = [](uint64_t bits) { return bitsOf(num::rsqrtApproxFtz(num::doubleOf(bits))); };
  const uint64_t sign = uint64_t(1) << 63, inf = uint64_t(0x7ff) << 52, nan = 0x7fffffff00000000U;
  EXPECT_EQ(rcp(sign | inf), sign);
  EXPECT_EQ(rcp(inf), 0U);
  EXPECT_EQ(rcp(sign), sign | inf);
  EXPECT_EQ(rcp(0), inf);
  EXPECT_EQ(rcp(1), inf);
  EXPECT_EQ(rcp(sign | 0x000fffff00000000U), sign | inf);
  EXPECT_EQ(rcp(0xfff8000000000001U), nan);
  EXPECT_EQ(rcp(0x7fe8000000000000U), 0U); // a subnormal result
  EXPECT_EQ(rcp(bitsOf(4.0)), bitsOf(0.25));
  EXPECT_EQ(rcp(bitsOf(3.0)), 0x3fd5555500000000U);
  EXPECT_EQ(rcp(bitsOf(3.0) | 0xffffffffU), 0x3fd5555500000000U); // the lower half does not count
  EXPECT_EQ(rsqrt(sign | inf), nan);
  EXPECT_EQ(rsqrt(bitsOf(-1.0)), nan);
  EXPECT_EQ(rsqrt(sign | 1), sign | inf);
  EXPECT_EQ(rsqrt(sign), sign | inf);
  EXPECT_EQ(rsqrt(1), inf);
  EXPECT_EQ(rsqrt(inf), 0U);
  EXPECT_EQ(rsqrt(0x7ff8000000000000U), nan);
  EXPECT_EQ(rsqrt(bitsOf(16.0)), bitsOf(0.25));
  EXPECT_NEAR(num::rsqrtApprox(3.0), 1 / std::sqrt(3.0), 1e-15);
}

TEST(NumApproxTest, HalvesInEveryValue) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    auto bits = static_cast<uint16_t>(code);
    double half = num::decode(num::F16, bits), brain = num::decode(num::BF16, bits);
    if (std::isnan(half)) {
      ASSERT_EQ(num::tanhApprox<num::F16>(bits), 0x7fff);
      ASSERT_EQ(num::ex2Approx<num::F16>(bits, false), 0x7fff);
    } else {
      ASSERT_NEAR(num::decode(num::F16, num::tanhApprox<num::F16>(bits)), std::tanh(half), 0x1p-11);
      double got = num::decode(num::F16, num::ex2Approx<num::F16>(bits, false)), want = std::exp2(half);
      if (want < 65504 && want > 0x1p-14) {
        ASSERT_NEAR(got / want, 1, 0x1p-11);
      }
    }
    if (std::isnan(brain)) {
      ASSERT_EQ(num::tanhApprox<num::BF16>(bits), 0x7fff);
    } else {
      ASSERT_NEAR(num::decode(num::BF16, num::tanhApprox<num::BF16>(bits)), std::tanh(brain), 0x1p-9);
      double got = num::decode(num::BF16, num::ex2Approx<num::BF16>(bits, true)), want = std::exp2(brain);
      if (want < 0x1.fp127 && want > 0x1p-126) {
        ASSERT_NEAR(got / want, 1, 0x1p-8);
      }
    }
  }
  EXPECT_EQ(num::ex2Approx<num::F16>(0xfc00, false), 0x0000);
  EXPECT_EQ(num::ex2Approx<num::F16>(0x8000, false), 0x3c00);
  EXPECT_EQ(num::ex2Approx<num::BF16>(0x0001, true), 0x3f80);
  EXPECT_EQ(num::ex2Approx<num::BF16>(0xc300, true), 0x0000); // 2^-128
  EXPECT_EQ(num::tanhApprox<num::F16>(0x8000), 0x8000);
  EXPECT_EQ(num::tanhApprox<num::F16>(0x0001), 0x0001);
}

} // namespace
