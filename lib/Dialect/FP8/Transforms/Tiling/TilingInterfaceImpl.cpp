// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Implements upstream's TilingInterface. A tile computes the same bits as the whole operation:
// dimensions that a result is reduced over are not tiled, and blocks are never split.

#include "fp8/Dialect/FP8/Transforms/TilingInterfaceImpl.h"
#include "TilingSpace.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Interfaces/TilingInterface.h"

using namespace mlir;
using fp8::detail::TilingSpace;

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {

template <typename Op>
struct TilingModel : TilingInterface::ExternalModel<TilingModel<Op>, Op> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    TilingSpace space(op);
    return llvm::map_to_vector(llvm::seq(space.getNumDims()), [&](unsigned dim) {
      return space.isInRow(dim) || space.getReducedResult(dim) ? utils::IteratorType::reduction
                                                               : utils::IteratorType::parallel;
    });
  }

  SmallVector<Range> getIterationDomain(Operation *op, OpBuilder &builder) const {
    TilingSpace space(op);
    return llvm::map_to_vector(llvm::seq(space.getNumDims()), [&](unsigned dim) {
      return Range{builder.getIndexAttr(0), space.getSize(builder, dim), builder.getIndexAttr(1)};
    });
  }

  FailureOr<TilingResult> getTiledImplementation(Operation *op, OpBuilder &builder,
                                                 ArrayRef<OpFoldResult> offsets,
                                                 ArrayRef<OpFoldResult> sizes) const {
    TilingSpace space(op);
    std::string obstacle = space.findObstacle(offsets, sizes);
    if (!obstacle.empty())
      return op->emitOpError(obstacle);
    return space.tile(builder, offsets, sizes);
  }

  LogicalResult getResultTilePosition(Operation *op, OpBuilder &builder, unsigned result,
                                      ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                                      SmallVector<OpFoldResult> &resultOffsets,
                                      SmallVector<OpFoldResult> &resultSizes) const {
    TilingSpace space(op);
    linalg::SliceParameters slice = space.getSlice(builder, space.getInit(result), offsets, sizes);
    resultOffsets = slice.offsets;
    resultSizes = slice.sizes;
    return success();
  }

  LogicalResult getIterationDomainTileFromResultTile(Operation *op, OpBuilder &builder, unsigned result,
                                                     ArrayRef<OpFoldResult> resultOffsets,
                                                     ArrayRef<OpFoldResult> resultSizes,
                                                     SmallVectorImpl<OpFoldResult> &offsets,
                                                     SmallVectorImpl<OpFoldResult> &sizes) const {
    TilingSpace space(op);
    if (failed(space.getTileOfResult(result, resultOffsets, resultSizes, offsets, sizes)))
      return failure();
    space.fillInWhole(builder, offsets, sizes);
    return success();
  }

  // Fusion is optional: an operation that cannot be tiled is not fused, without an error.
  FailureOr<TilingResult> generateResultTileValue(Operation *op, OpBuilder &builder, unsigned result,
                                                  ArrayRef<OpFoldResult> resultOffsets,
                                                  ArrayRef<OpFoldResult> resultSizes) const {
    SmallVector<OpFoldResult> offsets, sizes;
    if (failed(getIterationDomainTileFromResultTile(op, builder, result, resultOffsets, resultSizes, offsets,
                                                    sizes)))
      return failure();
    TilingResult tiled = TilingSpace(op).tile(builder, offsets, sizes);
    tiled.tiledValues = {tiled.tiledValues[result]};
    return tiled;
  }

  bool isOpFusableWithConsumerSlice(Operation *op, unsigned result, ArrayRef<OpFoldResult> resultOffsets,
                                    ArrayRef<OpFoldResult> resultSizes) const {
    SmallVector<OpFoldResult> offsets, sizes;
    return succeeded(TilingSpace(op).getTileOfResult(result, resultOffsets, resultSizes, offsets, sizes));
  }
};

template <typename... Ops>
void attachTo(MLIRContext *context) {
  (Ops::template attachInterface<TilingModel<Ops>>(*context), ...);
}

} // namespace

void fp8::registerTilingInterfaceExternalModels(DialectRegistry &registry) {
  // Needed to compare and bound dynamic sizes by the operations that compute them.
  affine::registerValueBoundsOpInterfaceExternalModels(registry);
  arith::registerValueBoundsOpInterfaceExternalModels(registry);
  tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  memref::registerValueBoundsOpInterfaceExternalModels(registry);
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    // Offsets and sizes of tiles are computed with affine.apply.
    context->loadDialect<affine::AffineDialect>();
    attachTo<MatmulOp, ScaledMatmulOp, QuantizeOp, QuantizeBlocksOp, DequantizeOp, AmaxOp, ComputeScaleOp>(
        context);
  });
}
