// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// E8M0 scales of matmuls become packed scales, for targets whose tensor cores read them in this order.

#include "ScaledMatmuls.h"
#include "fp8/Dialect/FP8/IR/Chips.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_PACKSCALES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// The dimensions of an operand's scales as [batch, rows, K].
struct ScaleOrder {
  SmallVector<int64_t> order;               ///< positions of the dimensions: batches, rows, K
  SmallVector<ReassociationIndices> groups; ///< of them: the batches, if there are any, the rows, K
  bool hasRows;                             ///< else there is one, which no dimension counts
};

template <typename Op>
ScaleOrder findOrder(Op op, bool isLhs) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap map = maps[isLhs ? 0 : 1];
  ContractionDims dims = getOperandDims(op);
  auto position = [&](AffineMap map, unsigned dim) {
    return *map.getResultPosition(getAffineDimExpr(dim, op.getContext()));
  };
  ScaleOrder result;
  auto append = [&](SmallVector<unsigned> group, bool isContracted) {
    if (group.empty())
      return;
    if (!isContracted)
      llvm::sort(group, [&](unsigned x, unsigned y) { return position(maps[2], x) < position(maps[2], y); });
    result.groups.emplace_back();
    for (unsigned dim : group) {
      result.groups.back().push_back(result.order.size());
      result.order.push_back(position(map, dim));
    }
  };
  llvm::erase_if(dims.batch, [&](unsigned dim) { return !map.isFunctionOfDim(dim); });
  append(dims.batch, false);
  const SmallVector<unsigned> &rows = isLhs ? dims.m : dims.n;
  result.hasRows = !rows.empty();
  append(rows, false);
  append(dims.k, true);
  return result;
}

/// Returns the number of entries of packed scales of [batch, rows, K] or [rows, K].
OpFoldResult countPacked(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes) {
  int64_t known = 512;
  Value unknown;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    int64_t unit = dim + 1 == sizes.size() ? 4 : dim + 2 == sizes.size() ? 128 : 1;
    if (std::optional<int64_t> constant = getConstantIntValue(size)) {
      known *= llvm::divideCeil(*constant, unit);
      continue;
    }
    Value extent = arith::ConstantIndexOp::create(b, loc, unit);
    Value tiles = b.createOrFold<arith::CeilDivUIOp>(loc, cast<Value>(size), extent);
    unknown = unknown ? b.createOrFold<arith::MulIOp>(loc, unknown, tiles) : tiles;
  }
  if (!unknown)
    return b.getIndexAttr(known);
  return b.createOrFold<arith::MulIOp>(loc, unknown, arith::ConstantIndexOp::create(b, loc, known));
}

/// Returns the packed form of `scales`.
Value pack(OpBuilder &b, Location loc, Value scales, const ScaleOrder &order) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, scales);
  Type element = getElementTypeOrSelf(scales);
  if (!isIdentityPermutation(order.order)) {
    applyPermutationToVector(sizes, order.order);
    Value init = tensor::EmptyOp::create(b, loc, sizes, element);
    scales = linalg::TransposeOp::create(b, loc, scales, init, order.order)->getResult(0);
  }
  if (order.groups.size() != order.order.size())
    scales = tensor::CollapseShapeOp::create(b, loc, scales, order.groups);
  if (!order.hasRows) { // each batch has tiles of its own
    sizes = tensor::getMixedSizes(b, loc, scales);
    sizes.insert(sizes.end() - 1, b.getIndexAttr(1));
    auto [shape, values] = decomposeMixedValues(sizes);
    SmallVector<ReassociationIndices> groups;
    if (sizes.size() == 3)
      groups.push_back({0});
    groups.push_back({int64_t(sizes.size()) - 2, int64_t(sizes.size()) - 1});
    scales =
        tensor::ExpandShapeOp::create(b, loc, RankedTensorType::get(shape, element), scales, groups, sizes);
  }
  OpFoldResult count = countPacked(b, loc, tensor::getMixedSizes(b, loc, scales));
  Value init = tensor::EmptyOp::create(b, loc, count, element);
  return PackScalesOp::create(b, loc, TypeRange(init), scales, init).getResult(0);
}

/// Returns the blocks of a scale for each row and each 32 elements along K of an operand.
template <typename Op>
SmallVector<int64_t> getBlocksOfRows(Op op, bool isLhs) {
  AffineMap map = op.getIndexingMapsArray()[isLhs ? 0 : 1];
  unsigned k = op.getContractionDims().k.front();
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) -> int64_t {
    return cast<AffineDimExpr>(expr).getPosition() == k ? 32 : 1;
  });
}

