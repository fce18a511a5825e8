// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8.matmul and fp8.scaled_matmul.

#include "FoldTensorCasts.h"
#include "OpVerification.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Checks that both contractions share
//===----------------------------------------------------------------------===//

static StringRef kOperandNames[] = {"the first operand", "the second operand", "the result"};

/// Returns the size of every iteration dimension, or emits an error if two operands disagree.
static FailureOr<SmallVector<int64_t>> inferLoopRanges(Operation *op, ArrayRef<AffineMap> maps,
                                                       ArrayRef<ShapedType> types) {
  SmallVector<int64_t> ranges(maps[0].getNumDims(), ShapedType::kDynamic);
  for (auto [i, map, type] : llvm::enumerate(maps, types)) {
    for (auto [position, size] : llvm::enumerate(type.getShape())) {
      unsigned d = map.getDimPosition(position);
      if (!fp8::detail::sizesMatch(ranges[d], size))
        return op->emitOpError() << "dimension d" << d << " has size " << ranges[d] << " and, in "
                                 << kOperandNames[i] << ", " << size;
      if (!ShapedType::isDynamic(size))
        ranges[d] = size;
    }
  }
  return ranges;
}

static LogicalResult verifyContraction(Operation *op, ArrayRef<AffineMap> maps, ArrayRef<ShapedType> types) {
  if (maps.size() != 3)
    return op->emitOpError() << "needs 3 indexing_maps (two operands and the result), got " << maps.size();
  for (auto [i, map, type] : llvm::enumerate(maps, types))
    if (map.getNumResults() != type.getRank())
      return op->emitOpError() << "indexing map of " << kOperandNames[i] << " has " << map.getNumResults()
                               << " results for rank " << type.getRank();
  std::optional<ContractionDims> dims = inferContractionDims(maps);
  if (!dims)
    return op->emitOpError("indexing_maps must be projected permutations of one iteration space, in which "
                           "every dimension is a batch, M, N or K dimension");
  if (dims->k.empty())
    return op->emitOpError("has no K dimension: nothing is summed");
  return inferLoopRanges(op, maps, types);
}

template <typename Op>
static SmallVector<int64_t> staticLoopRanges(Op op) {
  auto shaped = [](Value value) { return cast<ShapedType>(value.getType()); };
  ValueRange outs = op->getOperands().slice(op.getDpsInitsMutable()[0].getOperandNumber(), 1);
  // This cannot fail on a verified operation, because the verifier has compared all sizes.
  return *inferLoopRanges(op, op.getIndexingMapsArray(),
                          {shaped(op.getLhs()), shaped(op.getRhs()), shaped(outs.front())});
}

/// Checks that `record_amax` lists, in increasing order, values that are stored as floats.
template <typename Op>
static LogicalResult verifyRecordAmax(Op op) {
  ArrayRef<int64_t> listed = op.getRecordAmax().value_or(ArrayRef<int64_t>());
  ElementRegion region = *ElementRegion::of(op);
  if (!llvm::is_sorted(listed, std::less_equal<int64_t>()))
    return op.emitOpError("record_amax must be in increasing order");
  for (int64_t value : listed) {
    if (value < 0 || value > region.numExtras())
      return op.emitOpError() << "record_amax lists value " << value << " of " << 1 + region.numExtras();
    if (value == 0 && op.getOutScale())
      return op.emitOpError("record_amax lists the result, which has an out_scale and so an amax anyway");
    if (value == 0)
      continue;
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(region.extras()[value - 1]));
    if (isSummed(region.extraMaps()[value - 1]) || !element || element.isF64())
      return op.emitOpError() << "record_amax lists value " << value
                              << ", which must be stored, as a float of at most 32 bits";
  }
  return success();
}

/// Checks the number and types of `outs`: the matmul, with `out_scale` its scale_inv, the amaxes,
/// the extra results.
template <typename Op>
static LogicalResult verifyOutputs(Op op) {
  Type element = getElementTypeOrSelf(op.getInit());
  bool isFP8 = isa<Float8E4M3FNType, Float8E5M2Type>(element);
  if (op.getOutScale() && !isFP8)
    return op.emitOpError("out_scale goes with an FP8 result");
  ElementRegion region = *ElementRegion::of(op);
  size_t scalars = region.amaxes.size() + (op.getOutScale() ? 1 : 0);
  size_t wanted = 1 + scalars + region.numExtras();
  if (op.getOuts().size() != wanted)
    return op.emitOpError() << "has " << op.getOuts().size() << " outs, expected " << wanted
                            << (op.getOutScale()         ? ": data, scale_inv and amax"
                                : !region.amaxes.empty() ? ": the result and its amax"
                                                         : "");
  for (Value scalar : op.getOuts().slice(1, scalars))
    if (!getElementTypeOrSelf(scalar).isF32() || cast<ShapedType>(scalar.getType()).getRank() != 0)
      return op.emitOpError(op.getOutScale() ? "scale_inv and amax of an FP8 result must be f32 of rank 0"
                                             : "the amax must be f32 of rank 0");
  if (op.getOutScale() && cast<ShapedType>(op.getOutScale().getType()).getRank() != 0)
    return op.emitOpError("out_scale must be of rank 0");
  return verifyRecordAmax(op);
}

