// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8.attention and fp8.attention_grad.

#include "OpVerification.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"

using namespace mlir;
using namespace fp8;

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

static SmallVector<int64_t> getRowDims(const AttentionDims &dims) {
  return SmallVector<int64_t>(dims.keys.begin(), dims.keys.end());
}

//===----------------------------------------------------------------------===//
// Maps and sizes
//===----------------------------------------------------------------------===//

/// Checks that each operand has a map of its rank, in one iteration space.
template <typename Op>
static LogicalResult verifyMaps(Op op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (maps.size() != op->getNumOperands())
    return op.emitOpError() << "has " << op->getNumOperands() << " operands and " << maps.size()
                            << " indexing_maps; each operand needs one";
  for (auto [i, map, operand] : llvm::enumerate(maps, op->getOperands())) {
    if (map.getNumSymbols() != 0 || map.getNumDims() != maps[0].getNumDims())
      return op.emitOpError() << "indexing map " << i << " must be in the " << maps[0].getNumDims()
                              << " dimensions of the first map, without symbols";
    if (map.getNumResults() != shaped(operand).getRank())
      return op.emitOpError() << "indexing map " << i << " has " << map.getNumResults()
                              << " results for rank " << shaped(operand).getRank();
  }
  return success();
}

/// Returns the size of every iteration dimension, or emits an error if two operands disagree.
template <typename Op>
static FailureOr<SmallVector<int64_t>> inferLoopRanges(Op op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<int64_t> ranges(maps[0].getNumDims(), ShapedType::kDynamic);
  for (auto [i, map, operand] : llvm::enumerate(maps, op->getOperands())) {
    for (auto [expr, size] : llvm::zip_equal(map.getResults(), shaped(operand).getShape())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        continue;
      int64_t &range = ranges[dim.getPosition()];
      if (!fp8::detail::sizesMatch(range, size))
        return op.emitOpError() << "dimension d" << dim.getPosition() << " has size " << range
                                << " and, in operand " << i << ", " << size;
      if (!ShapedType::isDynamic(size))
        range = size;
    }
  }
  return ranges;
}

/// Checks that an input has key dimensions as they are and functions of outer dimensions.
template <typename Op>
static LogicalResult verifyInputMap(Op op, const AttentionDims &dims, unsigned number, AffineMap map) {
  SmallVector<int64_t> rows = getRowDims(dims);
  SmallVector<AffineExpr> seen;
  for (AffineExpr expr : map.getResults()) {
    if (isRowDim(expr, rows) && llvm::is_contained(seen, expr))
      return op.emitOpError() << "indexing map " << number << " reads a diagonal of key dimension d"
                              << cast<AffineDimExpr>(expr).getPosition();
    seen.push_back(expr);
    if (isRowDim(expr, rows))
      continue;
    for (unsigned dim : llvm::seq(map.getNumDims()))
      if (expr.isFunctionOfDim(dim) && !llvm::is_contained(dims.outer, dim))
        return op.emitOpError() << "indexing map " << number << " of an input of the rows computes with d"
                                << dim << ", which is no outer dimension; key dimensions are read whole";
  }
  return success();
}

/// Checks that a further result is a row or a statistic; a dimension of size 1 may be 0.
template <typename Op>
static LogicalResult verifyExtraMap(Op op, const AttentionDims &dims, unsigned number, AffineMap map,
                                    ShapedType type) {
  SmallVector<int64_t> rows = getRowDims(dims);
  llvm::SmallSetVector<unsigned, 8> seen;
  bool isSimple = true;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), type.getShape())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool isUnit = expr == getAffineConstantExpr(0, op.getContext()) && size == 1;
    isSimple &= dim ? seen.insert(dim.getPosition()) : isUnit;
  }
  auto hasAll = [&](ArrayRef<unsigned> kind) {
    return llvm::all_of(kind, [&](unsigned dim) { return seen.contains(dim); });
  };
  bool isRow = seen.size() == dims.outer.size() + dims.keys.size() && hasAll(dims.keys);
  if (isSimple && hasAll(dims.outer) && (isRow || seen.size() == dims.outer.size()))
    return success();
  return op.emitOpError() << "indexing map " << number
                          << " of a further result must have each outer dimension "
                          << "once, and each key dimension or none of them";
}

