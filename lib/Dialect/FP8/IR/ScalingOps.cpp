// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8.amax, fp8.compute_scale, fp8.quantize, fp8.dequantize, fp8.pack_scales.

#include "FoldTensorCasts.h"
#include "OpVerification.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

//===----------------------------------------------------------------------===//
// IndexOp
//===----------------------------------------------------------------------===//

LogicalResult IndexOp::verify() {
  std::optional<ElementRegion> element = ElementRegion::of((*this)->getParentOp());
  if (!element)
    return emitOpError("must be in a region of fp8.amax, fp8.quantize, fp8.quantize_blocks, fp8.matmul or "
                       "fp8.scaled_matmul");
  if (getDim() >= element->numDims)
    return emitOpError() << "asks for dimension " << getDim() << " of a tensor of " << element->numDims;
  return success();
}

//===----------------------------------------------------------------------===//
// AmaxOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(AmaxOp, false)

/// Returns the number of extra results of `op`.
static unsigned countExtras(Operation *op) { return ElementRegion::of(op)->numExtras(); }

/// Returns the sizes of the dimensions of the tensor that the region computes, from the inputs and
/// stored extra results; emits an error if none of them has a dimension.
static FailureOr<SmallVector<int64_t>> inferSizes(AmaxOp op) {
  ElementRegion element = *ElementRegion::of(op);
  SmallVector<std::optional<int64_t>> sizes(element.numDims);
  SmallVector<Value> operands(element.inputs);
  llvm::append_range(operands, element.extras());
  for (auto [operand, map] : llvm::zip(operands, element.maps))
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        sizes[dim.getPosition()] = shaped(operand).getDimSize(position);
  for (auto [d, size] : llvm::enumerate(sizes))
    if (!size)
      return op.emitOpError() << "dimension d" << d << " is a dimension of no input and no extra result";
  return llvm::map_to_vector(sizes, [](std::optional<int64_t> size) { return *size; });
}

LogicalResult AmaxOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  if (getInputs().empty() || getOuts().size() != 1 + countExtras(*this))
    return emitOpError() << "has " << getInputs().size() << " ins and " << getOuts().size()
                         << " outs, expected an input, and amax and the extra results of a producer";
  if (!getElementTypeOrSelf(getOuts()[0]).isF32())
    return emitOpError("amax must be f32");
  if (getProducer().empty()) {
    if (failed(fp8::detail::verifyPlainInput(*this, getInputs(), getIndexingMaps())))
      return failure();
    return fp8::detail::verifyScale(*this, "amax", shaped(getOuts()[0]), shaped(getInputs()[0]),
                                    std::nullopt);
  }
  if (failed(fp8::detail::verifyElementRegion(*this, "producer")))
    return failure();
  FailureOr<SmallVector<int64_t>> sizes = inferSizes(*this);
  if (failed(sizes))
    return failure();
  auto tensor = RankedTensorType::get(*sizes, Float32Type::get(getContext()));
  if (failed(fp8::detail::verifyYieldedPart(*this, tensor)))
    return failure();
  return fp8::detail::verifyScale(*this, "amax", shaped(getOuts()[0]), tensor, std::nullopt);
}

/// Returns whether the shape of the input does not matter to `op`: it has no region.
template <typename Op>
static bool ignoresShape(Op op) {
  return op->getNumResults() != 0 && op.getProducer().empty();
}

namespace {

/// Takes the amax of the source of a reshape, which has the same elements.
struct MeasureBeforeReshape : OpRewritePattern<AmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AmaxOp op, PatternRewriter &rewriter) const final {
    Operation *reshape = op.getInputs().empty() ? nullptr : op.getInputs().front().getDefiningOp();
    if (!isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(reshape) || !ignoresShape(op))
      return rewriter.notifyMatchFailure(op, "measures no reshaped tensor");
    rewriter.modifyOpInPlace(op, [&] { op.getInputsMutable()[0].set(reshape->getOperand(0)); });
    return success();
  }
};

} // namespace

void AmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns
      .add<fp8::detail::FoldTensorCasts<AmaxOp>, fp8::detail::DropUnusedExtras<AmaxOp>, MeasureBeforeReshape>(
          context);
}

