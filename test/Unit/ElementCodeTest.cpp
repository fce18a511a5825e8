// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of elements, by the numbers that it computes and by what it is a function of.

#include "fp8/Analysis/Attention/ElementCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include <cmath>

#include <gtest/gtest.h>

using namespace mlir;
using fp8::CodeNode;
using fp8::ScalarValue;
using Kind = fp8::CodeNode::Kind;

namespace {

class ElementCodeTest : public testing::Test {
protected:
  ElementCodeTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                        scf::SCFDialect, tensor::TensorDialect>();
  }

  /// Finds the code of an element of what the function returns.
  const CodeNode *parse(llvm::StringRef source) {
    module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    function = *module->getOps<func::FuncOp>().begin();
    Value tensor = function.getBody().front().getTerminator()->getOperand(0);
    sizes = llvm::to_vector(cast<RankedTensorType>(tensor.getType()).getShape());
    code.emplace(sizes);
    llvm::SmallVector<AffineExpr> at;
    for (unsigned dim = 0; dim < sizes.size(); ++dim)
      at.push_back(getAffineDimExpr(dim, &context));
    return code->get(tensor, at);
  }

  /// Computes `node` where element i of the first argument, in row-major order of 3 columns, is
  /// `elements[i]`.
  double compute(const CodeNode *node, llvm::ArrayRef<int64_t> indices, llvm::ArrayRef<double> elements) {
    llvm::SmallVector<int64_t> range{0, 1, 2};
    fp8::CodeEvaluator evaluator(
        [&](const CodeNode &element, llvm::ArrayRef<int64_t> at) -> std::optional<ScalarValue> {
          if (element.value != function.getArgument(0))
            return std::nullopt;
          return elements[at.size() == 1 ? at[0] : at[0] * 3 + at[1]];
        },
        [&](unsigned) { return llvm::ArrayRef(range); }, fp8::Rounding::toType);
    std::optional<ScalarValue> value = evaluator.compute(node, indices);
    EXPECT_TRUE(value && std::holds_alternative<double>(*value));
    return value ? std::get<double>(*value) : std::nan("");
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  llvm::SmallVector<int64_t> sizes;
  std::optional<fp8::ElementCode> code;
};

TEST_F(ElementCodeTest, ViewsVanish) {
  const CodeNode *node = parse(R"(func.func @f(%x: tensor<2x12xf32>) -> tensor<3x2x4xf32> {
    %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [2, 3, 4] : tensor<2x12xf32> into tensor<2x3x4xf32>
    %1 = tensor.empty() : tensor<3x2x4xf32>
    %2 = linalg.transpose ins(%0 : tensor<2x3x4xf32>) outs(%1 : tensor<3x2x4xf32>) permutation = [1, 0, 2]
    return %2 : tensor<3x2x4xf32>
  })");
  ASSERT_EQ(node->kind, Kind::element);
  auto dim = [&](unsigned i) { return getAffineDimExpr(i, &context); };
  EXPECT_EQ(node->at[0], dim(1));
  EXPECT_EQ(node->at[1], dim(0) * 4 + dim(2));
}

TEST_F(ElementCodeTest, DivisionsThatAreJoinedVanish) {
  const CodeNode *node = parse(R"(func.func @f(%x: tensor<24x5xf32>) -> tensor<24x5xf32> {
    %0 = tensor.expand_shape %x [[0, 1, 2], [3]] output_shape [2, 3, 4, 5] : tensor<24x5xf32> into tensor<2x3x4x5xf32>
    %1 = tensor.collapse_shape %0 [[0, 1], [2, 3]] : tensor<2x3x4x5xf32> into tensor<6x20xf32>
    %2 = tensor.expand_shape %1 [[0], [1, 2]] output_shape [6, 4, 5] : tensor<6x20xf32> into tensor<6x4x5xf32>
    %3 = tensor.collapse_shape %2 [[0, 1], [2]] : tensor<6x4x5xf32> into tensor<24x5xf32>
    return %3 : tensor<24x5xf32>
  })");
  ASSERT_EQ(node->kind, Kind::element);
  EXPECT_EQ(node->at[0], getAffineDimExpr(0, &context));
  EXPECT_EQ(node->at[1], getAffineDimExpr(1, &context));
}

