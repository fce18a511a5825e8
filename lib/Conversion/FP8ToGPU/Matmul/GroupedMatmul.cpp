// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grouped matmuls (mixture of experts): the view of an operation, with a matmul of plain matrices as
// stand-in for its epilogue, and operands whose groups begin where kernels can read them along K.

#include "GroupedMatmul.h"
#include "MatmulConfig.h"
#include "MatmulLowering.h"
#include "MatmulView.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/GroupedMatmulSupport.h"
#include "fp8/Dialect/FP8/IR/Marks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Operands of weight gradients
//===----------------------------------------------------------------------===//

/// Returns `value` rounded up to a multiple of `step`.
static Value alignUp(OpBuilder &b, Location loc, Value value, int64_t step) {
  Value size = constantIndex(b, loc, step);
  return b.createOrFold<arith::MulIOp>(loc, b.createOrFold<arith::CeilDivUIOp>(loc, value, size), size);
}

/// Builds the row at each place of a buffer of `pitch` rows, in which each group begins at a multiple of
/// `step` rows; -1 for places of no row. One thread per place.
static Value buildSources(OpBuilder &builder, Location loc, const RowsOfGroups &groups, Value rows,
                          Value pitch, int64_t step) {
  auto size = getConstantIntValue(pitch);
  auto type = MemRefType::get({size.value_or(ShapedType::kDynamic)}, builder.getI32Type());
  Value sources = memref::AllocOp::create(builder, loc, type, size ? ValueRange() : ValueRange(pitch));
  Value zero = constantIndex(builder, loc, 0), one = constantIndex(builder, loc, 1);
  Value count = memref::DimOp::create(builder, loc, groups.ends, 0);
  auto kernel =
      scf::ParallelOp::create(builder, loc, zero, pitch, one, [&](OpBuilder &b, Location, ValueRange place) {
        Value none = arith::ConstantIndexOp::create(b, loc, -1);
        // The end of the group before, the place where this group begins, and the row once known.
        SmallVector<Value> inits{zero, zero, none};
        auto loop = scf::ForOp::create(
            b, loc, zero, count, one, inits, [&](OpBuilder &inner, Location, Value group, ValueRange state) {
              Value begin = state[0], start = state[1];
              Value end = arith::IndexCastOp::create(inner, loc, inner.getIndexType(),
                                                     memref::LoadOp::create(inner, loc, groups.ends, group));
              end = arith::MaxSIOp::create(inner, loc, arith::MinSIOp::create(inner, loc, end, rows), begin);
              Value length = arith::SubIOp::create(inner, loc, end, begin);
              // Places before `start` become very large numbers.
              Value inGroup = arith::SubIOp::create(inner, loc, place[0], start);
              Value isIn = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ult, inGroup, length);
              Value row = arith::AddIOp::create(inner, loc, begin, inGroup);
              Value next = arith::AddIOp::create(inner, loc, start, alignUp(inner, loc, length, step));
              scf::YieldOp::create(
                  inner, loc,
                  ValueRange{end, next, arith::SelectOp::create(inner, loc, isIn, row, state[2])});
            });
        Value row = arith::IndexCastOp::create(b, loc, b.getI32Type(), loop.getResult(2));
        memref::StoreOp::create(b, loc, row, sources, place);
      });
  kernel->setAttr(kComputesAttrName, builder.getStringAttr("pack"));
  return sources;
}