/// Checks that a gradient has the dimensions of its tensor, and maybe outer dimensions.
template <typename Op>
static LogicalResult verifyGradientMap(Op op, const AttentionDims &dims, StringRef name, AffineMap tensor,
                                       AffineMap gradient) {
  bool fits = gradient.isProjectedPermutation();
  for (unsigned dim : llvm::seq(tensor.getNumDims()))
    if (tensor.isFunctionOfDim(dim) != gradient.isFunctionOfDim(dim))
      fits &= gradient.isFunctionOfDim(dim) && llvm::is_contained(dims.outer, dim);
  if (fits)
    return success();
  return op.emitOpError() << "the map of the gradient of the " << name << " must have the dimensions of the "
                          << name << ", and may have outer dimensions";
}

//===----------------------------------------------------------------------===//
// The region
//===----------------------------------------------------------------------===//

/// Returns the type of the part of `operand` that a row reads or writes: a scalar or a slice along keys.
static Type getPartType(AffineMap map, Value operand, ArrayRef<int64_t> rows) {
  SmallVector<int64_t> sizes;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shaped(operand).getShape()))
    if (isRowDim(expr, rows))
      sizes.push_back(size);
  Type element = shaped(operand).getElementType();
  return sizes.empty() ? element : RankedTensorType::get(sizes, element);
}

template <typename Op>
static LogicalResult verifyArguments(Op op, const AttentionDims &dims, ArrayRef<int64_t> rowShape) {
  Block &body = op.getRows().front();
  unsigned outer = dims.outer.size(), wanted = outer + Op::kNumMatmulRows + op.getInputs().size();
  if (body.getNumArguments() != wanted)
    return op.emitOpError() << "`rows` must have " << wanted << " arguments: the index of the row in each of "
                            << outer << " outer dimensions, "
                            << (Op::kNumMatmulRows == 1 ? "the row of scores"
                                                        : "the rows of scores and of gradients")
                            << ", and the part of each input";
  for (unsigned i = 0; i < outer; ++i)
    if (!body.getArgument(i).getType().isIndex())
      return op.emitOpError() << "argument " << i
                              << " of `rows` is an index of the row and must be of type index";
  for (unsigned i = outer; i < outer + Op::kNumMatmulRows; ++i) {
    auto type = dyn_cast<RankedTensorType>(body.getArgument(i).getType());
    if (!type || !isa<FloatType>(type.getElementType()) || !llvm::equal(type.getShape(), rowShape))
      return op.emitOpError() << "argument " << i << " of `rows` must be a row of floats, such as "
                              << RankedTensorType::get(rowShape, Float32Type::get(op.getContext()));
  }
  SmallVector<int64_t> rows = getRowDims(dims);
  for (auto [i, input, map] : llvm::enumerate(op.getInputs(), op.getInputMaps())) {
    Type part = getPartType(map, input, rows);
    if (op.getInputPart(i).getType() != part)
      return op.emitOpError() << "argument " << outer + Op::kNumMatmulRows + i
                              << " of `rows` must be of type " << part;
  }
  return success();
}

