// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grouped products (mixture of experts) by mma.sync: the view of an operation, with a product of plain
// matrices as stand-in for its epilogue, and operands whose groups begin at multiples of 16 bytes along K.

#include "GroupedProduct.h"
#include "Lowering.h"
#include "Product.h"
#include "ProductConfig.h"
#include "fp8/Dialect/FP8/IR/KernelMarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Operands of weight gradients
//===----------------------------------------------------------------------===//

static Value constantIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// Returns `value` rounded up to a multiple of `step`.
static Value alignUp(OpBuilder &b, Location loc, Value value, int64_t step) {
  Value size = constantIndex(b, loc, step);
  return b.createOrFold<arith::MulIOp>(loc, b.createOrFold<arith::CeilDivUIOp>(loc, value, size), size);
}

/// Builds the place of each row in a buffer where each group begins at a multiple of `step` rows; -1 for
/// rows of no group. One thread per row.
static Value buildPlaces(OpBuilder &builder, Location loc, const RowsOfGroups &groups, Value rows,
                         int64_t step) {
  auto size = getConstantIntValue(rows);
  auto type = MemRefType::get({size.value_or(ShapedType::kDynamic)}, builder.getI32Type());
  Value places = memref::AllocOp::create(builder, loc, type, size ? ValueRange() : ValueRange(rows));
  Value zero = constantIndex(builder, loc, 0), one = constantIndex(builder, loc, 1);
  Value count = memref::DimOp::create(builder, loc, groups.ends, 0);
  auto kernel =
      scf::ParallelOp::create(builder, loc, zero, rows, one, [&](OpBuilder &b, Location, ValueRange row) {
        Value none = arith::ConstantIndexOp::create(b, loc, -1);
        // The end of the group before, the place where this group begins, and the row's place once known.
        SmallVector<Value> inits{zero, zero, none};
        auto loop = scf::ForOp::create(
            b, loc, zero, count, one, inits, [&](OpBuilder &inner, Location, Value group, ValueRange state) {
              Value begin = state[0], start = state[1];
              Value end = arith::IndexCastOp::create(inner, loc, inner.getIndexType(),
                                                     memref::LoadOp::create(inner, loc, groups.ends, group));
              end = arith::MaxSIOp::create(inner, loc, arith::MinSIOp::create(inner, loc, end, rows), begin);
              Value isIn = arith::AndIOp::create(
                  inner, loc, arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ule, begin, row[0]),
                  arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ult, row[0], end));
              Value place =
                  arith::AddIOp::create(inner, loc, start, arith::SubIOp::create(inner, loc, row[0], begin));
              Value length = alignUp(inner, loc, arith::SubIOp::create(inner, loc, end, begin), step);
              scf::YieldOp::create(inner, loc,
                                   ValueRange{end, arith::AddIOp::create(inner, loc, start, length),
                                              arith::SelectOp::create(inner, loc, isIn, place, state[2])});
            });
        Value place = arith::IndexCastOp::create(b, loc, b.getI32Type(), loop.getResult(2));
        memref::StoreOp::create(b, loc, place, places, row);
      });
  kernel->setAttr(kComputesAttrName, builder.getStringAttr("pack"));
  return places;
}

/// Copies `memref`, whose rows are those that are divided among groups, to [the other dimension][places].
static ProductOperand packByGroups(OpBuilder &builder, Location loc, Value memref, unsigned rowPosition,
                                   Value places, Value rows, Value groups) {
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8, step = kOperandAlignment / bytes;
  Value columns = getValueOrCreateConstantIndexOp(
      builder, loc, memref::getMixedSize(builder, loc, memref, 1 - rowPosition));
  // A group is padded by less than `step` rows.
  Value padding = builder.createOrFold<arith::MulIOp>(loc, groups, constantIndex(builder, loc, step));
  Value pitch = builder.createOrFold<arith::AddIOp>(loc, alignUp(builder, loc, rows, step), padding);
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults({getAsOpFoldResult(columns), getAsOpFoldResult(pitch)}, dynamic, shape);
  Value buffer =
      memref::AllocOp::create(builder, loc, MemRefType::get(shape, type.getElementType()), dynamic);
  Value zero = constantIndex(builder, loc, 0), one = constantIndex(builder, loc, 1);
  auto kernel = scf::ParallelOp::create(
      builder, loc, ValueRange{zero, zero}, ValueRange{columns, rows}, ValueRange{one, one},
      [&](OpBuilder &b, Location, ValueRange at) {
        Value place = memref::LoadOp::create(b, loc, places, at[1]);
        Value none = arith::ConstantIntOp::create(b, loc, 0, 32);
        Value isIn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, place, none);
        scf::IfOp::create(b, loc, isIn, [&](OpBuilder &inner, Location) {
          SmallVector<Value> from{at[1], at[0]};
          if (rowPosition == 1)
            std::swap(from[0], from[1]);
          Value element = memref::LoadOp::create(inner, loc, memref, from);
          Value to = arith::IndexCastOp::create(inner, loc, inner.getIndexType(), place);
          memref::StoreOp::create(inner, loc, element, buffer, ValueRange{at[0], to});
          scf::YieldOp::create(inner, loc);
        });
      });
  kernel->setAttr(kComputesAttrName, builder.getStringAttr("pack"));
  Value pitchBytes = builder.createOrFold<arith::MulIOp>(loc, pitch, constantIndex(builder, loc, bytes));
  return {buffer, pitchBytes, zero, constantIndex(builder, loc, bytes)};
}