TEST_F(ElementCodeTest, CollapsedDimensionsAreDivided) {
  const CodeNode *node = parse(R"(func.func @f(%x: tensor<2x3x1x4xf32>) -> tensor<6x4xf32> {
    %0 = tensor.collapse_shape %x [[0, 1], [2, 3]] : tensor<2x3x1x4xf32> into tensor<6x4xf32>
    %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
    %2 = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
    return %2 : tensor<6x4xf32>
  })");
  ASSERT_EQ(node->kind, Kind::element);
  AffineExpr row = getAffineDimExpr(0, &context);
  EXPECT_EQ(node->at[0], row.floorDiv(3));
  EXPECT_EQ(node->at[1], row % 3);
  EXPECT_EQ(node->at[2], getAffineConstantExpr(0, &context));
  EXPECT_EQ(node->at[3], getAffineDimExpr(1, &context));
}

// A row minus its sum: the reduction has the index of the row's elements, whatever the operations look like.
constexpr llvm::StringLiteral kCentered = R"(func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2xf32>
  %none = linalg.fill ins(%zero : f32) outs(%init : tensor<2xf32>) -> tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x3xf32>) outs(%none : tensor<2xf32>) {
    ^bb0(%in: f32, %acc: f32):
      %0 = arith.addf %acc, %in : f32
      linalg.yield %0 : f32
  } -> tensor<2xf32>
  %out = tensor.empty() : tensor<2x3xf32>
  %wide = linalg.broadcast ins(%sum : tensor<2xf32>) outs(%out : tensor<2x3xf32>) dimensions = [1]
  %r = arith.subf %x, %wide : tensor<2x3xf32>
  return %r : tensor<2x3xf32>
})";

TEST_F(ElementCodeTest, Reductions) {
  const CodeNode *node = parse(kCentered);
  ASSERT_EQ(node->kind, Kind::operation);
  EXPECT_EQ(node->dims, 3u);
  const CodeNode *sum = node->operands[1];
  ASSERT_EQ(sum->kind, Kind::reduction);
  EXPECT_EQ(sum->bound, llvm::SmallVector<unsigned>{1});
  EXPECT_EQ(sum->dims, 1u);
  EXPECT_EQ(code->getSizes().size(), 2u);
  // The element that is summed is the one that the sum is subtracted from.
  EXPECT_EQ(sum->operands[1]->operands[1], node->operands[0]);
  EXPECT_EQ(compute(node, {1, 2}, {1, 2, 3, 4, 5, 6}), 6.0 - 15.0);
  // Additions round in their order: (2^24 + 1) + 1 is 2^24 in f32.
  EXPECT_EQ(compute(node, {0, 0}, {0x1p24, 1, 1, 0, 0, 0}), 0.0);
}

TEST_F(ElementCodeTest, IndicesAndSelections) {
  const CodeNode *node = parse(R"(func.func @f(%x: tensor<3xf32>) -> tensor<4xf32> {
    %two = arith.constant 2 : index
    %init = tensor.empty() : tensor<4xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%init : tensor<4xf32>) {
      ^bb0(%out: f32):
        %i = linalg.index 0 : index
        %first = arith.cmpi ult, %i, %two : index
        %e = scf.if %first -> (f32) {
          %a = tensor.extract %x[%i] : tensor<3xf32>
          scf.yield %a : f32
        } else {
          %j = arith.subi %i, %two : index
          %b = tensor.extract %x[%j] : tensor<3xf32>
          %n = arith.negf %b : f32
          scf.yield %n : f32
        }
        linalg.yield %e : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  })");
  ASSERT_EQ(node->kind, Kind::selection);
  EXPECT_EQ(compute(node, {1}, {10, 20, 30}), 20.0);
  EXPECT_EQ(compute(node, {3}, {10, 20, 30}), -20.0);
}

TEST_F(ElementCodeTest, ElementsOfOtherOperationsAreRead) {
  const CodeNode *node = parse(R"(func.func @f(%x: tensor<3xf32>, %i: tensor<3xindex>) -> tensor<3xf32> {
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                         iterator_types = ["parallel"]}
        ins(%i : tensor<3xindex>) outs(%x : tensor<3xf32>) {
      ^bb0(%at: index, %out: f32):
        %a = tensor.extract %x[%at] : tensor<3xf32>
        linalg.yield %a : f32
    } -> tensor<3xf32>
    %n = arith.negf %r : tensor<3xf32>
    return %n : tensor<3xf32>
  })");
  ASSERT_EQ(node->kind, Kind::operation);
  EXPECT_EQ(node->operands[0]->kind, Kind::element);
  EXPECT_TRUE(node->operands[0]->value.getDefiningOp<linalg::GenericOp>());
}