template <typename Op>
static LogicalResult verifyYield(Op op, const AttentionDims &dims, ArrayRef<int64_t> rowShape) {
  YieldOp yield = fp8::detail::getYield(op.getRows().front());
  if (!yield)
    return op.emitOpError("`rows` must end in fp8.yield");
  unsigned further = op.getOuts().size() - Op::kNumMainResults, wanted = Op::kNumMatmulRows + further;
  if (yield->getNumOperands() != wanted)
    return op.emitOpError() << "`rows` yields " << yield->getNumOperands() << " values, expected " << wanted
                            << ": "
                            << (Op::kNumMatmulRows == 1
                                    ? "the row of probabilities"
                                    : "the rows of probabilities and of gradients of the scores")
                            << ", and one for each further result";
  for (unsigned i = 0; i < Op::kNumMatmulRows; ++i) {
    auto type = dyn_cast<RankedTensorType>(yield->getOperand(i).getType());
    if (!type || !isa<FloatType>(type.getElementType()) || !llvm::equal(type.getShape(), rowShape))
      return op.emitOpError() << "`rows` yields " << yield->getOperand(i).getType() << " as value " << i
                              << ", expected a row of floats, such as "
                              << RankedTensorType::get(rowShape, Float32Type::get(op.getContext()));
  }
  SmallVector<int64_t> rows = getRowDims(dims);
  for (auto [i, value] : llvm::enumerate(yield->getOperands().drop_front(Op::kNumMatmulRows))) {
    unsigned number = Op::kNumMainResults + i;
    Type part = getPartType(op.getOutMaps()[number], op.getOuts()[number], rows);
    if (value.getType() != part)
      return op.emitOpError() << "`rows` yields " << value.getType() << " for result " << number
                              << ", expected " << part;
  }
  return success();
}

template <typename Op>
static LogicalResult verifyRegion(Op op, const AttentionDims &dims, ArrayRef<int64_t> ranges) {
  if (!llvm::hasSingleElement(op.getRows()))
    return op.emitOpError("`rows` must be one block");
  SmallVector<int64_t> rowShape = llvm::map_to_vector(dims.keys, [&](unsigned dim) { return ranges[dim]; });
  if (failed(verifyArguments(op, dims, rowShape)))
    return failure();
  return verifyYield(op, dims, rowShape);
}

/// Checks that `visible_keys` is one number of keys, and that nothing needs the keys behind.
template <typename Op>
static LogicalResult verifyVisibleKeys(Op op, const AttentionDims &dims) {
  std::optional<AffineMap> map = op.getVisibleKeys();
  if (!map)
    return success();
  bool isOfRow = map->getNumDims() == op.getIndexingMapsArray()[0].getNumDims() &&
                 map->getNumSymbols() == 0 && map->getNumResults() == 1;
  for (unsigned dim = 0; isOfRow && dim < map->getNumDims(); ++dim)
    isOfRow = !map->isFunctionOfDim(dim) || llvm::is_contained(dims.outer, dim);
  if (!isOfRow || dims.keys.size() != 1)
    return op.emitOpError(
        "`visible_keys` must be one number, a function of outer dimensions, for one dimension of "
        "keys");
  for (AffineMap further : ArrayRef(op.getOutMaps()).drop_front(Op::kNumMainResults))
    if (further.isFunctionOfDim(dims.keys.front()))
      return op.emitOpError("has `visible_keys` and a further result that is a row of all keys");
  return success();
}

