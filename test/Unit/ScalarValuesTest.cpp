// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of arith and math that are computed at compile time, against numbers worked out by hand.

#include "fp8/Analysis/Attention/ScalarValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using fp8::Rounding;
using fp8::ScalarValue;
using llvm::APInt;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class ScalarValuesTest : public testing::Test {
protected:
  ScalarValuesTest() { context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect>(); }

  /// Computes `text`, an operation on %a, %b and %c, whose types are `types`.
  std::optional<ScalarValue> compute(llvm::StringRef types, llvm::StringRef text,
                                     llvm::ArrayRef<ScalarValue> operands,
                                     Rounding rounding = Rounding::toType) {
    std::string source = ("func.func @f(" + types + ") {\n%0 = " + text + "\nreturn\n}").str();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    auto function = *module->getOps<func::FuncOp>().begin();
    return fp8::computeScalar(&function.getBody().front().front(), operands, rounding);
  }
  double number(llvm::StringRef types, llvm::StringRef text, llvm::ArrayRef<ScalarValue> operands,
                Rounding rounding = Rounding::toType) {
    std::optional<ScalarValue> result = compute(types, text, operands, rounding);
    EXPECT_TRUE(result && std::holds_alternative<double>(*result));
    return result ? std::get<double>(*result) : kNaN;
  }
  int64_t integer(llvm::StringRef types, llvm::StringRef text, llvm::ArrayRef<ScalarValue> operands) {
    std::optional<ScalarValue> result = compute(types, text, operands);
    EXPECT_TRUE(result && std::holds_alternative<APInt>(*result));
    return result ? std::get<APInt>(*result).getSExtValue() : -1;
  }
  MLIRContext context;
};

TEST_F(ScalarValuesTest, ResultsAreRoundedToTheirType) {
  // 1 + 2^-9 lies between two bf16 (steps of 2^-7), 1 + 2^-30 between two f32 (steps of 2^-23).
  EXPECT_EQ(number("%a: bf16, %b: bf16", "arith.addf %a, %b : bf16", {1.0, 0x1p-9}), 1.0);
  EXPECT_EQ(number("%a: f32, %b: f32", "arith.addf %a, %b : f32", {1.0, 0x1p-9}), 1.0 + 0x1p-9);
  EXPECT_EQ(number("%a: f32, %b: f32", "arith.addf %a, %b : f32", {1.0, 0x1p-30}), 1.0);
  EXPECT_EQ(number("%a: f64, %b: f64", "arith.addf %a, %b : f64", {1.0, 0x1p-30}), 1.0 + 0x1p-30);
  EXPECT_EQ(number("%a: f32, %b: f32", "arith.addf %a, %b : f32", {1.0, 0x1p-30}, Rounding::none),
            1.0 + 0x1p-30);
  EXPECT_EQ(number("%a: f16, %b: f16", "arith.mulf %a, %b : f16", {300.0, 300.0}), kInf);
  EXPECT_EQ(number("%a: f16, %b: f16", "arith.mulf %a, %b : f16", {300.0, 300.0}, Rounding::none), 90000.0);
  EXPECT_EQ(number("%a: f32", "arith.truncf %a : f32 to bf16", {1.0 + 0x1p-8}), 1.0); // to even
}

TEST_F(ScalarValuesTest, MaximaOfNaNAndZeros) {
  llvm::StringRef types = "%a: f32, %b: f32";
  EXPECT_TRUE(std::isnan(number(types, "arith.maximumf %a, %b : f32", {kNaN, 1.0})));
  EXPECT_EQ(number(types, "arith.maxnumf %a, %b : f32", {kNaN, 1.0}), 1.0);
  EXPECT_FALSE(std::signbit(number(types, "arith.maximumf %a, %b : f32", {-0.0, 0.0})));
  EXPECT_FALSE(std::signbit(number(types, "arith.maximumf %a, %b : f32", {0.0, -0.0})));
  EXPECT_TRUE(std::signbit(number(types, "arith.minimumf %a, %b : f32", {0.0, -0.0})));
  EXPECT_EQ(number(types, "arith.maximumf %a, %b : f32", {-kInf, -3.0}), -3.0);
}