/// Copies `memref`, whose rows are those that are divided among groups, to [the other dimension][places];
/// zeros where `sources` has no row.
static MatmulOperand packByGroups(OpBuilder &builder, Location loc, Value memref, unsigned rowPosition,
                                  Value sources, Value pitch) {
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  Value columns = getValueOrCreateConstantIndexOp(
      builder, loc, memref::getMixedSize(builder, loc, memref, 1 - rowPosition));
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults({getAsOpFoldResult(columns), getAsOpFoldResult(pitch)}, dynamic, shape);
  Value buffer =
      memref::AllocOp::create(builder, loc, MemRefType::get(shape, type.getElementType()), dynamic);
  Value zero = constantIndex(builder, loc, 0), one = constantIndex(builder, loc, 1);
  auto kernel = scf::ParallelOp::create(
      builder, loc, ValueRange{zero, zero}, ValueRange{columns, pitch}, ValueRange{one, one},
      [&](OpBuilder &b, Location, ValueRange at) {
        Value row = memref::LoadOp::create(b, loc, sources, at[1]);
        Value first = arith::ConstantIntOp::create(b, loc, 0, 32);
        Value isRow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, row, first);
        auto load = [&](OpBuilder &inner, Location) {
          SmallVector<Value> from{arith::IndexCastOp::create(inner, loc, inner.getIndexType(), row), at[0]};
          if (rowPosition == 1)
            std::swap(from[0], from[1]);
          scf::YieldOp::create(inner, loc, memref::LoadOp::create(inner, loc, memref, from).getResult());
        };
        auto pad = [&](OpBuilder &inner, Location) {
          auto none = inner.getFloatAttr(type.getElementType(), 0.0);
          scf::YieldOp::create(inner, loc, arith::ConstantOp::create(inner, loc, none).getResult());
        };
        Value element = scf::IfOp::create(b, loc, isRow, load, pad).getResult(0);
        memref::StoreOp::create(b, loc, element, buffer, at);
      });
  kernel->setAttr(kComputesAttrName, builder.getStringAttr("pack"));
  Value pitchBytes = builder.createOrFold<arith::MulIOp>(loc, pitch, constantIndex(builder, loc, bytes));
  return {buffer, pitchBytes, zero, constantIndex(builder, loc, bytes)};
}

std::array<MatmulOperand, 2> fp8::prepareGroupedOperands(OpBuilder &builder, LoweringContext &context,
                                                         const MatmulView &matmul, int64_t stepBytes) {
  bool is16Bit = getElementTypeOrSelf(matmul.lhs).getIntOrFloatBitWidth() == 16;
  Location loc = matmul.op->getLoc();
  if (matmul.groups->ofResult) {
    MatmulOperand lhs = prepareOperand(builder, context, matmul, /*isLhs=*/true, is16Bit);
    lhs.batchStride = constantIndex(builder, loc, 0); // all groups are in one matrix
    return {lhs, prepareOperand(builder, context, matmul, /*isLhs=*/false, is16Bit)};
  }
  Value sources, pitch; // of 16-bit operands and FP8 ones alike: both have one type
  std::array<MatmulOperand, 2> operands;
  for (unsigned i : {0u, 1u}) {
    std::optional<MatmulOperand> inPlace = is16Bit ? viewOperand(builder, matmul, i == 0) : std::nullopt;
    if (inPlace && inPlace->isTransposed) {
      operands[i] = *inPlace;
      continue;
    }
    Value memref = i == 0 ? matmul.lhs : matmul.rhs;
    unsigned position = *matmul.maps[i].getResultPosition(builder.getAffineDimExpr(matmul.dims.k.front()));
    if (!sources) {
      int64_t step = stepBytes * 8 / getElementTypeOrSelf(memref).getIntOrFloatBitWidth();
      Value rows = matmul.buildSize(builder, matmul.dims.k);
      Value groups = getValueOrCreateConstantIndexOp(
          builder, loc, memref::getMixedSize(builder, loc, matmul.groups->ends, 0));
      // A group is padded by less than `step` rows.
      Value padding = builder.createOrFold<arith::MulIOp>(loc, groups, constantIndex(builder, loc, step));
      pitch = builder.createOrFold<arith::AddIOp>(loc, alignUp(builder, loc, rows, step), padding);
      sources = buildSources(builder, loc, *matmul.groups, rows, pitch, step);
    }
    matmul.addNote(Twine(i == 0 ? "left" : "right") + " operand copied first: groups begin at multiples of " +
                   Twine(stepBytes) + " bytes");
    operands[i] = packByGroups(builder, loc, memref, position, sources, pitch);
  }
  return operands;
}

//===----------------------------------------------------------------------===//
// The matmul
//===----------------------------------------------------------------------===//

/// Creates the matmul of plain matrices that stands in for a grouped one where its epilogue is asked for.
static Operation *createStandIn(OpBuilder &builder, GroupedMatmulOp op) {
  MatmulOp::Properties properties;
  properties.setIndexingMaps(op.getIndexingMapsAttr());
  properties.setSite(op.getSiteAttr());
  properties.setRole(op.getRoleAttr());
  auto matmulOp =
      MatmulOp::create(builder, op.getLoc(), {op.getLhs(), op.getRhs(), op.getOuts()}, properties);
  matmulOp->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return matmulOp;
}

