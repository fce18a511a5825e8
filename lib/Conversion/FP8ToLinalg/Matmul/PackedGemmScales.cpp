// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that multiply packed panels by the scales of blocks of K: one per panel width and length of a
// block.

#include "PackedGemmDetail.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Returns the pairs of bf16 values `pairs` times `factor`, a power of two.
static Value scalePairs(OpBuilder &b, Location loc, Value pairs, Value factor) {
  auto type = cast<VectorType>(pairs.getType());
  auto bitsType = type.clone(b.getI32Type());
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(bitsType, value));
  };
  auto scale = [&](Value bits) -> Value {
    return arith::MulFOp::create(b, loc, arith::BitcastOp::create(b, loc, type, bits), factor);
  };
  Value bits = arith::BitcastOp::create(b, loc, bitsType, pairs);
  Value low = arith::ShLIOp::create(b, loc, bits, constant(16));
  Value high = arith::AndIOp::create(b, loc, bits, constant(static_cast<int32_t>(0xFFFF0000)));
  return buildPairs(b, loc, scale(low), scale(high));
}

/// Multiplies panels, operand 0, by their scales, operand 1, of which one is for `length` elements along K.
static void scalePanels(OpBuilder &b, ValueRange operands, int64_t length,
                        const PackedMatmulOptions &options) {
  Location loc = b.getUnknownLoc();
  Value panels = operands[0], scales = operands[1];
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  auto index = [&](OpBuilder &at, int64_t value) -> Value {
    return arith::ConstantIndexOp::create(at, loc, value);
  };
  Value zero = index(b, 0), one = index(b, 1), step = index(b, length);
  Value count = memref::DimOp::create(b, loc, panels, 0), depth = memref::DimOp::create(b, loc, panels, 1);
  scf::buildLoopNest(
      b, loc, {zero, zero}, {count, depth}, {one, step}, [&](OpBuilder &body, Location, ValueRange at) {
        Value panel = at[0], begin = at[1];
        Value block = arith::DivUIOp::create(body, loc, begin, step);
        SmallVector<Value> lanes, factors;
        for (int64_t lane = 0; lane < width;) {
          int64_t size = std::min<int64_t>(options.registers.lanes, llvm::bit_floor<uint64_t>(width - lane));
          lanes.push_back(index(body, lane));
          factors.push_back(vector::LoadOp::create(body, loc, VectorType::get(size, body.getF32Type()),
                                                   scales, ValueRange{panel, block, lanes.back()}));
          lane += size;
        }
        Value end = arith::MinSIOp::create(body, loc, arith::AddIOp::create(body, loc, begin, step), depth);
        auto overK = scf::ForOp::create(body, loc, begin, end, one);
        OpBuilder inside = OpBuilder::atBlockTerminator(overK.getBody());
        for (auto [lane, factor] : llvm::zip_equal(lanes, factors)) {
          Value position[] = {panel, overK.getInductionVar(), lane};
          Value value =
              vector::LoadOp::create(inside, loc, cast<VectorType>(factor.getType()), panels, position);
          Value scaled = options.bf16Dots ? scalePairs(inside, loc, value, factor)
                                          : arith::MulFOp::create(inside, loc, value, factor).getResult();
          vector::StoreOp::create(inside, loc, scaled, panels, position);
        }
      });
}

void fp8::buildScalePanels(OpBuilder &builder, Location loc, Value panels, Value scales, int64_t length,
                           const PackedMatmulOptions &options) {
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  std::string name = "fp8_cpu_scale_panels_";
  llvm::raw_string_ostream(name) << (options.bf16Dots ? "pairs_" : "") << width << "_" << length;
  Type type = getStridedType(builder.getF32Type(), 3, width);
  auto build = [&](OpBuilder &body, ValueRange arguments) {
    scalePanels(body, arguments, options.bf16Dots ? length / 2 : length, options);
  };
  func::FuncOp scale = getOrCreateFunction(builder, name, {type, type}, build);
  callFunction(builder, loc, scale, ValueRange{panels, scales});
}
