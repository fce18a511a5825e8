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
          Value scaled = options.hasPairs() ? scalePairs(inside, loc, value, factor)
                                            : arith::MulFOp::create(inside, loc, value, factor).getResult();
          vector::StoreOp::create(inside, loc, scaled, panels, position);
        }
      });
}

/// Multiplies the pairs of panels for tile registers, operand 0, by their scales, operand 1, of which one is
/// for `length` pairs.
static void scaleTilePanels(OpBuilder &b, ValueRange operands, int64_t length) {
  constexpr int64_t pairs = 16; // of a row, side by side
  Location loc = b.getUnknownLoc();
  Value panels = operands[0], scales = operands[1];
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  auto index = [&](OpBuilder &at, int64_t value) -> Value {
    return arith::ConstantIndexOp::create(at, loc, value);
  };
  auto type = VectorType::get(pairs, b.getF32Type());
  Value zero = index(b, 0), one = index(b, 1), rows = index(b, width), step = index(b, pairs);
  Value count = memref::DimOp::create(b, loc, panels, 0), depth = memref::DimOp::create(b, loc, panels, 1);
  scf::buildLoopNest(
      b, loc, {zero, zero, zero}, {count, depth, rows}, {one, step, one},
      [&](OpBuilder &body, Location, ValueRange at) {
        Value block = arith::DivUIOp::create(body, loc, at[1], index(body, length));
        Value scale = memref::LoadOp::create(body, loc, scales, ValueRange{at[0], block, at[2]});
        Value factor = vector::BroadcastOp::create(body, loc, type, scale);
        Value before = arith::MulIOp::create(body, loc, at[2], step);
        Value line = arith::DivUIOp::create(body, loc, before, rows);
        Value position[] = {at[0], arith::AddIOp::create(body, loc, at[1], line),
                            arith::RemUIOp::create(body, loc, before, rows)};
        Value value = vector::LoadOp::create(body, loc, type, panels, position);
        vector::StoreOp::create(body, loc, scalePairs(body, loc, value, factor), panels, position);
      });
}

void fp8::buildScaleTilePanels(OpBuilder &builder, Location loc, Value panels, Value scales, int64_t length) {
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  std::string name = "fp8_cpu_scale_panels_tiles_";
  llvm::raw_string_ostream(name) << width << "_" << length;
  Type type = getStridedType(builder.getF32Type(), 3, width);
  auto build = [&](OpBuilder &body, ValueRange arguments) { scaleTilePanels(body, arguments, length / 2); };
  func::FuncOp scale = getOrCreateFunction(builder, name, {type, type}, build);
  callFunction(builder, loc, scale, ValueRange{panels, scales});
}

void fp8::buildScalePanels(OpBuilder &builder, Location loc, Value panels, Value scales, int64_t length,
                           const PackedMatmulOptions &options) {
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  std::string name = "fp8_cpu_scale_panels_";
  llvm::raw_string_ostream(name) << (options.hasPairs() ? "pairs_" : "") << width << "_" << length;
  Type type = getStridedType(builder.getF32Type(), 3, width);
  auto build = [&](OpBuilder &body, ValueRange arguments) {
    scalePanels(body, arguments, options.hasPairs() ? length / 2 : length, options);
  };
  func::FuncOp scale = getOrCreateFunction(builder, name, {type, type}, build);
  callFunction(builder, loc, scale, ValueRange{panels, scales});
}
