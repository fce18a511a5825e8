// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The answers of the recipes to RecipeAttrInterface.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace fp8;
using mlir::Float32Type;
using mlir::Float8E4M3FNType;
using mlir::Float8E5M2Type;
using mlir::Float8E8M0FNUType;
using Blocks = llvm::SmallVector<int64_t>;

namespace {

class RecipeTest : public testing::Test {
protected:
  RecipeTest() { context.loadDialect<FP8Dialect>(); }

  RecipeAttrInterface parse(llvm::StringRef text) {
    return llvm::dyn_cast_or_null<RecipeAttrInterface>(mlir::parseAttribute(text, &context));
  }
  bool isE5M2(RecipeAttrInterface recipe, TensorKind kind) {
    return llvm::isa<Float8E5M2Type>(recipe.getFormat(kind));
  }
  mlir::MLIRContext context;
};

TEST_F(RecipeTest, HybridGivesGradientsE5M2) {
  for (const char *text :
       {"#fp8.delayed_scaling", "#fp8.current_scaling", "#fp8.row_scaling<format = hybrid>",
        "#fp8.block_scaling<format = hybrid>", "#fp8.mx_scaling<format = hybrid>"}) {
    auto recipe = parse(text);
    ASSERT_TRUE(recipe) << text;
    EXPECT_FALSE(isE5M2(recipe, TensorKind::input)) << text;
    EXPECT_FALSE(isE5M2(recipe, TensorKind::weight)) << text;
    EXPECT_TRUE(isE5M2(recipe, TensorKind::grad_output)) << text;
  }
}

TEST_F(RecipeTest, E4M3GivesEveryTensorE4M3) {
  for (const char *text : {"#fp8.delayed_scaling<format = e4m3>", "#fp8.current_scaling<format = e4m3>",
                           "#fp8.row_scaling", "#fp8.block_scaling", "#fp8.mx_scaling"}) {
    auto recipe = parse(text);
    ASSERT_TRUE(recipe) << text;
    EXPECT_FALSE(isE5M2(recipe, TensorKind::grad_output)) << text;
  }
}

TEST_F(RecipeTest, OnlyDelayedScalingKeepsState) {
  EXPECT_TRUE(parse("#fp8.delayed_scaling").isStateful());
  for (const char *text :
       {"#fp8.current_scaling", "#fp8.row_scaling", "#fp8.block_scaling", "#fp8.mx_scaling"})
    EXPECT_FALSE(parse(text).isStateful()) << text;
}

TEST_F(RecipeTest, BlocksOfAMatrix) {
  const bool contracted[] = {false, true};
  auto blocks = [&](const char *text, TensorKind kind) {
    return parse(text).getBlockShape(kind, contracted);
  };
  EXPECT_EQ(blocks("#fp8.delayed_scaling", TensorKind::input), Blocks());
  EXPECT_EQ(blocks("#fp8.current_scaling", TensorKind::weight), Blocks());
  EXPECT_EQ(blocks("#fp8.row_scaling", TensorKind::input), Blocks({1, 0}));
  EXPECT_EQ(blocks("#fp8.block_scaling", TensorKind::input), Blocks({1, 128}));
  EXPECT_EQ(blocks("#fp8.block_scaling", TensorKind::weight), Blocks({128, 128}));
  EXPECT_EQ(blocks("#fp8.block_scaling<block = 64>", TensorKind::grad_output), Blocks({1, 64}));
  EXPECT_EQ(blocks("#fp8.mx_scaling", TensorKind::weight), Blocks({1, 32}));
}

TEST_F(RecipeTest, BlocksFollowTheContractedDimension) {
  // [batch, k, n]: blocks along k, wherever it is; other dimensions have one per index.
  const bool contracted[] = {false, true, false};
  EXPECT_EQ(parse("#fp8.row_scaling").getBlockShape(TensorKind::weight, contracted), Blocks({1, 0, 1}));
  EXPECT_EQ(parse("#fp8.mx_scaling").getBlockShape(TensorKind::input, contracted), Blocks({1, 32, 1}));
  EXPECT_EQ(parse("#fp8.block_scaling").getBlockShape(TensorKind::weight, contracted), Blocks({1, 128, 128}));
}

TEST_F(RecipeTest, ScaleTypes) {
  EXPECT_TRUE(llvm::isa<Float32Type>(parse("#fp8.block_scaling").getScaleType()));
  EXPECT_TRUE(llvm::isa<Float8E8M0FNUType>(parse("#fp8.mx_scaling").getScaleType()));
}

TEST_F(RecipeTest, GradientsAccumulateInParts) {
  auto recipe = parse("#fp8.current_scaling");
  EXPECT_EQ(recipe.getAccumulation(Role::fprop), Accumulation::fast);
  EXPECT_EQ(recipe.getAccumulation(Role::dgrad), Accumulation::split);
  EXPECT_EQ(recipe.getAccumulation(Role::wgrad), Accumulation::split);
  EXPECT_EQ(parse("#fp8.block_scaling").getAccumulation(Role::fprop), Accumulation::split);
}

TEST_F(RecipeTest, AccumulationOfAllRoles) {
  for (const char *name : {"delayed", "current", "row", "mx"}) {
    std::string recipe = std::string("#fp8.") + name + "_scaling";
    for (Role role : {Role::fprop, Role::dgrad, Role::wgrad, Role::other}) {
      EXPECT_EQ(parse(recipe + "<accumulation = fast>").getAccumulation(role), Accumulation::fast) << recipe;
      EXPECT_EQ(parse(recipe + "<accumulation = split>").getAccumulation(role), Accumulation::split)
          << recipe;
    }
    // The history of a column does not depend on it.
    EXPECT_EQ(parse(recipe + "<accumulation = fast>").getScaling(), parse(recipe)) << recipe;
  }
}

TEST_F(RecipeTest, SquareBlocks) {
  const bool contracted[] = {false, true};
  auto blocks = [&](const char *text, TensorKind kind) {
    return parse(text).getBlockShape(kind, contracted);
  };
  EXPECT_EQ(blocks("#fp8.block_scaling<w_block_scaling_dim = 1>", TensorKind::weight), Blocks({1, 128}));
  EXPECT_EQ(blocks("#fp8.block_scaling<x_block_scaling_dim = 2>", TensorKind::input), Blocks({128, 128}));
  EXPECT_EQ(blocks("#fp8.block_scaling<grad_block_scaling_dim = 2>", TensorKind::grad_output),
            Blocks({128, 128}));
  EXPECT_EQ(blocks("#fp8.mx_scaling<w_block_scaling_dim = 2>", TensorKind::weight), Blocks({32, 32}));
  EXPECT_EQ(blocks("#fp8.mx_scaling<w_block_scaling_dim = 2>", TensorKind::input), Blocks({1, 32}));
}

TEST_F(RecipeTest, OneOperandHasSquareBlocks) {
  auto recipe = parse("#fp8.block_scaling<x_block_scaling_dim = 2>");
  EXPECT_EQ(recipe.getUnfitReason(TensorKind::input, TensorKind::grad_output), "");
  EXPECT_EQ(recipe.getUnfitReason(TensorKind::grad_output, TensorKind::weight), "");
  EXPECT_EQ(recipe.getUnfitReason(TensorKind::input, TensorKind::weight),
            "at most one operand of a matmul has square blocks; set x_block_scaling_dim or "
            "w_block_scaling_dim = 1");
  EXPECT_EQ(recipe.getUnfitReason(TensorKind::input, TensorKind::input),
            "at most one operand of a matmul has square blocks; set x_block_scaling_dim = 1");
  EXPECT_EQ(
      parse("#fp8.mx_scaling<w_block_scaling_dim = 2>").getUnfitReason(TensorKind::input, TensorKind::weight),
      "");
}

TEST_F(RecipeTest, CustomAsksTheRecipeOfTheRole) {
  auto recipe = parse("#fp8.custom<base = #fp8.current_scaling, dgrad = #fp8.delayed_scaling>");
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe.getRecipeFor(Role::dgrad), parse("#fp8.delayed_scaling"));
  EXPECT_EQ(recipe.getRecipeFor(Role::fprop), parse("#fp8.current_scaling"));
  EXPECT_EQ(recipe.getRecipeFor(Role::other), parse("#fp8.current_scaling"));
  EXPECT_FALSE(recipe.isStateful());
  EXPECT_EQ(recipe.getRecipeName(), "custom");
}

