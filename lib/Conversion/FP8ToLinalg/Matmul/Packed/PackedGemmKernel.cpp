// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The micro-kernel: the loops over blocks of K, panels of B and panels of A around the register tiles. One
// private function per module, tile, and kind of sum.

#include "PackedGemmAMX.h"
#include "PackedGemmTile.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

int64_t fp8::partLength(const BlockPanels &blocks, const PackedMatmulOptions &options) {
  int64_t products = blocks.length ? blocks.length : options.split ? kSplitLength : 0;
  return products / options.traits().inElement;
}

Value fp8::viewPanel(OpBuilder &builder, Location loc, Value panels, Value number) {
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  OpFoldResult depth = memref::getMixedSize(builder, loc, panels, 1);
  OpFoldResult offsets[] = {number, zero, zero}, sizes[] = {one, depth, builder.getIndexAttr(width)};
  OpFoldResult strides[] = {one, one, one};
  int64_t shape[] = {ShapedType::kDynamic, width};
  auto type = memref::SubViewOp::inferRankReducedResultType(shape, cast<MemRefType>(panels.getType()),
                                                            offsets, sizes, strides);
  Value panel = memref::SubViewOp::create(builder, loc, type, panels, offsets, sizes, strides);
  return memref::CollapseShapeOp::create(builder, loc, panel, ArrayRef<ReassociationIndices>{{0, 1}});
}

/// Returns the length of a block of K, in elements of a panel: blocks of about equal length, which are whole
/// parts of `part` elements.
static Value buildBlockLength(OpBuilder &builder, Location loc, Value end, int64_t part,
                              const PackedGemmTile &tile) {
  Value unit = arith::ConstantIndexOp::create(builder, loc, part);
  int64_t mostParts = std::max<int64_t>(mostInBlock(tile) / part, 1);
  Value most = arith::ConstantIndexOp::create(builder, loc, mostParts);
  Value parts = arith::CeilDivUIOp::create(builder, loc, end, unit);
  Value count = arith::CeilDivUIOp::create(builder, loc, parts, most);
  return arith::MulIOp::create(builder, loc, arith::CeilDivUIOp::create(builder, loc, parts, count), unit);
}

/// Writes zeros to the sums `c` of a matmul without summands, of which no block has a scale.
static void clearEmptySums(OpBuilder &builder, Location loc, Value c, Value depth) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isEmpty = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, depth, zero);
  auto branch = scf::IfOp::create(builder, loc, isEmpty, /*withElseRegion=*/false);
  OpBuilder then = OpBuilder::atBlockTerminator(branch.thenBlock());
  linalg::FillOp::create(then, loc,
                         arith::ConstantOp::create(then, loc, then.getF32FloatAttr(0.0f)).getResult(), c);
}

/// Blocks of K outside, so that a block of a panel of B stays in the L1 cache while all panels of A run
/// past it, and their block of K in the L2 cache.
static void buildBody(OpBuilder &builder, ValueRange operands, const BlockPanels &blocks,
                      const PackedMatmulOptions &options, const PackedGemmTile &tile) {
  Location loc = builder.getUnknownLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value rows = memref::DimOp::create(builder, loc, operands[0], zero);
  Value depth = memref::DimOp::create(builder, loc, operands[0], one);
  Value columns = memref::DimOp::create(builder, loc, operands[1], zero);
  Value end = depth;
  if (blocks.length)
    clearEmptySums(builder, loc, operands[2], depth);
  else
    end = arith::MaxSIOp::create(builder, loc, depth, one); // without products the sums are zero
  int64_t unit = std::max(partLength(blocks, options), options.traits().step);
  Value length = buildBlockLength(builder, loc, end, unit, tile);
  auto buildLoops = [&](auto tiles) {
    auto panels = [&](OpBuilder &body, Location, ValueRange position) {
      Value whole = arith::AddIOp::create(body, loc, position[0], length);
      Value last = arith::MinSIOp::create(body, loc, whole, depth);
      tiles.start(body, position[1], position[0], last);
      auto loop = scf::ForOp::create(body, loc, zero, rows, one);
      OpBuilder inside = OpBuilder::atBlockTerminator(loop.getBody());
      tiles.build(inside, loop.getInductionVar());
    };
    scf::buildLoopNest(builder, loc, {zero, zero}, {end, columns}, {length, one}, panels);
  };
  if (options.hasTiles())
    buildLoops(AMXTileBuilder(builder, loc, operands, blocks, tile, options));
  else
    buildLoops(TileBuilder(loc, operands, blocks, tile, options));
}

/// Returns the name of the function for these parameters.
static std::string nameOf(const BlockPanels &blocks, const PackedMatmulOptions &options,
                          const PackedGemmTile &tile) {
  std::string name = "fp8_cpu_gemm_";
  llvm::raw_string_ostream out(name);
  out << (options.hasTiles()   ? "amx_"
          : options.hasPairs() ? "bf16_"
                               : "f32_")
      << tile.rows << "x" << tile.columns;
  if (blocks.length)
    out << "_blocks_" << blocks.length << (blocks.rowsFirst ? "" : "_columns_first");
  else if (options.split)
    out << "_split";
  return name;
}

func::CallOp fp8::buildGemm(OpBuilder &builder, Location loc, Value a, Value b, Value c, Value before,
                            const BlockPanels &blocks, const PackedMatmulOptions &options,
                            const PackedGemmTile &tile) {
  Type f32 = builder.getF32Type();
  Type rows = getStridedType(f32, 3, tile.rows), columns = getStridedType(f32, 3, tile.columns);
  SmallVector<Type> inputs{rows, columns, getStridedType(f32, 2), builder.getIndexType()};
  SmallVector<Value> operands{a, b, c, before};
  if (blocks.length) {
    inputs.append({rows, columns});
    operands.append({blocks.a, blocks.b});
  }
  auto build = [&](OpBuilder &body, ValueRange arguments) {
    BlockPanels parameters = blocks;
    if (blocks.length) {
      parameters.a = arguments[4];
      parameters.b = arguments[5];
    }
    buildBody(body, arguments, parameters, options, tile);
  };
  func::FuncOp gemm = getOrCreateFunction(builder, nameOf(blocks, options, tile), inputs, build);
  return callFunction(builder, loc, gemm, operands);
}