TEST_F(ElementCodeTest, IntegersThatWrapAreNoIndices) {
  auto readsTable = [&](llvm::StringRef type, llvm::StringRef size) {
    std::string n = size.str(), t = type.str(), row = "tensor<" + n + "xf32>";
    const CodeNode *node = parse(
        "func.func @f(%table: tensor<512xf32>, %init: " + row + ") -> " + row +
        " {\n %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], "
        "iterator_types = [\"parallel\"]} outs(%init : " +
        row + ") {\n ^bb0(%out: f32):\n %i = linalg.index 0 : index\n %j = arith.index_cast %i : index to " +
        t + "\n %c = arith.constant 100 : " + t + "\n %k = arith.addi %j, %c : " + t +
        "\n %l = arith.index_cast %k : " + t +
        " to index\n %m = arith.constant 128 : index\n %at = arith.addi %l, %m : index\n"
        " %a = tensor.extract %table[%at] : tensor<512xf32>\n linalg.yield %a : f32\n } -> " +
        row + "\n return %r : " + row + "\n}");
    EXPECT_EQ(node->kind, Kind::element);
    return isa<BlockArgument>(node->value); // else the result of the loop is read
  };
  EXPECT_TRUE(readsTable("i8", "28"));  // 27 + 100 = 127
  EXPECT_FALSE(readsTable("i8", "29")); // 128 is -128
  EXPECT_TRUE(readsTable("i32", "200"));
}

TEST_F(ElementCodeTest, PositionsAreIndices) {
  auto dim = [&](unsigned i) { return getAffineDimExpr(i, &context); };
  auto parsePositions = [&](llvm::StringRef type, llvm::StringRef numbers) {
    std::string t = ("tensor<" + type + ">").str();
    return parse("func.func @f() -> " + t + " {\n%0 = arith.constant dense<" + numbers.str() + "> : " + t +
                 "\nreturn %0 : " + t + "\n}");
  };
  const CodeNode *node = parsePositions("4xi32", "[-3, -1, 1, 3]");
  ASSERT_EQ(node->kind, Kind::index);
  EXPECT_TRUE(node->type.isInteger(32));
  EXPECT_EQ(node->at[0], dim(0) * 2 - 3);
  node = parsePositions("2x3xi64", "[[7, 6, 5], [17, 16, 15]]");
  ASSERT_EQ(node->kind, Kind::index);
  EXPECT_EQ(node->at[0], dim(0) * 10 - dim(1) + 7);
  EXPECT_EQ(parsePositions("4xi32", "[0, 1, 2, 4]")->kind, Kind::element);
  EXPECT_EQ(parsePositions("2x2xi8", "[[0, 1], [2, 4]]")->kind, Kind::element);
  EXPECT_EQ(parsePositions("2xi64", "[0, 4294967296]")->kind, Kind::element);
  EXPECT_EQ(parsePositions("2xi1", "[false, true]")->kind, Kind::element);
}

TEST_F(ElementCodeTest, IndicesFromTheEndAreDecided) {
  // An index below zero counts from the end: what gathers write for each index.
  auto parseLast = [&](llvm::StringRef first) {
    return parse("func.func @f(%x: tensor<9xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {\n"
                 "%zero = arith.constant 0 : i64\n%size = arith.constant 9 : i64\n%first = arith.constant " +
                 first.str() + R"( : i64
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%init : tensor<4xf32>) {
      ^bb0(%out: f32):
        %i = linalg.index 0 : index
        %j = arith.index_cast %i : index to i64
        %k = arith.addi %j, %first : i64
        %below = arith.cmpi slt, %k, %zero : i64
        %wrapped = arith.addi %k, %size : i64
        %l = arith.select %below, %wrapped, %k : i64
        %at = arith.index_cast %l : i64 to index
        %a = tensor.extract %x[%at] : tensor<9xf32>
        linalg.yield %a : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  })");
  };
  auto dim = getAffineDimExpr(0, &context);
  EXPECT_EQ(parseLast("5")->at[0], dim + 5);
  EXPECT_EQ(parseLast("0")->at[0], dim);
  EXPECT_EQ(parseLast("-4")->at[0], dim + 5);
  // Some of these are below zero: the loop's result is read.
  EXPECT_TRUE(parseLast("-3")->value.getDefiningOp<linalg::GenericOp>());
}

} // namespace