TEST_F(RecipeTest, E5M2GivesEveryTensorE5M2) {
  auto recipe = parse("#fp8.delayed_scaling<format = e5m2>");
  ASSERT_TRUE(recipe);
  for (TensorKind kind : {TensorKind::input, TensorKind::weight, TensorKind::grad_output})
    EXPECT_TRUE(isE5M2(recipe, kind));
}

TEST_F(RecipeTest, ScalingLeavesTheFormatOut) {
  EXPECT_EQ(parse("#fp8.delayed_scaling<format = e4m3, margin = 1>").getScaling(),
            parse("#fp8.delayed_scaling<format = e5m2, margin = 1>").getScaling());
  EXPECT_NE(parse("#fp8.delayed_scaling<margin = 1>").getScaling(),
            parse("#fp8.delayed_scaling").getScaling());
  EXPECT_EQ(parse("#fp8.block_scaling<format = hybrid>").getScaling(), parse("#fp8.block_scaling"));
  EXPECT_EQ(parse("#fp8.custom<base = #fp8.delayed_scaling<format = e4m3>>").getScaling(),
            parse("#fp8.delayed_scaling"));
}

TEST_F(RecipeTest, FunctionsHoldWhereOnlyTheFormatDiffers) {
  auto recipe = parse("#fp8.custom<base = #fp8.delayed_scaling, dgrad = #fp8.delayed_scaling<format = e4m3>, "
                      "wgrad = #fp8.current_scaling, scale = @f>");
  ASSERT_TRUE(recipe);
  auto fprop = recipe.getRecipeFor(Role::fprop), dgrad = recipe.getRecipeFor(Role::dgrad);
  EXPECT_EQ(fprop.getFunctions(), recipe.getFunctions());
  EXPECT_EQ(recipe.getFunctions().size(), 1u);
  EXPECT_EQ(dgrad.getFunctions(), recipe.getFunctions());
  EXPECT_TRUE(isE5M2(fprop, TensorKind::grad_output));
  EXPECT_FALSE(isE5M2(dgrad, TensorKind::grad_output));
  EXPECT_EQ(fprop.getScaling(), dgrad.getScaling());
  EXPECT_EQ(fprop.getRecipeName(), "custom delayed");
  EXPECT_EQ(recipe.getRecipeFor(Role::wgrad), parse("#fp8.current_scaling"));
}

