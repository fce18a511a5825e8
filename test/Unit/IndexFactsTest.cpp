// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts about sizes that are computed at run time, as those of a block of attention.

#include "fp8/Conversion/IndexFacts.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace {

class IndexFactsTest : public testing::Test {
protected:
  IndexFactsTest() {
    DialectRegistry registry;
    registry.insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect, memref::MemRefDialect,
                    scf::SCFDialect>();
    affine::registerValueBoundsOpInterfaceExternalModels(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
    memref::registerValueBoundsOpInterfaceExternalModels(registry);
    context.appendDialectRegistry(registry);
  }

  /// Parses a loop from `lower` to 2048 by `step` that computes `body`, and returns what defines %x.
  Value parse(llvm::StringRef lower, llvm::StringRef step, llvm::StringRef body) {
    std::string source = "func.func @f(%valid: i1, %n: index, %m: memref<128x2048xf32>) {\n"
                         "%lower = arith.constant " +
                         lower.str() + " : index\n%step = arith.constant " + step.str() +
                         " : index\n%all = arith.constant 2048 : index\n"
                         "scf.for %i = %lower to %all step %step {\n" +
                         body.str() + "\n\"test.end\"(%x) : (index) -> ()\n}\nreturn\n}";
    context.allowUnregisteredDialects();
    module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    Value found;
    module->walk([&](Operation *op) {
      if (op->getName().getStringRef() == "test.end")
        found = op->getOperand(0);
    });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(IndexFactsTest, TheSizeOfABlockIsBoundedAndAMultiple) {
  Value size = parse("0", "128", R"(
    %end = affine.min affine_map<(d0) -> (d0 + 128, 2048)>(%i)
    %x = arith.select %valid, %end, %all : index)");
  EXPECT_EQ(fp8::findMost(size), 2048);
  EXPECT_EQ(fp8::findDivisor(size), 128);
}

TEST_F(IndexFactsTest, ADivisorIsOneOfAllParts) {
  EXPECT_EQ(fp8::findDivisor(parse("0", "128", "%x = affine.min affine_map<(d0) -> (d0 + 96, 2048)>(%i)")),
            32);
  EXPECT_EQ(fp8::findDivisor(parse("64", "128", "%x = affine.apply affine_map<(d0) -> (d0)>(%i)")), 64);
  EXPECT_EQ(fp8::findDivisor(parse("0", "128", "%x = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)")), 1);
  EXPECT_EQ(fp8::findDivisor(parse("0", "6", "%x = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)")), 24);
  EXPECT_EQ(fp8::findDivisor(parse("0", "1", "%x = arith.select %valid, %n, %all : index")), 1);
}

TEST_F(IndexFactsTest, TheDimensionOfAViewIsItsSize) {
  Value size = parse("0", "64", R"(
    %c1 = arith.constant 1 : index
    %end = affine.min affine_map<(d0) -> (d0 + 64, 2048)>(%i)
    %view = memref.subview %m[0, 0] [128, %end] [1, 1] : memref<128x2048xf32> to memref<128x?xf32, strided<[2048, 1]>>
    %x = memref.dim %view, %c1 : memref<128x?xf32, strided<[2048, 1]>>)");
  EXPECT_EQ(fp8::findMost(size), 2048);
  EXPECT_EQ(fp8::findDivisor(size), 64);
}

TEST_F(IndexFactsTest, NothingIsKnownOfAnArgument) {
  Value size = parse("0", "1", "%x = affine.apply affine_map<()[s0] -> (s0)>()[%n]");
  EXPECT_TRUE(ShapedType::isDynamic(fp8::findMost(size)));
  EXPECT_EQ(fp8::findDivisor(size), 1);
  EXPECT_EQ(fp8::findMost(OpFoldResult(Builder(&context).getIndexAttr(7))), 7);
  EXPECT_EQ(fp8::findDivisor(OpFoldResult(Builder(&context).getIndexAttr(0))), 1);
}

} // namespace