std::array<ProductOperand, 2> fp8::prepareGroupedOperands(OpBuilder &builder, LoweringContext &context,
                                                          const Product &product) {
  bool is16Bit = getElementTypeOrSelf(product.lhs).getIntOrFloatBitWidth() == 16;
  Location loc = product.op->getLoc();
  if (product.groups->ofResult) {
    ProductOperand lhs = prepareOperand(builder, context, product, /*isLhs=*/true, is16Bit);
    lhs.batchStride = constantIndex(builder, loc, 0); // all groups are in one matrix
    return {lhs, prepareOperand(builder, context, product, /*isLhs=*/false, is16Bit)};
  }
  Value places;
  std::array<ProductOperand, 2> operands;
  for (unsigned i : {0u, 1u}) {
    std::optional<ProductOperand> inPlace = is16Bit ? viewOperand(builder, product, i == 0) : std::nullopt;
    if (inPlace && inPlace->isTransposed) {
      operands[i] = *inPlace;
      continue;
    }
    Value memref = i == 0 ? product.lhs : product.rhs;
    unsigned position = *product.maps[i].getResultPosition(builder.getAffineDimExpr(product.dims.k.front()));
    Value rows = product.buildSize(builder, product.dims.k);
    if (!places)
      places = buildPlaces(builder, loc, *product.groups, rows,
                           kOperandAlignment / (getElementTypeOrSelf(memref).getIntOrFloatBitWidth() / 8));
    Value groups = getValueOrCreateConstantIndexOp(
        builder, loc, memref::getMixedSize(builder, loc, product.groups->ends, 0));
    product.addNote(Twine(i == 0 ? "left" : "right") +
                    " operand copied first: groups begin at multiples of 16 bytes");
    operands[i] = packByGroups(builder, loc, memref, position, places, rows, groups);
  }
  return operands;
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

/// Creates the product of plain matrices that stands in for a grouped one where its epilogue is asked for.
static Operation *createStandIn(OpBuilder &builder, GroupedMatmulOp op) {
  MatmulOp::Properties properties;
  properties.operandSegmentSizes = {1, 1, 0, 0, 1};
  properties.setIndexingMaps(op.getIndexingMapsAttr());
  properties.setSite(op.getSiteAttr());
  properties.setRole(op.getRoleAttr());
  return MatmulOp::create(builder, op.getLoc(), TypeRange(),
                          ValueRange{op.getLhs(), op.getRhs(), op.getOuts()}, properties);
}

static Operation *createStandIn(OpBuilder &builder, ScaledGroupedMatmulOp op) {
  ScaledMatmulOp::Properties properties;
  properties.operandSegmentSizes = {1, 1, 1, 1, 0, 0, 1};
  properties.setIndexingMaps(op.getIndexingMapsAttr());
  properties.setAccumulation(op.getAccumulationAttr());
  properties.setSite(op.getSiteAttr());
  properties.setRole(op.getRoleAttr());
  return ScaledMatmulOp::create(
      builder, op.getLoc(), TypeRange(),
      ValueRange{op.getLhs(), op.getRhs(), op.getLhsScaleInv(), op.getRhsScaleInv(), op.getOuts()},
      properties);
}

/// The first version of PTX in which mma.sync takes FP8; code for sm_90a keeps to an older one.
static constexpr unsigned kFirstFP8Version = 84;

/// Returns whether the chip's code may use mma.sync for the types, and there is something to sum.
static bool hasKernel(const Product &product, const ProductConfig &config, const Chip &chip) {
  bool isFP8 = getElementTypeOrSelf(product.lhs).getIntOrFloatBitWidth() == 8;
  if (isFP8 && chip.ptxVersion < kFirstFP8Version)
    return false;
  SmallVector<unsigned> dims =
      llvm::to_vector(llvm::concat<const unsigned>(product.dims.m, product.dims.n, product.dims.k));
  return config.family &&
         !llvm::is_contained(llvm::map_to_vector(dims, [&](unsigned dim) { return product.knownSize(dim); }),
                             0);
}

template <typename Op>
static bool lower(OpBuilder &builder, Op op, LoweringContext &context) {
  if constexpr (std::is_same_v<Op, ScaledGroupedMatmulOp>)
    if (op.getLhsBlock() || op.getRhsBlock())
      return false;
  GroupedDims grouped = op.getGroupedDims();
  if (cast<ShapedType>(op.getGroupEnds().getType()).getDimSize(0) == 0)
    return false;
  Operation *standIn = createStandIn(builder, op);
  Product product(standIn, op.getContractionDims());
  product.groups = RowsOfGroups{op.getGroupEnds(), grouped.group, grouped.divided != 2};
  if (grouped.divided == 2)
    product.dims.batch.push_back(grouped.group);
  else if (product.dims.n.front() == grouped.rows)
    product.swap();
  ProductConfig config = chooseMmaConfig(
      {getElementTypeOrSelf(product.lhs), getElementTypeOrSelf(product.rhs), product.split,
       /*strict=*/false, ScalesAlongK::none, ShapedType::kDynamic, product.knownSize(product.dims.m),
       product.knownSize(product.dims.n), product.knownSize(product.dims.k)});
  bool lowered =
      hasKernel(product, config, context.chip) && lowerMmaProduct(builder, product, config, context);
  standIn->erase();
  return lowered;
}

bool fp8::lowerGroupedProduct(OpBuilder &builder, Operation *op, LoweringContext &context) {
  if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
    return lower(builder, grouped, context);
  return lower(builder, cast<ScaledGroupedMatmulOp>(op), context);
}