TEST_F(RecipeTest, ParametersIncludeDefaults) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (mlir::NamedAttribute parameter : parse("#fp8.delayed_scaling<margin = 2>").getParameters())
    os << parameter.getName().getValue() << "=" << parameter.getValue() << " ";
  EXPECT_EQ(text, "format=\"hybrid\" margin=2 : i64 amax_history_len=1024 : i64 amax_compute_algo=\"max\" "
                  "reduce_amax=true ignore_non_finite=false executed_mask=false init=\"one\" "
                  "accumulation=\"by_role\" ");
}

TEST_F(RecipeTest, EveryOtherRecipeHoldsForEveryRole) {
  auto recipe = parse("#fp8.delayed_scaling");
  EXPECT_EQ(recipe.getRecipeFor(Role::wgrad), recipe);
}

TEST_F(RecipeTest, ReduceAmax) {
  EXPECT_TRUE(parse("#fp8.delayed_scaling").getReduceAmax());
  EXPECT_FALSE(parse("#fp8.delayed_scaling<reduce_amax = false>").getReduceAmax());
  EXPECT_FALSE(parse("#fp8.custom<base = #fp8.current_scaling<reduce_amax = false>>").getReduceAmax());
}

TEST_F(RecipeTest, LargestValuesAndNames) {
  auto e4m3 = Float8E4M3FNType::get(&context);
  auto e5m2 = Float8E5M2Type::get(&context);
  EXPECT_EQ(getFP8Max(e4m3), 448.0f);
  EXPECT_EQ(getFP8Max(e5m2), 57344.0f);
  EXPECT_EQ(getFormatName(e4m3), "E4M3");
  EXPECT_EQ(getFormatName(e5m2), "E5M2");
  EXPECT_EQ(getFormatName(mlir::BFloat16Type::get(&context)), "bf16");
}

} // namespace
