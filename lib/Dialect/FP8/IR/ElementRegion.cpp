// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Producer and epilogue regions: their common view, and copies of their operations.

#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "OpVerification.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"

using namespace mlir;
using namespace fp8;

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

static SmallVector<AffineMap> readMaps(std::optional<ArrayAttr> maps) {
  return maps ? llvm::to_vector(maps->getAsValueRange<AffineMapAttr>()) : SmallVector<AffineMap>();
}

/// Views an fp8.amax, fp8.quantize or fp8.quantize_blocks; `rank` is that of its tensor.
template <typename Op>
static ElementRegion viewProducer(Op op, unsigned rank, bool hasAmax) {
  SmallVector<AffineMap> maps = readMaps(op.getIndexingMaps());
  if (op.getProducer().empty())
    maps = {AffineMap::getMultiDimIdentityMap(rank, op.getContext())};
  if (!maps.empty())
    rank = maps[0].getNumDims();
  ArrayRef<int64_t> rows = op.getRows().value_or(ArrayRef<int64_t>());
  unsigned firstArgument = rows.empty() || rows.size() > rank ? 0 : rank - rows.size();
  SmallVector<int64_t> amaxes(hasAmax ? 1 : 0, 0);
  return {op, &op.getProducer(), firstArgument, op.getInputs(), maps, op.getOuts(), rank, amaxes, rows};
}

template <typename MatmulView>
static ElementRegion viewEpilogue(MatmulView op) {
  unsigned rank = shaped(op.getInit()).getRank();
  SmallVector<int64_t> amaxes(op.getOutScale() ? 1 : 0, 0);
  llvm::append_range(amaxes, op.getRecordAmax().value_or(ArrayRef<int64_t>()));
  return {op,
          &op.getEpilogue(),
          /*firstArgument=*/1,
          op.getEpilogueInputs(),
          readMaps(op.getEpilogueMaps()),
          op.getOuts(),
          rank,
          amaxes};
}

std::optional<ElementRegion> ElementRegion::of(Operation *operation) {
  if (auto op = dyn_cast<QuantizeOp>(operation))
    return viewProducer(op, shaped(op.getOuts()[0]).getRank(), op.getRecordAmax());
  if (auto op = dyn_cast<QuantizeBlocksOp>(operation))
    return viewProducer(op, shaped(op.getOuts()[0]).getRank(), /*hasAmax=*/false);
  if (auto op = dyn_cast<AmaxOp>(operation))
    return viewProducer(op, shaped(op.getInputs()[0]).getRank(), /*hasAmax=*/true);
  if (auto op = dyn_cast<MatmulOp>(operation))
    return viewEpilogue(op);
  if (auto op = dyn_cast<ScaledMatmulOp>(operation))
    return viewEpilogue(op);
  return std::nullopt;
}