template <typename Op>
static LogicalResult verifyEpilogue(Op op) {
  if (op.getEpilogue().empty()) {
    if (op.getEpilogueInputs().empty() && !op.getEpilogueMaps())
      return success();
    return op.emitOpError("epilogue inputs and epilogue_maps need an epilogue region");
  }
  if (failed(fp8::detail::verifyElementRegion(op, "epilogue")))
    return failure();
  Block &body = op.getEpilogue().front();
  if (!body.getArgument(0).getType().isF32())
    return op.emitOpError("the first argument of the epilogue, the scaled sum, must be f32");
  Type yielded = cast<YieldOp>(body.getTerminator()).getValue().getType();
  if (op.getOutScale() && failed(fp8::detail::verifyCastType(op, "the epilogue yields", yielded)))
    return failure();
  Type element = getElementTypeOrSelf(op.getInit());
  if (!op.getOutScale() && yielded != element)
    return op.emitOpError() << "the epilogue yields " << yielded << ", expected " << element;
  return success();
}

//===----------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(MatmulOp, readsInit() && init.get() == getInit())

SmallVector<int64_t> MatmulOp::getStaticLoopRanges() { return staticLoopRanges(*this); }

LogicalResult MatmulOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  if (static_cast<bool>(getLhsKind()) != static_cast<bool>(getRhsKind()))
    return emitOpError("gives the kind of one operand only");
  if (getRecipe() && getKept())
    return emitOpError("has a recipe, and a reason in `kept` why it stays in high precision");
  if (getOuts().empty())
    return emitOpError("needs a destination in outs");
  auto lhs = cast<ShapedType>(getLhs().getType()), rhs = cast<ShapedType>(getRhs().getType());
  auto out = cast<ShapedType>(getInit().getType());
  if (failed(verifyContraction(*this, getIndexingMapsArray(), {lhs, rhs, out})) ||
      failed(verifyOutputs(*this)))
    return failure();
  if (!isa<FloatType>(out.getElementType()))
    return emitOpError() << "result element type " << out.getElementType() << " must be a float type";
  auto isF64 = [](ShapedType type) { return type.getElementType().isF64(); };
  if (!isPlain() && llvm::any_of(ArrayRef<ShapedType>{lhs, rhs, out}, isF64))
    return emitOpError("of f64 has neither an epilogue nor an amax");
  bool isWide = llvm::any_of(ArrayRef<ShapedType>{lhs, rhs}, isF64);
  if (getResume() && (getAccumulate() || !isPlain() || isWide || !out.getElementType().isF32()))
    return emitOpError(
        "resumes sums, which goes with an f32 result, operands of at most 32 bits, and neither "
        "`accumulate`, an epilogue nor an amax");
  return verifyEpilogue(*this);
}

namespace {

/// Drops `accumulate` if the destination is filled with zeros.
struct DropZeroAccumulator : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const final {
    auto fill = op.getInit().getDefiningOp<linalg::FillOp>();
    if (!op.getAccumulate() || !fill || !matchPattern(fill.getInputs().front(), m_AnyZeroFloat()))
      return rewriter.notifyMatchFailure(op, "does not add to a tensor filled with zeros");
    rewriter.modifyOpInPlace(op, [&] {
      op.setAccumulate(false);
      op.getOutsMutable()[0].set(fill.getOutputs().front());
    });
    return success();
  }
};

/// Removes amaxes that nothing reads.
template <typename Op>
struct DropUnusedAmax : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    if (op->getNumResults() == 0 || !op.getRecordAmax())
      return rewriter.notifyMatchFailure(op, "records no amax");
    SmallVector<Value> outs(op.getOuts()), results(op->getResults());
    SmallVector<int64_t> kept(*op.getRecordAmax());
    unsigned firstAmax = ElementRegion::of(op)->firstExtra() - kept.size();
    for (int64_t i = kept.size() - 1; i >= 0; --i)
      if (results[firstAmax + i].use_empty()) {
        kept.erase(kept.begin() + i);
        outs.erase(outs.begin() + firstAmax + i);
        results.erase(results.begin() + firstAmax + i);
      }
    if (kept.size() == op.getRecordAmax()->size())
      return rewriter.notifyMatchFailure(op, "every amax is used");
    Operation *slim = rebuildMatmul(rewriter, op, op.getEpilogueInputs(), op.getOutScale(), kept, outs,
                                    op.getEpilogueMapsAttr());
    rewriter.replaceAllUsesWith(results, slim->getResults());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Adds the canonicalization patterns that both matmuls share.
