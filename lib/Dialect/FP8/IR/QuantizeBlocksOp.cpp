// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8.quantize_blocks: a cast with a scale per block, in several directions.

#include "FoldTensorCasts.h"
#include "OpVerification.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fp8;

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

FP8_DEFINE_DPS_METHODS(QuantizeBlocksOp, false)

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Returns the shape of the tensor itself, which the data of `direction` has permuted.
static SmallVector<int64_t> getTensorShape(QuantizeBlocksOp op, unsigned direction) {
  ArrayRef<int64_t> shape = shaped(op.getDataOut(direction)).getShape(),
                    order = op.getTransposition(direction);
  return order.empty() ? SmallVector<int64_t>(shape)
                       : applyPermutation(shape, invertPermutationVector(order));
}

/// Checks the number of `outs` and that each permutation is one of the tensor's dimensions.
static LogicalResult verifyDirections(QuantizeBlocksOp op) {
  unsigned count = op.getNumDirections();
  if (count == 0)
    return op.emitOpError("needs the extents of a block for at least one direction");
  if (op.getTranspositions() && op.getTranspositions()->size() != count)
    return op.emitOpError() << "has " << op.getTranspositions()->size() << " transpositions for " << count
                            << " directions";
  if (op.getOuts().size() < 2 * count)
    return op.emitOpError() << "has " << op.getOuts().size()
                            << " outs, expected data and scale_inv for each of " << count << " directions";
  int64_t rank = shaped(op.getOuts()[0]).getRank();
  for (unsigned i = 0; i < count; ++i) {
    ArrayRef<int64_t> order = op.getTransposition(i);
    if (op.getTranspositions() && (static_cast<int64_t>(order.size()) != rank || !isPermutationVector(order)))
      return op.emitOpError() << "transposition " << i << " must be a permutation of the " << rank
                              << " dimensions";
    if (shaped(op.getDataOut(i)).getRank() != rank)
      return op.emitOpError() << "the data of direction " << i << " must have rank " << rank;
  }
  return success();
}

/// Checks data and scale_inv of one direction against the shape of the tensor.
static LogicalResult verifyDirection(QuantizeBlocksOp op, unsigned direction, ShapedType tensor) {
  ShapedType data = shaped(op.getDataOut(direction)), scaleInv = shaped(op.getScaleInvOut(direction));
  if (data.getElementType() != op.getFormat() || !isa<Float8E4M3FNType, Float8E5M2Type>(op.getFormat()))
    return op.emitOpError() << "the data of direction " << direction << " is of " << data.getElementType()
                            << "; all directions need one format, f8E4M3FN or f8E5M2";
  if (scaleInv.getElementType() != op.getRecipe().getScaleType())
    return op.emitOpError() << "scale_inv " << direction << " must be of " << op.getRecipe().getScaleType()
                            << ", the type of " << op.getRecipe();
  SmallVector<int64_t> own = getTensorShape(op, direction);
  if (!fp8::detail::shapesMatch(data.clone(own), tensor))
    return op.emitOpError() << "the data of direction " << direction << " has another shape than the tensor";
  std::string name = ("scale_inv " + Twine(direction)).str();
  ArrayRef<int64_t> order = op.getTransposition(direction), block = op.getBlock(direction);
  if (order.empty())
    return fp8::detail::verifyScale(op, name, scaleInv, tensor, block);
  if (block.size() != order.size() || scaleInv.getRank() != tensor.getRank())
    return op.emitOpError() << name << " and its block must have rank " << tensor.getRank();
  SmallVector<int64_t> shape = applyPermutation(scaleInv.getShape(), invertPermutationVector(order));
  return fp8::detail::verifyScale(op, name, scaleInv.clone(shape), tensor, block);
}

LogicalResult QuantizeBlocksOp::verify() {
  if (getOuts().empty())
    return emitOpError("has no outs");
  if (failed(fp8::detail::verifyDestinationStyle(*this)) || failed(verifyDirections(*this)))
    return failure();
  if (getRecipe().isStateful())
    return emitOpError() << "recipe " << getRecipe() << " takes its scales from state, not from blocks";
  if (getInputs().empty() && getProducer().empty())
    return emitOpError("has neither an input nor a producer region that computes the tensor");
  if (failed(fp8::detail::verifyRandom(*this, getRandom(), getStream())))
    return failure();
  ElementRegion region = *ElementRegion::of(*this);
  if (getOuts().size() != 2 * getNumDirections() + region.numExtras())
    return emitOpError() << "has " << getOuts().size() << " outs, expected data and scale_inv for each of "
                         << getNumDirections() << " directions, and the extra results of a producer";
  ShapedType tensor = shaped(getOuts()[0]).clone(getTensorShape(*this, 0));
  for (unsigned i = 0; i < getNumDirections(); ++i)
    if (failed(verifyDirection(*this, i, tensor)))
      return failure();
  if (!getProducer().empty())
    return success(succeeded(fp8::detail::verifyElementRegion(*this, "producer")) &&
                   succeeded(fp8::detail::verifyYieldedPart(*this, tensor)));
  if (failed(fp8::detail::verifyPlainInput(*this, getInputs(), getIndexingMaps())))
    return failure();
  if (!fp8::detail::shapesMatch(shaped(getInputs()[0]), tensor))
    return emitOpError() << "input " << getInputs()[0].getType() << " has another shape than the data";
  return success();
}

LogicalResult QuantizeBlocksOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return getRecipe().verifyFunctions(*this, symbols);
}

//===----------------------------------------------------------------------===//
// Canonicalization
//===----------------------------------------------------------------------===//

