// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Producer and epilogue regions: their common view and their verifier.

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

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Returns whether a region that works on tensors or vectors may have `type` for `part`.
static bool fitsPart(Type type, Type part) {
  auto vector = dyn_cast<VectorType>(type);
  auto tensor = dyn_cast<RankedTensorType>(part);
  if (!vector || !tensor)
    return type == part;
  return vector.getShape() == tensor.getShape() && vector.getElementType() == tensor.getElementType();
}

static LogicalResult verifyArguments(const ElementRegion &element, StringRef name) {
  Block &body = element.body();
  for (auto [i, input, map] : llvm::enumerate(element.inputs, element.inputMaps())) {
    if (static_cast<int64_t>(map.getNumResults()) != shaped(input).getRank())
      return element.op->emitOpError()
             << name << " map " << i << " must read an input of rank " << shaped(input).getRank()
             << " in the " << element.numDims << " dimensions of the tensor";
    Type wanted = element.partOf(input, map);
    if (!fitsPart(body.getArgument(element.firstArgument + i).getType(), wanted))
      return element.op->emitOpError()
             << name << " argument " << element.firstArgument + i << " must be of type " << wanted;
  }
  return success();
}

/// The map of an extra result with `rows` has all dimensions in `rows` or none of them, and the same
/// for the other dimensions; a dimension of size 1 may be 0.
static bool isExtraMapOfRows(const ElementRegion &element, AffineMap map, ShapedType out) {
  llvm::SetVector<int64_t> dims;
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool unit = expr == getAffineConstantExpr(0, map.getContext()) && out.getDimSize(position) == 1;
    if (dim ? !dims.insert(dim.getPosition()) : !unit)
      return false;
  }
  if (element.sums(map))
    return llvm::equal(dims, element.rows);
  size_t inRow = llvm::count_if(dims, [&](int64_t dim) { return llvm::is_contained(element.rows, dim); });
  return (inRow == 0 || inRow == element.rows.size()) && dims.size() == element.firstArgument + inRow;
}

/// An extra result is stored at a permutation of the dimensions, or summed over the leading ones.
static bool isExtraMap(const ElementRegion &element, AffineMap map, ShapedType out) {
  if (static_cast<int64_t>(map.getNumResults()) != out.getRank())
    return false;
  if (!element.rows.empty())
    return isExtraMapOfRows(element, map, out);
  unsigned kept = map.getNumResults();
  bool keepsLast =
      kept < element.numDims && map == AffineMap::getMultiDimIdentityMap(element.numDims, map.getContext())
                                           .getSliceMap(element.numDims - kept, kept);
  return map.isPermutation() || keepsLast;
}

static LogicalResult verifyExtras(const ElementRegion &element, YieldOp yield, StringRef name) {
  if (yield.getExtras().size() != element.numExtras())
    return element.op->emitOpError() << "the " << name << " yields " << yield.getExtras().size()
                                     << " extra values for " << element.numExtras() << " extra results";
  for (auto [i, map, out, value] :
       llvm::enumerate(element.extraMaps(), element.extras(), yield.getExtras())) {
    if (!isExtraMap(element, map, shaped(out)))
      return element.op->emitOpError()
             << name << " map " << element.inputs.size() + i << " must store an extra result of rank "
             << shaped(out).getRank() << " at a permutation of the " << element.numDims << " dimensions, "
             << (element.rows.empty()
                     ? "or keep the last ones to sum over the others"
                     : "a statistic at those outside of `rows`, or a sum at those of `rows`");
    Type wanted = element.partOf(out, map);
    if (!fitsPart(value.getType(), wanted))
      return element.op->emitOpError()
             << "the " << name << " yields " << value.getType() << " for an extra result of " << wanted;
    if (element.sums(map) && !getElementTypeOrSelf(value).isF32())
      return element.op->emitOpError() << "extra result " << i << " is a sum and must be f32";
  }
  return success();
}