template <typename Op>
void addMatmulPatterns(RewritePatternSet &patterns) {
  patterns.add<fp8::detail::FoldTensorCasts<Op>, fp8::detail::DropUnusedExtras<Op>, DropUnusedAmax<Op>>(
      patterns.getContext());
}

} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropZeroAccumulator>(context);
  addMatmulPatterns<MatmulOp>(patterns);
}

//===----------------------------------------------------------------------===//
// ScaledMatmulOp
//===----------------------------------------------------------------------===//

/// Returns the extent of a block of an operand along dimension `dim`, 0 without blocks.
static int64_t getExtentAlong(AffineMap map, std::optional<ArrayRef<int64_t>> block, unsigned dim) {
  std::optional<unsigned> position = map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
  return block && position ? (*block)[*position] : 0;
}

/// Checks that scales differ along the only K dimension, with one extent and type for both operands, or along
/// none.
static LogicalResult verifyScalesAlongK(ScaledMatmulOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  ContractionDims dims = op.getContractionDims();
  for (unsigned k : dims.k) {
    int64_t extents[] = {getExtentAlong(maps[0], op.getLhsBlock(), k),
                         getExtentAlong(maps[1], op.getRhsBlock(), k)};
    if (extents[0] == 0 && extents[1] == 0)
      continue;
    if (dims.k.size() != 1)
      return op.emitOpError() << "has blocks along d" << k << ", which must be the only K dimension, but has "
                              << dims.k.size() << " of them; collapse the K dimensions into one";
    if (extents[0] == 0 || extents[1] == 0)
      continue;
    if (extents[0] != extents[1])
      return op.emitOpError() << "has blocks of " << extents[0] << " and of " << extents[1]
                              << " elements along d" << k << "; both operands need one extent, or 0";
    Type types[] = {getElementTypeOrSelf(op.getLhsScaleInv()), getElementTypeOrSelf(op.getRhsScaleInv())};
    if (types[0] != types[1])
      return op.emitOpError() << "has scales of " << types[0] << " and of " << types[1] << " along d" << k
                              << "; both operands need one type";
  }
  return success();
}

FP8_DEFINE_DPS_METHODS(ScaledMatmulOp, getAccumulate() && init.get() == getOuts().front())

SmallVector<int64_t> ScaledMatmulOp::getStaticLoopRanges() { return staticLoopRanges(*this); }

static LogicalResult verifyScaleOf(ScaledMatmulOp op, bool isLhs) {
  return fp8::detail::verifyMatmulScale(
      op, isLhs, (isLhs ? op.getLhsScaleInv() : op.getRhsScaleInv()).getType(),
      (isLhs ? op.getLhs() : op.getRhs()).getType(), isLhs ? op.getLhsBlock() : op.getRhsBlock(),
      op.getIndexingMapsArray()[isLhs ? 0 : 1], op.getContractionDims());
}

LogicalResult ScaledMatmulOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  if (getOuts().empty())
    return emitOpError("needs a destination in outs");
  auto lhs = cast<ShapedType>(getLhs().getType()), rhs = cast<ShapedType>(getRhs().getType());
  auto out = cast<ShapedType>(getOuts().front().getType());
  if (failed(verifyContraction(*this, getIndexingMapsArray(), {lhs, rhs, out})) ||
      failed(verifyScaleOf(*this, /*isLhs=*/true)) || failed(verifyScaleOf(*this, /*isLhs=*/false)) ||
      failed(verifyScalesAlongK(*this)))
    return failure();
  auto element = dyn_cast<FloatType>(out.getElementType());
  if (!element)
    return emitOpError() << "result element type " << out.getElementType() << " must be a float type";
  bool isFP8 = isa<Float8E4M3FNType, Float8E5M2Type>(element);
  if (!isFP8 && !element.isF32() && !element.isBF16() && !element.isF16())
    return emitOpError() << "result element type " << element
                         << " must be f32, bf16, f16, f8E4M3FN or f8E5M2";
  if (isFP8 && !getOutScale())
    return emitOpError("an FP8 result needs an out_scale");
  if (failed(verifyOutputs(*this)))
    return failure();
  return verifyEpilogue(*this);
}

void ScaledMatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  addMatmulPatterns<ScaledMatmulOp>(patterns);
}
