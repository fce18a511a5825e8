// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives buffers that matmuls read rows of a multiple of 16 bytes, so that the kernels of matmuls read them
// in place: an allocation of longer rows, and a view of their first elements.

#include "MatmulView.h"
#include "fp8/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

namespace fp8 {
#define GEN_PASS_DEF_PADROWS
#include "fp8/Conversion/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns whether the operation takes a memref of any strides, and its views do.
static bool takesStrides(Operation *op) {
  if (auto view = dyn_cast<memref::SubViewOp>(op))
    return llvm::all_of(view->getUsers(), takesStrides);
  return isa<FP8Dialect>(op->getDialect()) || isa<linalg::LinalgOp>(op) ||
         isa<memref::CopyOp, memref::LoadOp, memref::StoreOp, memref::DimOp, memref::DeallocOp>(op);
}

/// Returns how many of the last dimensions of an operand are one index of the matmul, such as that along K;
/// nothing if `use` is not an operand of a matmul.
static std::optional<unsigned> countRowDims(OpOperand &use) {
  if (use.getOperandNumber() > 1)
    return std::nullopt;
  if (isa<GroupedMatmulOp, ScaledGroupedMatmulOp>(use.getOwner()))
    return 1; // each dimension is an index of its own
  if (!isa<MatmulOp, ScaledMatmulOp>(use.getOwner()))
    return std::nullopt;
  MatmulView matmul(use.getOwner());
  auto positions = matmul.maps[use.getOperandNumber()].getResults();
  auto isIn = [&](ArrayRef<unsigned> group) {
    return [group](AffineExpr expr) {
      return llvm::is_contained(group, cast<AffineDimExpr>(expr).getPosition());
    };
  };
  const ContractionDims &dims = matmul.dims;
  for (ArrayRef<unsigned> group :
       {ArrayRef(dims.batch), ArrayRef(dims.m), ArrayRef(dims.n), ArrayRef(dims.k)})
    if (isIn(group)(positions.back()))
      return llvm::find_if_not(llvm::reverse(positions), isIn(group)) - positions.rbegin();
  return std::nullopt;
}

/// Returns how many of the last dimensions of the buffer are a row for all matmuls that read it; nothing if
/// there are none, or if they differ.
static std::optional<unsigned> findRowDims(memref::AllocOp alloc) {
  std::optional<unsigned> common;
  for (OpOperand &use : alloc->getUses()) {
    std::optional<unsigned> count = countRowDims(use);
    if (common && count && count != common)
      return std::nullopt;
    common = count ? count : common;
  }
  return common;
}

/// Returns the view of an allocation of longer rows that has the shape of `alloc`, whose rows have `rowSize`
/// elements in `rowDims` dimensions.
static Value buildPadded(OpBuilder &builder, memref::AllocOp alloc, unsigned rowDims, int64_t rowSize) {
  Location loc = alloc.getLoc();
  MemRefType type = alloc.getType();
  int64_t perPitch = kOperandAlignment / (type.getElementTypeBitWidth() / 8);
  SmallVector<int64_t> shape(type.getShape().drop_back(rowDims));
  shape.push_back(llvm::alignTo(rowSize, perPitch));
  auto padded = memref::AllocOp::create(builder, loc, MemRefType::get(shape, type.getElementType()),
                                        alloc.getAlignmentAttr());
  shape.back() = rowSize;
  SmallVector<OpFoldResult> zeros(shape.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(shape.size(), builder.getIndexAttr(1));
  Value rows = memref::SubViewOp::create(builder, loc, padded, zeros,
                                         getAsIndexOpFoldResult(builder.getContext(), shape), ones);
  if (rowDims == 1)
    return rows;
  SmallVector<ReassociationIndices> groups;
  for (unsigned dim = 0, rank = type.getRank(); dim < rank; ++dim) {
    if (groups.size() < shape.size())
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  return memref::ExpandShapeOp::create(builder, loc, type.getShape(), rows, groups);
}

/// As above, for a matrix whose rows have a size that only the call knows. Matmuls find the pitch by
/// findPaddedPitch().
static Value buildPaddedMatrix(OpBuilder &builder, memref::AllocOp alloc) {
  Location loc = alloc.getLoc();
  MemRefType type = alloc.getType();
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, loc, alloc.getResult());
  Value perPitch =
      arith::ConstantIndexOp::create(builder, loc, kOperandAlignment / (type.getElementTypeBitWidth() / 8));
  Value units = arith::CeilDivUIOp::create(builder, loc, cast<Value>(sizes[1]), perPitch);
  SmallVector<Value> dynamic(alloc.getDynamicSizes());
  dynamic.back() = arith::MulIOp::create(builder, loc, units, perPitch);
  auto padded = memref::AllocOp::create(builder, loc, type, dynamic, alloc.getAlignmentAttr());
  SmallVector<OpFoldResult> zeros(2, builder.getIndexAttr(0)), ones(2, builder.getIndexAttr(1));
  return memref::SubViewOp::create(builder, loc, padded, zeros, sizes, ones);
}

/// Replaces `from` by `to`, of the same shape and other strides; the types of its views follow.
static void replaceMemory(OpBuilder &builder, Value from, Value to) {
  for (OpOperand &use : llvm::make_early_inc_range(from.getUses())) {
    auto view = dyn_cast<memref::SubViewOp>(use.getOwner());
    if (!view) {
      use.set(to);
      continue;
    }
    builder.setInsertionPoint(view);
    auto type = memref::SubViewOp::inferRankReducedResultType(
        view.getType().getShape(), cast<MemRefType>(to.getType()), view.getMixedOffsets(),
        view.getMixedSizes(), view.getMixedStrides());
    Value copy =
        memref::SubViewOp::create(builder, view.getLoc(), cast<MemRefType>(type), to, view.getMixedOffsets(),
                                  view.getMixedSizes(), view.getMixedStrides());
    replaceMemory(builder, view, copy);
    view.erase();
  }
}

/// Pads the rows of a buffer if matmuls read it, its rows need it, and all its users take that.
static void padRows(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  if (!type.getLayout().isIdentity() || !type.getElementType().isFloat() ||
      type.getElementTypeBitWidth() > 16 || llvm::is_contained(type.getShape(), 0) ||
      !llvm::all_of(alloc->getUsers(), takesStrides))
    return;
  std::optional<unsigned> rowDims = findRowDims(alloc);
  if (!rowDims)
    return;
  if (!type.hasStaticShape()) {
    if (type.getRank() != 2 || *rowDims != 1 || !type.isDynamicDim(1))
      return;
    OpBuilder builder(alloc);
    replaceMemory(builder, alloc, buildPaddedMatrix(builder, alloc));
    alloc.erase();
    return;
  }
  int64_t rowSize = ShapedType::getNumElements(type.getShape().take_back(*rowDims));
  bool isOneRow = rowSize == type.getNumElements();
  if (isOneRow || rowSize * type.getElementTypeBitWidth() / 8 % kOperandAlignment == 0)
    return;
  OpBuilder builder(alloc);
  replaceMemory(builder, alloc, buildPadded(builder, alloc, *rowDims, rowSize));
  alloc.erase();
}

namespace {
struct PadRowsPass : public fp8::impl::PadRowsBase<PadRowsPass> {
  void runOnOperation() override {
    SmallVector<memref::AllocOp> allocs;
    getOperation().walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    llvm::for_each(allocs, padRows);
  }
};
} // namespace