TEST_F(ScalarValuesTest, MathFunctions) {
  EXPECT_EQ(number("%a: f32", "math.exp %a : f32", {1.0}), static_cast<float>(std::exp(1.0)));
  EXPECT_EQ(number("%a: f32", "math.exp2 %a : f32", {-3.0}), 0.125);
  EXPECT_EQ(number("%a: f32", "math.exp %a : f32", {-kInf}), 0.0);
  EXPECT_EQ(number("%a: f32", "math.rsqrt %a : f32", {16.0}), 0.25);
  EXPECT_EQ(number("%a: bf16", "math.tanh %a : bf16", {100.0}), 1.0);
  EXPECT_EQ(number("%a: f32, %b: f32, %c: f32", "math.fma %a, %b, %c : f32", {2.0, 3.0, 4.0}), 10.0);
}

TEST_F(ScalarValuesTest, ComparisonsAndSelections) {
  llvm::StringRef types = "%a: f32, %b: f32";
  EXPECT_EQ(integer(types, "arith.cmpf olt, %a, %b : f32", {1.0, 2.0}), -1); // an i1 of all bits
  EXPECT_EQ(integer(types, "arith.cmpf olt, %a, %b : f32", {1.0, kNaN}), 0);
  EXPECT_EQ(integer(types, "arith.cmpf ult, %a, %b : f32", {1.0, kNaN}), -1);
  EXPECT_EQ(integer("%a: i8, %b: i8", "arith.cmpi slt, %a, %b : i8", {APInt(8, 255), APInt(8, 1)}), -1);
  EXPECT_EQ(integer("%a: i8, %b: i8", "arith.cmpi ult, %a, %b : i8", {APInt(8, 255), APInt(8, 1)}), 0);
  EXPECT_EQ(number("%a: i1, %b: f32, %c: f32", "arith.select %a, %b, %c : f32", {APInt(1, 0), 1.0, 2.0}),
            2.0);
}

TEST_F(ScalarValuesTest, Integers) {
  llvm::StringRef types = "%a: i8, %b: i8";
  auto both = [](int64_t a, int64_t b) {
    return llvm::SmallVector<ScalarValue>{APInt(8, a, true), APInt(8, b, true)};
  };
  EXPECT_EQ(integer(types, "arith.muli %a, %b : i8", both(64, 4)), 0); // modulo 256
  EXPECT_EQ(integer(types, "arith.divsi %a, %b : i8", both(-7, 2)), -3);
  EXPECT_EQ(integer("%a: i8", "math.absi %a : i8", {APInt(8, 249)}), 7);
  EXPECT_EQ(integer("%a: i8", "math.absi %a : i8", {APInt(8, 128)}), -128); // which wraps
  EXPECT_EQ(integer(types, "arith.floordivsi %a, %b : i8", both(-7, 2)), -4);
  EXPECT_EQ(integer(types, "arith.remsi %a, %b : i8", both(-7, 2)), -1);
  EXPECT_EQ(integer(types, "arith.shrui %a, %b : i8", both(-128, 7)), 1);
  EXPECT_FALSE(compute(types, "arith.divsi %a, %b : i8", both(1, 0)));
}

TEST_F(ScalarValuesTest, Conversions) {
  EXPECT_EQ(number("%a: i32", "arith.bitcast %a : i32 to f32", {APInt(32, 0x3fc00000)}), 1.5);
  EXPECT_EQ(integer("%a: f32", "arith.bitcast %a : f32 to i32", {1.5}), 0x3fc00000);
  EXPECT_EQ(number("%a: i1", "arith.uitofp %a : i1 to f32", {APInt(1, 1)}), 1.0);
  EXPECT_EQ(number("%a: i1", "arith.sitofp %a : i1 to f32", {APInt(1, 1)}), -1.0);
  EXPECT_EQ(integer("%a: f32", "arith.fptosi %a : f32 to i32", {-2.75}), -2);
  EXPECT_FALSE(compute("%a: f32", "arith.fptosi %a : f32 to i32", {1e30}));
  EXPECT_EQ(integer("%a: index", "arith.index_cast %a : index to i32", {APInt(64, -5, true)}), -5);
  EXPECT_EQ(integer("%a: i8", "arith.extui %a : i8 to i32", {APInt(8, 255)}), 255);
}

TEST_F(ScalarValuesTest, ConstantsAndUnknownOperations) {
  EXPECT_EQ(number("", "arith.constant 2.5 : bf16", {}), 2.5);
  EXPECT_EQ(number("", "arith.constant dense<-4.0> : tensor<3x4xf32>", {}), -4.0);
  EXPECT_FALSE(compute("%a: f32", "math.acosh %a : f32", {2.0}));
}

} // namespace
