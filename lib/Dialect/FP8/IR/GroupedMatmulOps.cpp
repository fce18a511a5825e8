// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls of groups of rows: fp8.group_rows, fp8.grouped_matmul, fp8.scaled_grouped_matmul.

#include "OpVerification.h"

using namespace mlir;
using namespace fp8;
using fp8::detail::sizesMatch;

//===----------------------------------------------------------------------===//
// GroupRowsOp
//===----------------------------------------------------------------------===//

RankedTensorType GroupRowsOp::getGroupedType(RankedTensorType rows, RankedTensorType ends) {
  return rows.clone({ends.getDimSize(0), rows.getDimSize(0), rows.getDimSize(1)});
}

LogicalResult GroupRowsOp::verify() {
  auto rows = cast<RankedTensorType>(getRows().getType()),
       ends = cast<RankedTensorType>(getGroupEnds().getType());
  if (rows.getRank() != 2 || ends.getRank() != 1)
    return emitOpError("needs rows [T, K] and group_ends [G]");
  auto wanted = getGroupedType(rows, ends), result = cast<RankedTensorType>(getResult().getType());
  if (!fp8::detail::shapesMatch(result, wanted) || result.getElementType() != rows.getElementType())
    return emitOpError() << "has the result type " << result << ", expected " << wanted;
  return success();
}

LogicalResult GroupRowsOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back({tensor::getMixedSize(builder, getLoc(), getGroupEnds(), 0),
                    tensor::getMixedSize(builder, getLoc(), getRows(), 0),
                    tensor::getMixedSize(builder, getLoc(), getRows(), 1)});
  return success();
}

//===----------------------------------------------------------------------===//
// Checks that both matmuls share
//===----------------------------------------------------------------------===//

/// Returns the size of every iteration dimension, or emits an error if two operands disagree.
template <typename Op>
static FailureOr<SmallVector<int64_t>> inferLoopRanges(Op op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<int64_t> ranges(4, ShapedType::kDynamic);
  Value shaped[] = {op.getLhs(), op.getRhs(), op.getOuts()};
  auto set = [&](unsigned dim, int64_t size) {
    bool fits = sizesMatch(ranges[dim], size);
    if (!ShapedType::isDynamic(size))
      ranges[dim] = size;
    return fits;
  };
  for (auto [map, value] : llvm::zip_equal(maps, shaped))
    for (auto [position, size] : llvm::enumerate(cast<ShapedType>(value.getType()).getShape()))
      if (unsigned dim = map.getDimPosition(position); !set(dim, size))
        return op.emitOpError() << "operands disagree on the size of dimension d" << dim << ": " << size
                                << " in " << value.getType();
  unsigned group = inferGroupedDims(maps)->group;
  int64_t ends = cast<ShapedType>(op.getGroupEnds().getType()).getDimSize(0);
  if (int64_t groups = ranges[group]; !set(group, ends))
    return op.emitOpError() << "group_ends has " << ends << " entries for " << groups << " groups";
  return ranges;
}

template <typename Op>
static LogicalResult verifyGrouped(Op op) {
  if (failed(fp8::detail::verifyDestinationStyle(op)))
    return failure();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Value shaped[] = {op.getLhs(), op.getRhs(), op.getOuts()};
  if (!inferGroupedDims(maps))
    return op.emitOpError("needs 3 indexing_maps of 4 dimensions: groups in one of them, rows in the other "
                          "two, and the maps of a matmul [M, K] · [K, N] without the groups");
  for (auto [map, value] : llvm::zip_equal(maps, shaped))
    if (int64_t rank = cast<ShapedType>(value.getType()).getRank(); map.getNumResults() != rank)
      return op.emitOpError() << "an indexing map has " << map.getNumResults() << " results for rank "
                              << rank;
  if (cast<ShapedType>(op.getGroupEnds().getType()).getRank() != 1)
    return op.emitOpError("group_ends must have one dimension, the groups");
  return inferLoopRanges(op);
}

/// Returns the M, N and K dimensions without the groups, in the iteration space with them.
template <typename Op>
static ContractionDims inferDims(Op op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  unsigned group = op.getGroupedDims().group;
  ContractionDims dims = *inferContractionDims(dropGroup(maps, group));
  for (SmallVector<unsigned> *list : {&dims.m, &dims.n, &dims.k})
    for (unsigned &dim : *list)
      dim += dim >= group;
  return dims;
}

//===----------------------------------------------------------------------===//
// GroupedMatmulOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(GroupedMatmulOp, false)

// These cannot fail on a verified operation, because the verifier has compared all sizes.
SmallVector<int64_t> GroupedMatmulOp::getStaticLoopRanges() { return *inferLoopRanges(*this); }
ContractionDims GroupedMatmulOp::getContractionDims() { return inferDims(*this); }

LogicalResult GroupedMatmulOp::verify() {
  for (Value value : {getLhs(), getRhs(), getOuts()})
    if (getElementTypeOrSelf(value).getIntOrFloatBitWidth() > 32)
      return emitOpError() << "has an operand of " << getElementTypeOrSelf(value)
                           << ", expected floats of at most 32 bits";
  return verifyGrouped(*this);
}

//===----------------------------------------------------------------------===//
// ScaledGroupedMatmulOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(ScaledGroupedMatmulOp, false)

SmallVector<int64_t> ScaledGroupedMatmulOp::getStaticLoopRanges() { return *inferLoopRanges(*this); }
ContractionDims ScaledGroupedMatmulOp::getContractionDims() { return inferDims(*this); }

LogicalResult ScaledGroupedMatmulOp::verify() {
  if (failed(verifyGrouped(*this)))
    return failure();
  SmallVector<AffineMap> maps = getIndexingMapsArray();
  ContractionDims dims = getContractionDims();
  dims.batch.push_back(getGroupedDims().group);
  if (failed(fp8::detail::verifyMatmulScale(*this, /*isLhs=*/true, getLhsScaleInv().getType(),
                                            getLhs().getType(), getLhsBlock(), maps[0], dims)) ||
      failed(fp8::detail::verifyMatmulScale(*this, /*isLhs=*/false, getRhsScaleInv().getType(),
                                            getRhs().getType(), getRhsBlock(), maps[1], dims)))
    return failure();
  Type element = getElementTypeOrSelf(getOuts());
  if (!element.isF32() && !element.isBF16() && !element.isF16())
    return emitOpError() << "result element type " << element << " must be f32, bf16 or f16";
  return success();
}