/// Returns whether an operand has an E8M0 scale for each 32 elements along K, of one row or of several.
template <typename Op>
bool hasScalesOf32(Op op, bool isLhs) {
  auto type = dyn_cast<RankedTensorType>((isLhs ? op.getLhsScaleInv() : op.getRhsScaleInv()).getType());
  std::optional<ArrayRef<int64_t>> block = isLhs ? op.getLhsBlock() : op.getRhsBlock();
  if (!type || !isa<Float8E8M0FNUType>(type.getElementType()) || !block ||
      op.getContractionDims().k.size() != 1)
    return false;
  // Scales of rank 1 are packed ones, or those of a vector, which only known sizes tell apart.
  auto data = cast<RankedTensorType>((isLhs ? op.getLhs() : op.getRhs()).getType());
  bool isOfVector = data.getRank() == 1 && data.hasStaticShape() &&
                    type.getDimSize(0) == int64_t(llvm::divideCeil(data.getDimSize(0), 32));
  if (type.getRank() == 1 && !isOfVector)
    return false;
  return llvm::all_of(llvm::zip_equal(*block, getBlocksOfRows(op, isLhs)), [](auto extents) {
    auto [own, ofRows] = extents;
    return own == ofRows || ofRows == 1;
  });
}

/// Returns scales that have an entry for each row of `data`, from `scales` of `blocks`, of which some have
/// several rows.
Value repeatForRows(OpBuilder &b, Location loc, Value scales, Value data, ArrayRef<int64_t> blocks,
                    ArrayRef<int64_t> ofRows) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, scales);
  SmallVector<OpFoldResult> dataSizes = tensor::getMixedSizes(b, loc, data);
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (blocks[dim] != ofRows[dim])
      sizes[dim] = dataSizes[dim];
  Value init = tensor::EmptyOp::create(b, loc, sizes, getElementTypeOrSelf(scales));
  AffineMap identity = b.getMultiDimIdentityMap(sizes.size());
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &inner, Location, ValueRange) {
    SmallVector<Value> at;
    for (auto [dim, own, row] : llvm::enumerate(blocks, ofRows)) {
      Value index = linalg::IndexOp::create(inner, loc, dim);
      if (own == 0)
        index = arith::ConstantIndexOp::create(inner, loc, 0);
      else if (own != row)
        index = arith::DivUIOp::create(inner, loc, index, arith::ConstantIndexOp::create(inner, loc, own));
      at.push_back(index);
    }
    linalg::YieldOp::create(inner, loc, tensor::ExtractOp::create(inner, loc, scales, at).getResult());
  };
  return linalg::GenericOp::create(b, loc, init.getType(), ValueRange(), init, identity, iterators, body)
      .getResult(0);
}

template <typename Op>
void packScales(Op op) {
  bool isEmpty = llvm::is_contained(op.getStaticLoopRanges(), 0); // such a matmul has no kernel
  if (isEmpty || !hasScalesOf32(op, /*isLhs=*/true) || !hasScalesOf32(op, /*isLhs=*/false))
    return;
  OpBuilder builder(op);
  for (bool isLhs : {true, false}) {
    OpOperand &scales = isLhs ? op.getLhsScaleInvMutable() : op.getRhsScaleInvMutable();
    SmallVector<int64_t> blocks(*(isLhs ? op.getLhsBlock() : op.getRhsBlock()));
    SmallVector<int64_t> ofRows = getBlocksOfRows(op, isLhs);
    if (blocks != ofRows) {
      scales.set(repeatForRows(builder, op.getLoc(), scales.get(), isLhs ? op.getLhs() : op.getRhs(), blocks,
                               ofRows));
      auto attribute = builder.getDenseI64ArrayAttr(ofRows);
      isLhs ? op.setLhsBlockAttr(attribute) : op.setRhsBlockAttr(attribute);
    }
    scales.set(pack(builder, op.getLoc(), scales.get(), findOrder(op, isLhs)));
  }
}

class PackScales : public impl::PackScalesBase<PackScales> {
public:
  void runOnOperation() final {
    auto target = dyn_cast_or_null<ChipAttr>(getTarget(getOperation()->getParentOfType<ModuleOp>()));
    if (!target || !getChip(target).hasMXScales)
      return;
    getOperation().walk([](Operation *op) {
      if (auto matmul = dyn_cast<ScaledMatmulOp>(op))
        packScales(matmul);
      if (auto grouped = dyn_cast<ScaledGroupedMatmulOp>(op))
        packScales(grouped);
    });
  }
};

} // namespace
} // namespace fp8