SmallVector<int64_t> ElementRegion::getShape() const {
  SmallVector<int64_t> sizes(numDims, ShapedType::kDynamic);
  auto read = [&](Value operand, AffineMap map) {
    for (auto [size, expr] : llvm::zip_equal(shaped(operand).getShape(), map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && !ShapedType::isDynamic(size))
        sizes[dim.getPosition()] = size;
  };
  if (isa<QuantizeOp>(op))
    read(outs[0], AffineMap::getMultiDimIdentityMap(numDims, op->getContext()));
  if (auto cast = dyn_cast<QuantizeBlocksOp>(op)) {
    SmallVector<unsigned> order(cast.getTransposition(0));
    if (order.empty())
      order = llvm::to_vector(llvm::seq(numDims));
    read(cast.getDataOut(0), AffineMap::getPermutationMap(order, op->getContext()));
  }
  for (auto [operand, map] : llvm::zip(inputs, inputMaps()))
    read(operand, map);
  for (auto [operand, map] : llvm::zip(extras(), extraMaps()))
    read(operand, map);
  return sizes;
}

SmallVector<unsigned> ElementRegion::outerDims() const {
  return llvm::to_vector(llvm::make_filter_range(
      llvm::seq(numDims), [&](unsigned dim) { return !llvm::is_contained(rows, dim); }));
}

bool ElementRegion::sums(AffineMap extraMap) const {
  if (rows.empty())
    return isSummed(extraMap);
  return llvm::none_of(outerDims(), [&](unsigned dim) { return extraMap.isFunctionOfDim(dim); });
}

bool fp8::isRowDim(AffineExpr expr, ArrayRef<int64_t> rows) {
  auto dim = dyn_cast<AffineDimExpr>(expr);
  return dim && llvm::is_contained(rows, dim.getPosition());
}

Type ElementRegion::partOf(Value operand, AffineMap map) const {
  SmallVector<int64_t> sizes;
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    if (isRowDim(expr, rows))
      sizes.push_back(shaped(operand).getDimSize(position));
  Type element = shaped(operand).getElementType();
  return sizes.empty() ? element : RankedTensorType::get(sizes, element);
}

//===----------------------------------------------------------------------===//
// Rebuilding operations
//===----------------------------------------------------------------------===//

template <typename MatmulView>
static MatmulResults viewResults(MatmulView op) {
  return {op.getOutScale(), op.getAccumulate()};
}

std::optional<MatmulResults> MatmulResults::of(Operation *operation) {
  if (auto op = dyn_cast<MatmulOp>(operation))
    return viewResults(op);
  if (auto op = dyn_cast<ScaledMatmulOp>(operation))
    return viewResults(op);
  return std::nullopt;
}

/// Creates a copy of `op` with other epilogue operands, without its region; `operands` are the ones
/// before the epilogue inputs.
template <typename MatmulView>
static Operation *createMatmul(RewriterBase &rewriter, MatmulView op, SmallVector<Value> operands,
                               ValueRange inputs, Value outScale, ArrayRef<int64_t> recordAmax,
                               ValueRange outs, ArrayAttr maps) {
  typename MatmulView::Properties properties = op.getProperties();
  auto sizes = MutableArrayRef<int32_t>(properties.operandSegmentSizes).take_back(3);
  sizes[0] = inputs.size();
  sizes[1] = outScale ? 1 : 0;
  sizes[2] = outs.size();
  properties.setRecordAmax(recordAmax.empty() ? DenseI64ArrayAttr()
                                              : rewriter.getDenseI64ArrayAttr(recordAmax));
  properties.setEpilogueMaps(maps);
  llvm::append_range(operands, inputs);
  if (outScale)
    operands.push_back(outScale);
  llvm::append_range(operands, outs);
  TypeRange types = op->getNumResults() == 0 ? TypeRange() : TypeRange(outs);
  auto created = MatmulView::create(rewriter, op.getLoc(), types, operands, properties);
  created->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return created;
}

static Operation *createMatmul(RewriterBase &rewriter, Operation *operation, ValueRange inputs,
                               Value outScale, ArrayRef<int64_t> recordAmax, ValueRange outs,
                               ArrayAttr maps) {
  if (auto op = dyn_cast<MatmulOp>(operation))
    return createMatmul(rewriter, op, {op.getLhs(), op.getRhs()}, inputs, outScale, recordAmax, outs, maps);
  auto op = cast<ScaledMatmulOp>(operation);
  return createMatmul(rewriter, op, {op.getLhs(), op.getRhs(), op.getLhsScaleInv(), op.getRhsScaleInv()},
                      inputs, outScale, recordAmax, outs, maps);
}

/// Returns the attribute `record_amax` of a matmul.
static SmallVector<int64_t> getRecordAmax(Operation *operation) {
  SmallVector<int64_t> amaxes = ElementRegion::of(operation)->amaxes;
  if (MatmulResults::of(operation)->outScale)
    amaxes.erase(amaxes.begin());
  return amaxes;
}

/// Creates a copy of `operation` with other inputs, destinations, maps and rows, without its region.
static Operation *createLike(RewriterBase &rewriter, Operation *operation, ValueRange inputs, ValueRange outs,
                             ArrayAttr maps, DenseI64ArrayAttr rows) {
  Location loc = operation->getLoc();
  auto withRegion = [&](auto parts) {
    parts.indexingMaps = maps;
    parts.rows = rows;
    return parts;
  };
  Operation *created = nullptr;
  if (auto op = dyn_cast<QuantizeOp>(operation))
    created = withRegion(QuantizeParts(op, inputs, outs)).create(rewriter, loc);
  else if (auto op = dyn_cast<QuantizeBlocksOp>(operation))
    created = withRegion(QuantizeBlocksParts(op, inputs, outs)).create(rewriter, loc);
  else if (isa<AmaxOp>(operation))
    created =
        AmaxOp::create(rewriter, loc, CastParts(inputs, outs).getResultTypes(), inputs, outs, maps, rows);
  else
    return createMatmul(rewriter, operation, inputs, MatmulResults::of(operation)->outScale,
                        getRecordAmax(operation), outs, maps);
  created->setDiscardableAttrs(operation->getDiscardableAttrDictionary());
  return created;
}

Operation *fp8::rebuildElementRegion(RewriterBase &rewriter, Operation *op, ValueRange inputs,
                                     ValueRange outs, ArrayAttr maps) {
  ElementRegion old = *ElementRegion::of(op);
  DenseI64ArrayAttr rows = old.rows.empty() ? DenseI64ArrayAttr() : rewriter.getDenseI64ArrayAttr(old.rows);
  Operation *rebuilt = createLike(rewriter, op, inputs, outs, maps, rows);
  rewriter.inlineRegionBefore(*old.region, rebuilt->getRegion(0), rebuilt->getRegion(0).begin());
  return rebuilt;
}

Operation *fp8::buildOnRows(RewriterBase &rewriter, Operation *op, ValueRange inputs, ValueRange outs,
                            ArrayAttr maps, ArrayRef<int64_t> rows, Region &region) {
  Operation *built = createLike(rewriter, op, inputs, outs, maps, rewriter.getDenseI64ArrayAttr(rows));
  built->getRegion(0).takeBody(region);
  return built;
}

Operation *fp8::rebuildMatmul(RewriterBase &rewriter, Operation *op, ValueRange inputs, Value outScale,
                              ArrayRef<int64_t> recordAmax, ValueRange outs, ArrayAttr maps) {
  Operation *rebuilt = createMatmul(rewriter, op, inputs, outScale, recordAmax, outs, maps);
  Region &region = *ElementRegion::of(op)->region;
  rewriter.inlineRegionBefore(region, rebuilt->getRegion(0), rebuilt->getRegion(0).begin());
  return rebuilt;
}

LogicalResult fp8::detail::dropUnusedExtras(Operation *op, PatternRewriter &rewriter) {
  ElementRegion element = *ElementRegion::of(op);
  if (op->getNumResults() == 0 || element.numExtras() == 0)
    return rewriter.notifyMatchFailure(op, "has no extra results");
  SmallVector<AffineMap> maps(element.inputMaps());
  SmallVector<Value> outs(element.outs.take_front(element.firstExtra()));
  SmallVector<Value> results(op->getResults().take_front(element.firstExtra()));
  SmallVector<Value> yielded{element.yield().getValue()};
  SmallVector<int64_t> measured; // new positions of the measured values
  for (auto [i, map] : llvm::enumerate(element.extraMaps())) {
    Value result = op->getResult(element.firstExtra() + i);
    bool isMeasured = llvm::is_contained(element.amaxes, i + 1);
    if (result.use_empty() && !isMeasured)
      continue;
    if (isMeasured)
      measured.push_back(yielded.size());
    maps.push_back(map);
    outs.push_back(element.extras()[i]);
    results.push_back(result);
    yielded.push_back(element.yield().getExtras()[i]);
  }
  if (outs.size() == element.outs.size())
    return rewriter.notifyMatchFailure(op, "every extra result is used");
  rewriter.modifyOpInPlace(element.yield(), [&] { element.yield()->setOperands(yielded); });
  ArrayAttr mapsAttr = maps.empty() ? ArrayAttr() : rewriter.getAffineMapArrayAttr(maps);
  Operation *slim = nullptr;
  if (std::optional<MatmulResults> product = MatmulResults::of(op)) {
    SmallVector<int64_t> recordAmax = getRecordAmax(op);
    llvm::erase_if(recordAmax, [](int64_t value) { return value != 0; });
    llvm::append_range(recordAmax, measured);
    slim = rebuildMatmul(rewriter, op, element.inputs, product->outScale, recordAmax, outs, mapsAttr);
  } else {
    slim = rebuildElementRegion(rewriter, op, element.inputs, outs, mapsAttr);
  }
  rewriter.replaceAllUsesWith(results, slim->getResults());
  rewriter.eraseOp(op);
  return success();
}