//===----------------------------------------------------------------------===//
// ComputeScaleOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(ComputeScaleOp, false)

static LogicalResult verifyFormat(Operation *op, Type format) {
  if (isa<Float8E4M3FNType, Float8E5M2Type>(format))
    return success();
  return op->emitOpError() << "format " << format << " must be f8E4M3FN or f8E5M2";
}

LogicalResult ComputeScaleOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)) || failed(verifyFormat(*this, getFormat())))
    return failure();
  if (!fp8::detail::shapesMatch(shaped(getAmax()), shaped(getOuts())))
    return emitOpError() << "amax " << getAmax().getType() << " and scale " << getOuts().getType()
                         << " must have one shape";
  if (getInputType() && !isa<FloatType>(*getInputType()))
    return emitOpError() << "input_type " << *getInputType() << " must be a float type";
  if (getRecipe().isStateful() && !getRecipe().startsFromTensor())
    return emitOpError() << "recipe " << getRecipe()
                         << " takes its scales from state, not from this step's amax";
  return success();
}

LogicalResult ComputeScaleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return getRecipe().verifyFunctions(*this, symbols);
}

//===----------------------------------------------------------------------===//
// QuantizeOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(QuantizeOp, false)

static LogicalResult verifyTransposition(QuantizeOp op) {
  ArrayRef<int64_t> permutation = *op.getTransposition();
  ShapedType data = shaped(op.getOuts()[0]), transposed = shaped(op.getOuts()[1]);
  if (!isPermutationVector(permutation) || static_cast<int64_t>(permutation.size()) != data.getRank())
    return op.emitOpError() << "transposition must be a permutation of the " << data.getRank()
                            << " dimensions";
  if (transposed.getRank() != data.getRank() || transposed.getElementType() != data.getElementType())
    return op.emitOpError("the transposed data must have the rank and element type of the data");
  for (auto [d, source] : llvm::enumerate(permutation))
    if (!fp8::detail::sizesMatch(transposed.getDimSize(d), data.getDimSize(source)))
      return op.emitOpError() << "dimension " << d << " of the transposed data has size "
                              << transposed.getDimSize(d) << ", expected " << data.getDimSize(source);
  return success();
}

LogicalResult QuantizeOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  if (getInputs().empty() && getProducer().empty())
    return emitOpError("has neither an input nor a producer region that computes the tensor");
  size_t wanted = 2 + (getTransposition() ? 1 : 0) + (getRecordAmax() ? 1 : 0);
  if (getOuts().empty() || getOuts().size() != wanted + countExtras(*this))
    return emitOpError() << "has " << getOuts().size() << " outs, expected " << wanted << ": data"
                         << (getTransposition() ? ", data_t" : "") << ", scale_inv"
                         << (getRecordAmax() ? ", amax" : "") << " and the extra results of a producer";
  ShapedType data = shaped(getOuts()[0]), scaleInv = shaped(getOuts()[getScaleInvIndex()]);
  if (failed(verifyFormat(*this, data.getElementType())))
    return failure();
  if (failed(fp8::detail::verifyScale(*this, "the scale", shaped(getScale()), data, std::nullopt)) ||
      failed(fp8::detail::verifyScale(*this, "scale_inv", scaleInv, data, std::nullopt)))
    return failure();
  if (!scaleInv.getElementType().isF32())
    return emitOpError("scale_inv must be f32");
  if (getRecordAmax()) {
    ShapedType amax = shaped(getOuts()[getAmaxIndex()]);
    if (amax.getRank() != 0 || !amax.getElementType().isF32())
      return emitOpError("the recorded amax must be f32 of rank 0");
  }
  if (failed(fp8::detail::verifyRandom(*this, getRandom(), getStream())))
    return failure();
  if (getTransposition() && failed(verifyTransposition(*this)))
    return failure();
  if (!getProducer().empty())
    return success(succeeded(fp8::detail::verifyElementRegion(*this, "producer")) &&
                   succeeded(fp8::detail::verifyYieldedPart(*this, data)));
  if (failed(fp8::detail::verifyPlainInput(*this, getInputs(), getIndexingMaps())))
    return failure();
  if (!fp8::detail::shapesMatch(shaped(getInputs()[0]), data))
    return emitOpError() << "input " << getInputs()[0].getType() << " and data " << getOuts()[0].getType()
                         << " must have one shape";
  return success();
}