static Operation *createStandIn(OpBuilder &builder, ScaledGroupedMatmulOp op) {
  ScaledMatmulOp::Properties properties;
  properties.setIndexingMaps(op.getIndexingMapsAttr());
  properties.setAccumulation(op.getAccumulationAttr());
  properties.setLhsBlock(op.getLhsBlockAttr());
  properties.setRhsBlock(op.getRhsBlockAttr());
  properties.setSite(op.getSiteAttr());
  properties.setRole(op.getRoleAttr());
  auto matmulOp = ScaledMatmulOp::create(
      builder, op.getLoc(),
      {op.getLhs(), op.getRhs(), op.getLhsScaleInv(), op.getRhsScaleInv(), op.getOuts()}, properties);
  matmulOp->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return matmulOp;
}

/// Returns whether there is something to sum, with scales that kernels have; groups divide blocks of rows
/// that are summed.
static bool hasKernel(const MatmulView &matmul, const Chip &chip) {
  SmallVector<unsigned> dims =
      llvm::to_vector(llvm::concat<const unsigned>(matmul.dims.m, matmul.dims.n, matmul.dims.k));
  bool isEmpty = llvm::any_of(dims, [&](unsigned dim) { return matmul.knownSize(dim) == 0; });
  int64_t bytes = llvm::divideCeil(getElementTypeOrSelf(matmul.lhs).getIntOrFloatBitWidth(), 8);
  bool isTooLarge =
      llvm::any_of(dims, [&](unsigned dim) { return matmul.knownSize(dim) > kMostOfDimension / bytes; });
  return !isEmpty && !isTooLarge && canScale(chip, matmul) &&
         (matmul.groups->ofResult || matmul.scalesAlongK == ScalesAlongK::none);
}

/// Emits the matmul on a GPU's kernels, if there are any.
static bool lowerToKernel(OpBuilder &builder, const MatmulView &matmul, LoweringContext &context) {
  if (!hasKernel(matmul, context.chip))
    return false;
  FailureOr<MatmulConfig> config = findMatmulConfig(context.chip, matmul);
  if (failed(config))
    context.hasErrors = true;
  if (failed(config) || !config->family)
    return false;
  return config->family == MatmulFamily::mma ? lowerMmaMatmul(builder, matmul, *config, context)
                                             : lowerWideMatmul(builder, matmul, *config, context);
}

/// Calls `body` with the matmul as kernels see it. Returns false if there are no groups.
template <typename Op>
static bool withMatmul(Op op, function_ref<bool(OpBuilder &, const MatmulView &)> body) {
  OpBuilder builder(op);
  GroupedDims grouped = op.getGroupedDims();
  if (cast<ShapedType>(op.getGroupEnds().getType()).getDimSize(0) == 0)
    return false;
  Operation *standIn = createStandIn(builder, op);
  MatmulView matmul(standIn, op.getContractionDims());
  matmul.groups = RowsOfGroups{op.getGroupEnds(), grouped.group, grouped.divided != 2};
  if (grouped.divided == 2)
    matmul.dims.batch.push_back(grouped.group);
  else if (matmul.dims.n.front() == grouped.rows)
    matmul.swap();
  bool result = body(builder, matmul);
  standIn->erase();
  return result;
}

static bool withGroupedMatmul(Operation *op, function_ref<bool(OpBuilder &, const MatmulView &)> body) {
  if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
    return withMatmul(grouped, body);
  return withMatmul(cast<ScaledGroupedMatmulOp>(op), body);
}

bool fp8::lowerGroupedMatmul(Operation *op, LoweringContext &context) {
  return withGroupedMatmul(op, [&](OpBuilder &builder, const MatmulView &matmul) {
    return lowerToKernel(builder, matmul, context);
  });
}

std::optional<FailureOr<MatmulConfig>> fp8::findGroupedConfig(const Chip &chip, Operation *op) {
  std::optional<FailureOr<MatmulConfig>> config;
  withGroupedMatmul(op, [&](OpBuilder &, const MatmulView &matmul) {
    if (hasKernel(matmul, chip))
      config = findMatmulConfig(chip, matmul);
    return config.has_value();
  });
  return config;
}