/// Checks that `rows` are some dimensions of the tensor, in order and of static size, and that each
/// input has all of a dimension in `rows` or nothing of it.
static LogicalResult verifyRows(const ElementRegion &element, StringRef name) {
  Operation *op = element.op;
  if (!llvm::is_sorted(element.rows, std::less_equal<int64_t>()) || element.rows.front() < 0 ||
      element.rows.back() >= element.numDims || element.rows.size() >= element.numDims)
    return op->emitOpError() << "`rows` must be some of the " << element.numDims
                             << " dimensions of the tensor, not all, in increasing order";
  bool hasTensors = llvm::any_of(element.body().getArgumentTypes(), llvm::IsaPred<TensorType>);
  if (!isa<TensorType>(element.outs[0].getType()) && hasTensors)
    return op->emitOpError(
        "with `rows` on memrefs computes with vectors, not tensors; run fp8-expand-rows or "
        "fp8-vectorize-rows before bufferization");
  for (auto [i, operand, map] : llvm::enumerate(element.inputs, element.inputMaps())) {
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      bool usesRow =
          llvm::any_of(element.rows, [expr = expr](int64_t dim) { return expr.isFunctionOfDim(dim); });
      if (usesRow && !isRowDim(expr, element.rows))
        return op->emitOpError() << name << " map " << i << " computes with a dimension in `rows`; "
                                 << "those are read whole";
      if (usesRow && shaped(operand).isDynamicDim(position))
        return op->emitOpError() << "dimension d" << cast<AffineDimExpr>(expr).getPosition()
                                 << " is in `rows` and of unknown size";
    }
  }
  return success();
}

LogicalResult fp8::detail::verifyElementRegion(Operation *op, StringRef name) {
  ElementRegion element = *ElementRegion::of(op);
  unsigned inputs = element.inputs.size(), arguments = element.firstArgument + inputs;
  if (element.isEmpty())
    return success();
  if (element.maps.size() < inputs)
    return op->emitOpError() << "has " << inputs << " inputs of its " << name << " and "
                             << element.maps.size() << " maps; each input needs one";
  for (auto [i, map] : llvm::enumerate(element.maps))
    if (map.getNumSymbols() != 0 || map.getNumDims() != element.numDims)
      return op->emitOpError() << name << " map " << i << " must be in the " << element.numDims
                               << " dimensions of the tensor, without symbols";
  if (!element.rows.empty() && failed(verifyRows(element, name)))
    return failure();
  if (!llvm::hasSingleElement(*element.region) || element.body().getNumArguments() != arguments)
    return op->emitOpError() << "the " << name << " must be one block of " << arguments << " arguments: "
                             << (!element.rows.empty()   ? "the index of the row in each other dimension and "
                                 : element.firstArgument ? "the scaled sum and "
                                                         : "")
                             << (element.rows.empty() ? "one element of each input"
                                                      : "the slice of each input along `rows`");
  if (!element.rows.empty() && !llvm::all_of(element.body().getArguments().take_front(element.firstArgument),
                                             [](Value argument) { return argument.getType().isIndex(); }))
    return op->emitOpError() << "the first " << element.firstArgument << " arguments of the " << name
                             << " are the index of the row and must be of type index";
  YieldOp yield = getYield(element.body());
  if (!yield)
    return op->emitOpError() << "the " << name << " must end in fp8.yield";
  if (failed(verifyArguments(element, name)))
    return failure();
  return verifyExtras(element, yield, name);
}

LogicalResult fp8::detail::verifyYieldedPart(Operation *op, ShapedType tensor) {
  ElementRegion element = *ElementRegion::of(op);
  SmallVector<int64_t> sizes =
      llvm::map_to_vector(element.rows, [&](int64_t dim) { return tensor.getDimSize(dim); });
  auto type = dyn_cast<ShapedType>(element.yield().getValue().getType());
  if (sizes.empty() ? !type : type && llvm::equal(type.getShape(), sizes))
    return verifyCastType(op, "the producer yields", getElementTypeOrSelf(element.yield().getValue()));
  InFlightDiagnostic diag = op->emitOpError() << "the producer yields "
                                              << element.yield().getValue().getType() << ", expected ";
  if (sizes.empty())
    return diag << "one element";
  diag << "a row of shape [";
  llvm::interleaveComma(sizes, diag);
  return diag << "]";
}