//===----------------------------------------------------------------------===//
// Both operations
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult verifyAttention(Op op,
                                     function_ref<LogicalResult(const AttentionDims &)> verifyResults) {
  if (failed(fp8::detail::verifyDestinationStyle(op)))
    return failure();
  if (op.getOuts().size() < Op::kNumMainResults)
    return op.emitOpError() << "has " << op.getOuts().size() << " outs, expected at least "
                            << Op::kNumMainResults;
  if (failed(verifyMaps(op)))
    return failure();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  std::optional<AttentionDims> dims = inferAttentionDims(maps[0], maps[1], maps[2], op.getOutputMap());
  if (!dims)
    return op.emitOpError(
        "the indexing_maps of query, key, value and output must be projected permutations, "
        "in which every dimension is an outer one (in the output, and in query or key), keys "
        "(in key and value), depth (in query and key) or width (in value and output); there "
        "must be outer dimensions, keys and depth");
  if (failed(verifyResults(*dims)))
    return failure();
  for (auto [i, map] : llvm::enumerate(op.getInputMaps()))
    if (failed(verifyInputMap(op, *dims, op.getInputs().getBeginOperandIndex() + i, map)))
      return failure();
  for (unsigned i = Op::kNumMainResults; i < op.getOuts().size(); ++i)
    if (failed(verifyExtraMap(op, *dims, op.getOuts().getBeginOperandIndex() + i, op.getOutMaps()[i],
                              shaped(op.getOuts()[i]))))
      return failure();
  for (unsigned i = 0; i < Op::kNumMainResults; ++i)
    if (!isa<FloatType>(getElementTypeOrSelf(op.getOuts()[i])))
      return op.emitOpError() << "result " << i << " is of " << getElementTypeOrSelf(op.getOuts()[i])
                              << " and must be of floats";
  if (op.getSites() && op.getSites()->size() != Op::kNumMatmuls)
    return op.emitOpError() << "has " << op.getSites()->size() << " sites for " << Op::kNumMatmuls
                            << " matmuls";
  FailureOr<SmallVector<int64_t>> ranges = inferLoopRanges(op);
  if (failed(ranges) || failed(verifyVisibleKeys(op, *dims)))
    return failure();
  return verifyRegion(op, *dims, *ranges);
}

template <typename Op>
static void buildAttention(OpBuilder &builder, OperationState &state, ValueRange operands, ValueRange inputs,
                           ValueRange outs, ArrayRef<AffineMap> maps, ArrayAttr sites,
                           AffineMapAttr visibleKeys) {
  state.addTypes(TypeRange(outs));
  state.addOperands(operands);
  state.addOperands(inputs);
  state.addOperands(outs);
  auto &properties = state.getOrAddProperties<typename Op::Properties>();
  llvm::fill(properties.operandSegmentSizes, 1);
  auto variadic = MutableArrayRef<int32_t>(properties.operandSegmentSizes).take_back(2);
  variadic[0] = inputs.size();
  variadic[1] = outs.size();
  properties.setIndexingMaps(builder.getAffineMapArrayAttr(maps));
  properties.setSites(sites);
  properties.setVisibleKeys(visibleKeys);
  state.addRegion();
}

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(AttentionOp, false)

// These cannot fail on a verified operation, because the verifier has compared all sizes.
SmallVector<int64_t> AttentionOp::getStaticLoopRanges() { return *inferLoopRanges(*this); }
YieldOp AttentionOp::getYield() { return cast<YieldOp>(getRows().front().getTerminator()); }

void AttentionOp::build(OpBuilder &builder, OperationState &state, ValueRange operands, ValueRange inputs,
                        ValueRange outs, ArrayRef<AffineMap> maps, ArrayAttr sites,
                        AffineMapAttr visibleKeys) {
  buildAttention<AttentionOp>(builder, state, operands, inputs, outs, maps, sites, visibleKeys);
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, [](const AttentionDims &) { return success(); });
}

//===----------------------------------------------------------------------===//
// AttentionGradOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(AttentionGradOp, false)

SmallVector<int64_t> AttentionGradOp::getStaticLoopRanges() { return *inferLoopRanges(*this); }
YieldOp AttentionGradOp::getYield() { return cast<YieldOp>(getRows().front().getTerminator()); }

void AttentionGradOp::build(OpBuilder &builder, OperationState &state, ValueRange operands, ValueRange inputs,
                            ValueRange outs, ArrayRef<AffineMap> maps, ArrayAttr sites,
                            AffineMapAttr visibleKeys) {
  buildAttention<AttentionGradOp>(builder, state, operands, inputs, outs, maps, sites, visibleKeys);
}

LogicalResult AttentionGradOp::verify() {
  return verifyAttention(*this, [&](const AttentionDims &dims) -> LogicalResult {
    StringRef names[] = {"query", "key", "value"};
    for (auto [name, tensor, gradient] : llvm::zip(names, getIndexingMapsArray(), getOutMaps()))
      if (failed(verifyGradientMap(*this, dims, name, tensor, gradient)))
        return failure();
    return success();
  });
}
