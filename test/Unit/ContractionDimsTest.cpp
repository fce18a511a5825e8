// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dimensions of a matmul that are batch, M, N and K, and operations that are no matmul.

#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;
using Dims = llvm::SmallVector<unsigned>;

namespace {

class ContractionDimsTest : public testing::Test {
protected:
  /// A map of `numDims` dimensions whose results are the dimensions in `positions`.
  AffineMap map(unsigned numDims, llvm::ArrayRef<unsigned> positions) {
    return AffineMap::getMultiDimMapWithTargets(numDims, positions, &context);
  }
  MLIRContext context;
};

TEST_F(ContractionDimsTest, Matmul) {
  auto dims = fp8::inferContractionDims({map(3, {0, 2}), map(3, {2, 1}), map(3, {0, 1})});
  ASSERT_TRUE(dims);
  EXPECT_EQ(dims->batch, Dims());
  EXPECT_EQ(dims->m, Dims({0}));
  EXPECT_EQ(dims->n, Dims({1}));
  EXPECT_EQ(dims->k, Dims({2}));
}

TEST_F(ContractionDimsTest, TransposesAndOrderOfDimensionsDoNotMatter) {
  auto dims = fp8::inferContractionDims({map(3, {0, 1}), map(3, {2, 0}), map(3, {2, 1})});
  ASSERT_TRUE(dims);
  EXPECT_EQ(dims->m, Dims({1}));
  EXPECT_EQ(dims->n, Dims({2}));
  EXPECT_EQ(dims->k, Dims({0}));
}

TEST_F(ContractionDimsTest, SeveralOfEach) {
  // batch 0, m 1 and 2, n 3 and 4, k 5 and 6.
  auto dims =
      fp8::inferContractionDims({map(7, {0, 1, 2, 5, 6}), map(7, {6, 5, 4, 3, 0}), map(7, {0, 1, 2, 3, 4})});
  ASSERT_TRUE(dims);
  EXPECT_EQ(dims->batch, Dims({0}));
  EXPECT_EQ(dims->m, Dims({1, 2}));
  EXPECT_EQ(dims->n, Dims({3, 4}));
  EXPECT_EQ(dims->k, Dims({5, 6}));
}

TEST_F(ContractionDimsTest, OuterMatmulHasNoK) {
  auto dims = fp8::inferContractionDims({map(2, {0}), map(2, {1}), map(2, {0, 1})});
  ASSERT_TRUE(dims);
  EXPECT_TRUE(dims->k.empty());
}

TEST_F(ContractionDimsTest, DimensionOfOneOperandAloneIsNoMatmul) {
  EXPECT_FALSE(fp8::inferContractionDims({map(3, {0, 2}), map(3, {1}), map(3, {0, 1})}));
}

TEST_F(ContractionDimsTest, DimensionOfTheResultAloneIsNoMatmul) {
  EXPECT_FALSE(fp8::inferContractionDims({map(3, {2}), map(3, {2, 1}), map(3, {0, 1})}));
}

TEST_F(ContractionDimsTest, RepeatedDimensionIsNoMatmul) {
  EXPECT_FALSE(fp8::inferContractionDims({map(2, {0, 0}), map(2, {0, 1}), map(2, {0, 1})}));
}

TEST_F(ContractionDimsTest, ComputedIndexIsNoMatmul) {
  auto sum = AffineMap::get(3, 0, getAffineDimExpr(0, &context) + getAffineDimExpr(2, &context));
  EXPECT_FALSE(fp8::inferContractionDims({sum, map(3, {2, 1}), map(3, {0, 1})}));
}

TEST_F(ContractionDimsTest, SymbolsAndOtherSpacesAreNoMatmul) {
  auto symbol =
      AffineMap::get(3, 1, {getAffineDimExpr(0, &context), getAffineDimExpr(2, &context)}, &context);
  EXPECT_FALSE(fp8::inferContractionDims({symbol, map(3, {2, 1}), map(3, {0, 1})}));
  EXPECT_FALSE(fp8::inferContractionDims({map(4, {0, 2}), map(3, {2, 1}), map(3, {0, 1})}));
  EXPECT_FALSE(fp8::inferContractionDims({map(3, {0, 2}), map(3, {2, 1})}));
}

} // namespace
