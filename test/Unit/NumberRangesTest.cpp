// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges of results contain what an operation computes from numbers of the ranges of its operands.

#include "fp8/Analysis/Attention/NumberRanges.h"
#include "fp8/Analysis/Attention/ScalarValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <random>

#include <gtest/gtest.h>

using namespace mlir;
using fp8::NumberRange;
using fp8::ScalarValue;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class NumberRangesTest : public testing::Test {
protected:
  NumberRangesTest() { context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect>(); }

  /// Parses `text`, an operation on %a and %b, of `type`.
  Operation *parse(llvm::StringRef type, llvm::StringRef text) {
    std::string name = type.str();
    std::string source =
        "func.func @f(%a: " + name + ", %b: " + name + ") {\n%0 = " + text.str() + "\nreturn\n}";
    module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    return &(*module->getOps<func::FuncOp>().begin()).getBody().front().front();
  }
  NumberRange compute(llvm::StringRef type, llvm::StringRef text, llvm::ArrayRef<NumberRange> operands) {
    std::optional<NumberRange> range = fp8::computeFloat(parse(type, text), operands);
    EXPECT_TRUE(range);
    return range.value_or(NumberRange::unknown());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// Rounds towards zero to 8 bits, which every type of the tests has.
double toBF16(double number) {
  int exponent;
  double fraction = std::frexp(number, &exponent);
  return std::isfinite(number) ? std::ldexp(std::trunc(std::ldexp(fraction, 8)), exponent - 8) : number;
}

bool contains(const NumberRange &range, double number) {
  return std::isnan(number) ? range.hasNaN : range.low <= number && number <= range.high;
}

TEST_F(NumberRangesTest, ContainWhatIsComputed) {
  std::mt19937 random(20261129);
  auto draw = [&]() -> double {
    std::uniform_real_distribution<double> exponent(-30, 30), sign(-1, 1);
    switch (random() % 8) {
    case 0:
      return 0;
    case 1:
      return sign(random) < 0 ? -kInf : kInf;
    default:
      return toBF16(std::copysign(std::exp2(exponent(random)), sign(random)));
    }
  };
  const char *operations[] = {"arith.addf %a, %b",     "arith.subf %a, %b", "arith.mulf %a, %b",
                              "arith.divf %a, %b",     "arith.negf %a",     "arith.maximumf %a, %b",
                              "arith.minimumf %a, %b", "math.absf %a",      "math.exp %a",
                              "math.exp2 %a",          "math.log %a",       "math.tanh %a"};
  for (const char *operation : operations) {
    for (const char *type : {"f32", "bf16"}) {
      Operation *op = parse(type, std::string(operation) + " : " + type);
      for (unsigned trial = 0; trial < 400; ++trial) {
        llvm::SmallVector<NumberRange> ranges;
        llvm::SmallVector<llvm::SmallVector<double>> ends;
        for (unsigned i = 0; i < op->getNumOperands(); ++i) {
          double x = draw(), y = draw();
          ranges.push_back({std::min(x, y), std::max(x, y)});
          ends.push_back({x, y});
          if (std::isfinite(x) && std::isfinite(y))
            ends.back().push_back(toBF16(x + (y - x) * 0.3));
        }
        std::optional<NumberRange> range = fp8::computeFloat(op, ranges);
        ASSERT_TRUE(range);
        for (double x : ends.front())
          for (double y : ends.back()) {
            llvm::SmallVector<ScalarValue> operands{x, y};
            operands.resize(op->getNumOperands(), 0.0);
            auto result = std::get<double>(*fp8::computeScalar(op, operands, fp8::Rounding::toType));
            EXPECT_TRUE(contains(*range, result))
                << operation << " " << type << ": " << x << ", " << y << " -> " << result << " not in ["
                << range->low << ", " << range->high << "]";
          }
      }
    }
  }
}

TEST_F(NumberRangesTest, ZerosAreExact) {
  NumberRange zero{0, 0}, some{-5, 7};
  EXPECT_TRUE(compute("f32", "arith.mulf %a, %b : f32", {zero, some}).isExactly(0));
  EXPECT_TRUE(compute("f32", "arith.divf %a, %b : f32", {zero, {1, 9}}).isExactly(0));
  EXPECT_FALSE(compute("f32", "arith.mulf %a, %b : f32", {zero, {-5, kInf}}).isExactly(0)); // NaN
  EXPECT_TRUE(compute("f32", "math.exp %a : f32", {{-kInf, -200}}).isExactly(0));
  EXPECT_FALSE(compute("f32", "math.exp %a : f32", {{-kInf, -100}}).isExactly(0));
  EXPECT_FALSE(compute("f64", "math.exp %a : f64", {{-kInf, -200}}).isExactly(0));
  EXPECT_TRUE(compute("f64", "math.exp %a : f64", {{-kInf, -900}}).isExactly(0));
  EXPECT_TRUE(compute("f32", "math.exp2 %a : f32", {{-kInf, -200}}).isExactly(0));
}

TEST_F(NumberRangesTest, ANumberIsLeftWhereTheOtherIsNaN) {
  NumberRange low{-5, -3, /*hasNaN=*/true}, high{6, 7};
  EXPECT_EQ(compute("f32", "arith.minnumf %a, %b : f32", {low, high}).high, 7);
  EXPECT_EQ(compute("f32", "arith.minimumf %a, %b : f32", {low, high}).high, -3);
  EXPECT_EQ(compute("f32", "arith.maxnumf %a, %b : f32", {{8, 9, /*hasNaN=*/true}, high}).low, 6);
  EXPECT_EQ(compute("f32", "arith.maximumf %a, %b : f32", {{8, 9, /*hasNaN=*/true}, high}).low, 8);
}

TEST_F(NumberRangesTest, PowersOfOnePositiveNumberAreKnown) {
  auto power = [&](NumberRange base, NumberRange exponent) {
    return compute("f32", "math.powf %a, %b : f32", {base, exponent});
  };
  // Slopes of ALiBi; a base below 1 turns the range around.
  NumberRange slopes = power({2, 2}, {-8, -1}), falling = power({0.5, 0.5}, {-3, 2});
  EXPECT_TRUE(slopes.low <= 0x1p-8 && slopes.low > 0.998 * 0x1p-8 && slopes.high >= 0.5 &&
              slopes.high < 0.501);
  EXPECT_TRUE(falling.low <= 0.25 && falling.low > 0.249 && falling.high >= 8 && falling.high < 8.02);
  EXPECT_FALSE(slopes.hasNaN || falling.hasNaN);
  EXPECT_EQ(power({2, 2}, {-140, 0}).low, 0); // where small numbers may be flushed
  EXPECT_EQ(power({2, 2}, {-1, kInf}).high, kInf);
  EXPECT_TRUE(power({1, 2}, {0, 1}).hasNaN);
  EXPECT_TRUE(power({-2, -2}, {1, 1}).hasNaN);
  EXPECT_TRUE(power({2, 2}, {0, 1, /*hasNaN=*/true}).hasNaN);
}

TEST_F(NumberRangesTest, DivisionByARangeWithZeroIsUnknown) {
  NumberRange quotient = compute("f32", "arith.divf %a, %b : f32", {{1, 2}, {0, 4}});
  EXPECT_TRUE(quotient.hasNaN);
  EXPECT_EQ(quotient.high, kInf);
}

TEST_F(NumberRangesTest, ComparisonsAreDecidedByDisjointRanges) {
  using Predicate = arith::CmpFPredicate;
  NumberRange low{-2, 1}, high{3, 4}, touching{1, 3}, any = NumberRange::unknown();
  EXPECT_TRUE(fp8::compareFloats(Predicate::OLT, low, high, false).isExactly(1));
  EXPECT_TRUE(fp8::compareFloats(Predicate::OGE, low, high, false).isExactly(0));
  EXPECT_TRUE(fp8::compareFloats(Predicate::OLE, low, touching, false).isExactly(1));
  EXPECT_FALSE(fp8::compareFloats(Predicate::OLT, low, touching, false).isExactly(1));
  EXPECT_TRUE(fp8::compareFloats(Predicate::OEQ, low, high, false).isExactly(0));
  EXPECT_TRUE(fp8::compareFloats(Predicate::UNE, low, low, /*isSame=*/true).isExactly(0));
  EXPECT_TRUE(fp8::compareFloats(Predicate::UNO, low, low, /*isSame=*/true).isExactly(0));
  EXPECT_FALSE(fp8::compareFloats(Predicate::UNO, any, any, /*isSame=*/true).isExactly(0)); // a NaN
}

} // namespace