namespace {

/// Removes an amax or transposed copy that nothing reads.
struct DropUnusedQuantizeResults : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const final {
    if (op->getNumResults() == 0)
      return rewriter.notifyMatchFailure(op, "on memrefs nothing says what is read");
    int64_t amax = op.getAmaxIndex(), dataT = op.getDataTIndex();
    bool dropAmax = amax >= 0 && op->getResult(amax).use_empty();
    bool dropDataT = dataT >= 0 && op->getResult(dataT).use_empty();
    if (!dropAmax && !dropDataT)
      return rewriter.notifyMatchFailure(op, "every result is used");

    SmallVector<Value> outs, kept;
    for (auto [i, out] : llvm::enumerate(op.getOuts())) {
      if ((dropAmax && static_cast<int64_t>(i) == amax) || (dropDataT && static_cast<int64_t>(i) == dataT))
        continue;
      outs.push_back(out);
      kept.push_back(op->getResult(i));
    }
    QuantizeParts parts(op, op.getInputs(), outs);
    if (dropAmax)
      parts.recordAmax = false;
    if (dropDataT)
      parts.transposition = {};
    auto slim = parts.create(rewriter, op.getLoc());
    slim.getProducer().takeBody(op.getProducer());
    rewriter.replaceAllUsesWith(kept, slim.getResults());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Moves a cast before a reshape, which brings it next to the producer of the tensor; the FP8 data
/// is reshaped instead.
struct QuantizeBeforeReshape : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const final {
    Operation *reshape = op.getInputs().empty() ? nullptr : op.getInputs().front().getDefiningOp();
    if (!isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(reshape) || !ignoresShape(op) ||
        op.getTransposition())
      return rewriter.notifyMatchFailure(op, "casts no reshaped tensor");
    Value source = reshape->getOperand(0);
    Location loc = op.getLoc();
    SmallVector<Value> outs(op.getOuts());
    outs[0] =
        tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, source), op.getFormat());
    auto cast = QuantizeParts(op, source, outs).create(rewriter, loc);
    cast->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    SmallVector<Value> results(cast.getResults());
    Operation *reshaped = rewriter.clone(*reshape);
    rewriter.modifyOpInPlace(reshaped, [&] {
      reshaped->setOperand(0, results[0]);
      reshaped->getResult(0).setType(op->getResult(0).getType());
    });
    results[0] = reshaped->getResult(0);
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void QuantizeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropUnusedQuantizeResults, QuantizeBeforeReshape, fp8::detail::FoldTensorCasts<QuantizeOp>,
               fp8::detail::DropUnusedExtras<QuantizeOp>>(context);
}

//===----------------------------------------------------------------------===//
// DequantizeOp, PackScalesOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(DequantizeOp, false)

LogicalResult DequantizeOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  if (!fp8::detail::shapesMatch(shaped(getData()), shaped(getOuts())))
    return emitOpError() << "data " << getData().getType() << " and result " << getOuts().getType()
                         << " must have one shape";
  return fp8::detail::verifyScale(*this, "scale_inv", shaped(getScaleInv()), shaped(getData()), getBlock());
}

FP8_DEFINE_DPS_METHODS(PackScalesOp, false)

LogicalResult PackScalesOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  ShapedType scales = shaped(getScales()), packed = shaped(getOuts());
  if (scales.getRank() < 2 || packed.getRank() != 1)
    return emitOpError("needs scales of rank 2 or more and a packed result of rank 1");
  if (!scales.hasStaticShape())
    return success();
  ArrayRef<int64_t> shape = scales.getShape();
  int64_t size = llvm::divideCeil(*(shape.end() - 2), 128) * llvm::divideCeil(shape.back(), 4) * 512;
  for (int64_t batches : shape.drop_back(2))
    size *= batches;
  if (!fp8::detail::sizesMatch(packed.getDimSize(0), size))
    return emitOpError() << "the packed result has " << packed.getDimSize(0) << " entries, expected " << size
                         << ": 512 for each tile of 128 x 4";
  return success();
}
