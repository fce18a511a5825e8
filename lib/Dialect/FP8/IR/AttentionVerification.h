// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of the verifiers of all operations of attention: maps, sizes, results. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_IR_ATTENTIONVERIFICATION_H
#define FP8_LIB_DIALECT_FP8_IR_ATTENTIONVERIFICATION_H

#include "OpVerification.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"

namespace fp8::detail {

using namespace mlir;

inline ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

inline SmallVector<int64_t> getRowDims(const AttentionDims &dims) {
  return SmallVector<int64_t>(dims.keys.begin(), dims.keys.end());
}

//===----------------------------------------------------------------------===//
// Maps and sizes
//===----------------------------------------------------------------------===//

/// Checks that each operand has a map of its rank, in one iteration space.
template <typename Op>
LogicalResult verifyMaps(Op op) {
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
FailureOr<SmallVector<int64_t>> inferLoopRanges(Op op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<int64_t> ranges(maps[0].getNumDims(), ShapedType::kDynamic);
  for (auto [i, map, operand] : llvm::enumerate(maps, op->getOperands())) {
    for (auto [expr, size] : llvm::zip_equal(map.getResults(), shaped(operand).getShape())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        continue;
      int64_t &range = ranges[dim.getPosition()];
      if (!sizesMatch(range, size))
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
LogicalResult verifyInputMap(Op op, const AttentionDims &dims, unsigned number, AffineMap map) {
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

/// Whether a further result that lacks outer dimensions is the sum of rows over them.
template <typename Op>
constexpr bool kSumsRows = std::is_same_v<Op, AttentionGradOp> || std::is_same_v<Op, OnlineAttentionGradOp>;

/// Checks that a further result is a row or a statistic; a dimension of size 1 may be 0. In backward, a row
/// may lack outer dimensions.
template <typename Op>
LogicalResult verifyExtraMap(Op op, const AttentionDims &dims, unsigned number, AffineMap map,
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
  bool isSum = kSumsRows<Op> && hasAll(dims.keys) && llvm::all_of(seen, [&](unsigned dim) {
                 return llvm::is_contained(dims.outer, dim) || llvm::is_contained(dims.keys, dim);
               });
  bool isRow = seen.size() == dims.outer.size() + dims.keys.size() && hasAll(dims.keys);
  if (isSimple && (isSum || (hasAll(dims.outer) && (isRow || seen.size() == dims.outer.size()))))
    return success();
  return op.emitOpError()
         << "indexing map " << number
         << " of a further result must have each outer dimension once, and each key dimension or "
         << "none of them" << (kSumsRows<Op> ? "; a row may lack outer dimensions" : "");
}

/// Checks that a gradient has the dimensions of its tensor, and maybe outer dimensions.
template <typename Op>
LogicalResult verifyGradientMap(Op op, const AttentionDims &dims, StringRef name, AffineMap tensor,
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

/// Checks the maps of the gradients of query, key and value.
template <typename Op>
LogicalResult verifyGradientMaps(Op op, const AttentionDims &dims) {
  StringRef names[] = {"query", "key", "value"};
  for (auto [name, tensor, gradient] : llvm::zip(names, op.getIndexingMapsArray(), op.getOutMaps()))
    if (failed(verifyGradientMap(op, dims, name, tensor, gradient)))
      return failure();
  return success();
}

/// Checks that `visible_keys` is a range of keys, and that nothing needs the others.
template <typename Op>
LogicalResult verifyVisibleKeys(Op op, const AttentionDims &dims, ArrayRef<int64_t> ranges) {
  std::optional<AffineMap> map = op.getVisibleKeys();
  std::optional<uint64_t> condition = op.getVisibleIf();
  if (condition && !map)
    return op.emitOpError("has `visible_if` without `visible_keys`");
  if (condition && (*condition >= op.getInputs().size() ||
                    !getElementTypeOrSelf(op.getInputs()[*condition]).isInteger(1) ||
                    op.getInputMaps()[*condition].getNumResults() != 0))
    return op.emitOpError() << "`visible_if` is " << *condition << ", and must be the number of an input "
                            << "that is one i1";
  if (!map)
    return success();
  bool isOfRow = map->getNumDims() == op.getIndexingMapsArray()[0].getNumDims() &&
                 map->getNumSymbols() == 0 && map->getNumResults() == 2;
  for (unsigned dim = 0; isOfRow && dim < map->getNumDims(); ++dim)
    isOfRow = !map->isFunctionOfDim(dim) || llvm::is_contained(dims.outer, dim);
  if (!isOfRow || dims.keys.size() != 1)
    return op.emitOpError(
        "`visible_keys` must be the first key and the end, functions of outer dimensions, for one "
        "dimension of keys");
  for (AffineMap further : ArrayRef(op.getOutMaps()).drop_front(Op::kNumMainResults)) {
    // Sums in an order of their own have no sign of a zero to keep.
    bool isSum = std::is_same_v<Op, OnlineAttentionGradOp> ||
                 (kSumsRows<Op> && llvm::any_of(dims.outer, [&](unsigned dim) {
                    return ranges[dim] != 1 && !further.isFunctionOfDim(dim);
                  }));
    if (further.isFunctionOfDim(dims.keys.front()) && !isSum)
      return op.emitOpError("has `visible_keys` and a further result that is a row of all keys");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Both operations
//===----------------------------------------------------------------------===//

/// Verifies what all have in common. `verifyResults` gets the dimensions, `verifyRegions` also their sizes.
template <typename Op>
LogicalResult
verifyAttention(Op op, function_ref<LogicalResult(const AttentionDims &)> verifyResults,
                function_ref<LogicalResult(const AttentionDims &, ArrayRef<int64_t>)> verifyRegions) {
  if (failed(verifyDestinationStyle(op)))
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
  if (failed(ranges) || failed(verifyVisibleKeys(op, *dims, *ranges)))
    return failure();
  return verifyRegions(*dims, *ranges);
}

/// Sets operands, results, attributes and regions of an operation that is being built.
template <typename Op>
void buildAttention(OpBuilder &builder, OperationState &state, ValueRange operands, ValueRange inputs,
                    ValueRange outs, ArrayRef<AffineMap> maps, ArrayAttr sites, AffineMapAttr visibleKeys,
                    unsigned numRegions = 1) {
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
  for (unsigned i = 0; i < numRegions; ++i)
    state.addRegion();
}

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_IR_ATTENTIONVERIFICATION_H