namespace {

/// Removes the directions that nothing reads.
struct DropUnusedDirections : OpRewritePattern<QuantizeBlocksOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(QuantizeBlocksOp op, PatternRewriter &rewriter) const final {
    if (op->getNumResults() == 0)
      return rewriter.notifyMatchFailure(op, "on memrefs nothing says what is read");
    SmallVector<Value> outs, kept;
    SmallVector<Attribute> blocks, transpositions;
    for (unsigned i = 0; i < op.getNumDirections(); ++i) {
      if (op->getResult(2 * i).use_empty() && op->getResult(2 * i + 1).use_empty())
        continue;
      blocks.push_back(op.getBlocks()[i]);
      if (op.getTranspositions())
        transpositions.push_back((*op.getTranspositions())[i]);
      llvm::append_range(outs, op.getOuts().slice(2 * i, 2));
      llvm::append_range(kept, op->getResults().slice(2 * i, 2));
    }
    if (blocks.empty() || blocks.size() == op.getNumDirections())
      return rewriter.notifyMatchFailure(op, "every direction is used, or none");
    llvm::append_range(outs, op.getOuts().drop_front(2 * op.getNumDirections()));
    llvm::append_range(kept, op->getResults().drop_front(2 * op.getNumDirections()));
    QuantizeBlocksParts parts(op, op.getInputs(), outs);
    parts.blocks = rewriter.getArrayAttr(blocks);
    if (op.getTranspositions())
      parts.transpositions = rewriter.getArrayAttr(transpositions);
    auto slim = parts.create(rewriter, op.getLoc());
    slim->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    slim.getProducer().takeBody(op.getProducer());
    rewriter.replaceAllUsesWith(kept, slim.getResults());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Appends the extents, in dimensions of these `sizes`, of blocks of `extent` elements of the
/// dimension that they are collapsed to. Fails if such a block is no box in these dimensions.
LogicalResult expandExtent(int64_t extent, ArrayRef<int64_t> sizes, SmallVectorImpl<int64_t> &block) {
  SmallVector<int64_t> extents(sizes.size(), extent == 0 ? 0 : 1);
  for (int64_t d = sizes.size() - 1; d >= 0 && extent > 1; --d) {
    if (sizes.size() > 1 && ShapedType::isDynamic(sizes[d]))
      return failure();
    bool isOutermost = d == 0, fills = !isOutermost && sizes[d] <= extent;
    if (!isOutermost && (sizes[d] == 0 || (fills ? extent % sizes[d] : sizes[d] % extent) != 0))
      return failure();
    extents[d] = fills ? sizes[d] : extent;
    extent = fills ? extent / sizes[d] : 1;
  }
  llvm::append_range(block, extents);
  return success();
}

/// Moves a cast before the reshape that collapses dimensions, which brings it next to the producer
/// of the tensor, wherever every block is a box there. Data and scale_inv are collapsed instead.
struct QuantizeBlocksBeforeCollapse : OpRewritePattern<QuantizeBlocksOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(QuantizeBlocksOp op, PatternRewriter &rewriter) const final {
    auto collapse = op.getInputs().empty() ? tensor::CollapseShapeOp()
                                           : op.getInputs().front().getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse || !op.getProducer().empty() || op.getTranspositions())
      return rewriter.notifyMatchFailure(op, "casts no collapsed tensor");
    SmallVector<ReassociationIndices> groups = collapse.getReassociationIndices();
    SmallVector<Attribute> blocks;
    for (unsigned i = 0; i < op.getNumDirections(); ++i) {
      SmallVector<int64_t> block;
      for (auto [group, extent] : llvm::zip_equal(groups, op.getBlock(i)))
        if (failed(expandExtent(extent, collapse.getSrcType().getShape().slice(group.front(), group.size()),
                                block)))
          return rewriter.notifyMatchFailure(op, "a block is no box before the reshape");
      blocks.push_back(rewriter.getDenseI64ArrayAttr(block));
    }
    return moveBefore(op, collapse, groups, rewriter.getArrayAttr(blocks), rewriter);
  }

private:
  static LogicalResult moveBefore(QuantizeBlocksOp op, tensor::CollapseShapeOp collapse,
                                  ArrayRef<ReassociationIndices> groups, ArrayAttr blocks,
                                  PatternRewriter &rewriter) {
    Location loc = op.getLoc();
    Value source = collapse.getSrc();
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, source);
    SmallVector<Value> outs;
    for (unsigned i = 0; i < op.getNumDirections(); ++i) {
      ArrayRef<int64_t> block = cast<DenseI64ArrayAttr>(blocks[i]);
      outs.push_back(tensor::EmptyOp::create(rewriter, loc, sizes, op.getFormat()));
      outs.push_back(tensor::EmptyOp::create(rewriter, loc, getBlockCounts(rewriter, loc, sizes, block),
                                             op.getRecipe().getScaleType()));
    }
    QuantizeBlocksParts parts(op, source, outs);
    parts.blocks = blocks;
    auto cast = parts.create(rewriter, loc);
    cast->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    SmallVector<Value> results;
    for (auto [result, old] : llvm::zip_equal(cast.getResults(), op.getResults())) {
      Value collapsed = tensor::CollapseShapeOp::create(rewriter, loc, result, groups);
      results.push_back(tensor::CastOp::create(rewriter, loc, old.getType(), collapsed));
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void QuantizeBlocksOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns
      .add<DropUnusedDirections, QuantizeBlocksBeforeCollapse, fp8::detail::FoldTensorCasts<QuantizeBlocksOp>,
           fp8::detail::DropUnusedExtras<QuantizeBlocksOp>>(context);
}
