// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts operands and replaces matmuls in one function.

#include "RecipeRewriter.h"
#include "ParameterCasts.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

Value FunctionRewriter::emptyLike(Location loc, Value like, Type elementType) {
  return tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, like), elementType);
}

/// Finds the columns that are updated at the end of the forward part of a pair: those of operands
/// of forward matmuls that are not gradients.
void FunctionRewriter::findForwardColumns(ArrayRef<QuantizedOperand> operands) {
  std::set<int64_t> gradients;
  for (const QuantizedOperand &operand : operands) {
    auto column = columns.find(operand.castId);
    if (column == columns.end())
      continue;
    if (operand.kind() == TensorKind::grad_output)
      gradients.insert(column->second);
    else if (pair->isForward(operand.matmul))
      forwardColumns.insert(column->second);
  }
  for (int64_t column : gradients)
    forwardColumns.erase(column);
}

/// Returns the scale in the state or, if the recipe starts from the tensor and the column's history
/// is empty, the scale computed from the tensor's own amax. With `repeats` backward repeats a cast of
/// forward and uses the scale from before forward's update.
Value FunctionRewriter::scaleOfColumn(Location loc, const QuantizedOperand &operand, Value source,
                                      State &from, int64_t column, bool repeats) {
  bool startsFromTensor = operand.recipe.startsFromTensor();
  OpBuilder::InsertPoint place = builder.saveInsertionPoint();
  if (repeats) // read the scale in forward, so that one scale becomes a residual, not the state
    builder.setInsertionPoint(pair->getEndForward());
  auto type = RankedTensorType::get({}, builder.getF32Type());
  SmallVector<OpFoldResult> offsets{builder.getIndexAttr(column)}, ones{builder.getIndexAttr(1)};
  Value scale = tensor::ExtractSliceOp::create(builder, loc, type, from.scale, offsets, ones, ones);
  Value isEmpty;
  if (startsFromTensor) {
    Value index = arith::ConstantIndexOp::create(builder, loc, column);
    Value largest = tensor::ExtractOp::create(builder, loc, getLargestAmaxes(from), index);
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.0f));
    isEmpty = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, largest, zero);
  }
  builder.restoreInsertionPoint(place);
  if (!startsFromTensor)
    return scale;

  auto choice = scf::IfOp::create(builder, loc, type, isEmpty, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(builder, loc, scaleFromTensor(loc, operand, source));
  builder.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(builder, loc, scale);
  return choice.getResult(0);
}

/// Returns the largest amax in each column of the history: 0 if there is none yet.
Value FunctionRewriter::getLargestAmaxes(State &from) {
  if (from.largestAmaxes)
    return from.largestAmaxes;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(from.history);
  Location loc = function.getLoc();
  Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.0f));
  auto type = cast<RankedTensorType>(from.scale.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  Value init = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  AffineMap rows = builder.getMultiDimIdentityMap(2), columns = rows.getMinorSubMap(1);
  auto largest = linalg::GenericOp::create(
      builder, loc, init.getType(), from.history, init, {rows, columns},
      {utils::IteratorType::reduction, utils::IteratorType::parallel},
      [](OpBuilder &b, Location loc, ValueRange values) {
        // NaN must win: a column with a NaN is not empty.
        linalg::YieldOp::create(b, loc, arith::MaximumFOp::create(b, loc, values[0], values[1]).getResult());
      });
  return from.largestAmaxes = largest.getResult(0);
}

/// Returns the scale computed from the tensor's own amax.
Value FunctionRewriter::scaleFromTensor(Location loc, const QuantizedOperand &operand, Value source) {
  auto type = RankedTensorType::get({}, builder.getF32Type());
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  Value amax = AmaxOp::create(builder, loc, type, source, init).getResult(0);
  Value scaleInit = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  return ComputeScaleOp::create(builder, loc, type, amax, scaleInit, operand.recipe.getScaling(),
                                TypeAttr::get(operand.format()), TypeAttr::get(getElementTypeOrSelf(source)))
      .getResult(0);
}

/// Casts `operand` with a scale per block. Dimensions of one kind count as one, so that a block spans
/// several of them where the last one is short; the results get them back, and blocks across such a
/// group have one element (fp8-collapse-matmuls).
FunctionRewriter::Cast FunctionRewriter::castBlocks(const QuantizedOperand &operand) {
  Location loc = operand.matmul->getLoc();
  Value source = operand.tensor(), matrix = source;
  SmallVector<ReassociationIndices> groups = operand.groups();
  bool isCollapsed = llvm::any_of(groups, [](ArrayRef<int64_t> group) { return group.size() > 1; });
  if (isCollapsed)
    matrix = tensor::CollapseShapeOp::create(builder, loc, source, groups);
  SmallVector<int64_t> block = operand.block();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, matrix);
  SmallVector<Value> outs{tensor::EmptyOp::create(builder, loc, sizes, operand.format()),
                          tensor::EmptyOp::create(builder, loc, getBlockCounts(builder, loc, sizes, block),
                                                  operand.recipe.getScaleType())};
  QuantizeBlocksParts parts(matrix, operand.recipe.getScaling(),
                            builder.getArrayAttr(builder.getDenseI64ArrayAttr(block)), outs);
  roundRandomly(parts, operand);
  auto quantize = parts.create(builder, loc);
  if (!isCollapsed)
    return {quantize.getResult(0), quantize.getResult(1), Value()};
  SmallVector<OpFoldResult> dataSizes = tensor::getMixedSizes(builder, loc, source);
  auto expand = [&](Value value, ArrayRef<OpFoldResult> expanded) -> Value {
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(expanded, dynamic, shape);
    auto type = RankedTensorType::get(shape, getElementTypeOrSelf(value));
    return tensor::ExpandShapeOp::create(builder, loc, type, value, groups, expanded);
  };
  SmallVector<int64_t> blockOfDims = operand.blockOfDims();
  return {expand(quantize.getResult(0), dataSizes),
          expand(quantize.getResult(1), getBlockCounts(builder, loc, dataSizes, blockOfDims)), Value()};
}

/// Returns the state of stochastic rounding.
Value FunctionRewriter::getRandom() {
  return pair ? Value(pair->getEndForward()->getResult(*randomNumber)) : function.getArgument(*randomNumber);
}

IntegerAttr FunctionRewriter::streamOf(const QuantizedOperand &operand) {
  auto stream = streams.find(operand.castId);
  return stream == streams.end() ? IntegerAttr() : builder.getI64IntegerAttr(stream->second);
}

void FunctionRewriter::roundRandomly(CastParts &parts, const QuantizedOperand &operand) {
  parts.stream = streamOf(operand);
  if (parts.stream)
    parts.random = getRandom();
}

FunctionRewriter::Cast FunctionRewriter::getOrCreateCast(const QuantizedOperand &operand) {
  auto [entry, isNew] = casts.try_emplace(operand.castId);
  if (!isNew)
    return entry->second;

  if (DequantizeOp own = operand.ownBytes())
    return entry->second = {own.getData(), own.getScaleInv(), Value()};
  Value source = operand.source();
  OpBuilder::InsertionGuard guard(builder);
  Location loc = operand.matmul->getLoc();
  auto column = columns.find(operand.castId);
  bool stateful = column != columns.end();
  // Backward computes a forward tensor again: its amax is recorded already, the scale is the same.
  bool inBackward = pair && !pair->isForward(source);
  bool repeats = stateful && inBackward && forwardColumns.count(column->second);
  State &from = inBackward && !repeats ? backwardState : state;
  // Code that depends on the state only comes before the casts of arguments.
  bool comesWithState = stateful && !repeats && source.getParentBlock() == from.scale.getParentBlock() &&
                        source.getDefiningOp() == from.scale.getDefiningOp();
  builder.setInsertionPointAfterValue(
      comesWithState && operand.recipe.startsFromTensor() ? getLargestAmaxes(from) : source);
  // A gradient that forward has, such as a constant, is cast where backward has the random state.
  if (streamOf(operand) && pair && pair->isForward(source))
    builder.setInsertionPointAfterValue(getRandom());
  Cast &known = entry->second;
  auto note = [&](Value tensor, Cast cast) {
    std::string name = (*operand.matmul.getSite() + "." + stringifyTensorKind(operand.kind())).str();
    if (!operand.recipe.hasOwnDequantize(operand.kind()))
      measured.push_back({tensor, cast, operand.blockOfDims(), name});
    return known = cast;
  };
  if (!operand.block().empty())
    return note(source, castBlocks(operand));

  Value scaleValue = stateful ? scaleOfColumn(loc, operand, source, from, column->second, repeats)
                              : scaleFromTensor(loc, operand, source);
  bool record = stateful && updates && !repeats;
  if (operand.recipe.hasOwnQuantize(operand.kind()))
    return note(source, castByRecipe(operand, source, scaleValue, record));
  SmallVector<Value> outs{
      emptyLike(loc, source, operand.format()),
      tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, operand.recipe.getScaleType())};
  if (record)
    outs.push_back(tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, builder.getF32Type()));
  QuantizeParts parts(source, scaleValue, outs);
  parts.recordAmax = record;
  if (stateful)
    parts.column = builder.getI64IntegerAttr(column->second);
  roundRandomly(parts, operand);
  auto quantize = parts.create(builder, loc);
  return note(source,
              {quantize.getResult(0), quantize.getResult(1), record ? quantize.getResult(2) : Value()});
}

/// Records `amax` for the block of the matmul: once per block, and not if an enclosing block has
/// recorded it already. Backward does not record an amax that forward records.
void FunctionRewriter::recordAmax(const QuantizedOperand &operand, Value amax) {
  int64_t column = columns.at(operand.castId);
  Operation *matmul = operand.matmul;
  if (forwardColumns.count(column) && !pair->isForward(matmul))
    return;
  SmallVector<RecordedAmax> &recorded = amaxes[column];
  auto counts = [&](const RecordedAmax &other) {
    return other.value == amax && other.block->findAncestorOpInBlock(*matmul);
  };
  if (llvm::none_of(recorded, counts))
    recorded.push_back({amax, matmul->getBlock()});
}

/// Repeats the views between `source` and `operand` on the FP8 data of `source`.
Value FunctionRewriter::replayViews(Value operand, Value source, Value data) {
  if (operand == source)
    return data;
  Operation *view = operand.getDefiningOp();
  Value inner = replayViews(view->getOperand(0), source, data);
  Operation *copy = builder.clone(*view);
  copy->setOperand(0, inner);
  auto type = cast<RankedTensorType>(operand.getType());
  copy->getResult(0).setType(type.clone(getElementTypeOrSelf(data)));
  return copy->getResult(0);
}

/// Marks the cast behind `data` with the first site that reads a weight from it.
static void markWeight(Value data, StringAttr site) {
  Operation *cast = data.getDefiningOp();
  if (isa<tensor::ExpandShapeOp>(cast))
    cast = cast->getOperand(0).getDefiningOp();
  if (!cast->hasAttr(kWeightAttrName))
    cast->setAttr(kWeightAttrName, site);
}

void FunctionRewriter::replaceMatmul(const QuantizedOperand &lhs, const QuantizedOperand &rhs) {
  MatmulOp op = lhs.matmul;
  Cast lhsCast = getOrCreateCast(lhs), rhsCast = getOrCreateCast(rhs);
  if (lhsCast.amax)
    recordAmax(lhs, lhsCast.amax);
  if (rhsCast.amax)
    recordAmax(rhs, rhsCast.amax);
  if (markWeights)
    for (auto [operand, cast] : {std::pair(&lhs, lhsCast), {&rhs, rhsCast}})
      if (operand->kind() == TensorKind::weight && !operand->ownBytes())
        markWeight(cast.data, op.getSiteAttr());
  builder.setInsertionPoint(op);
  auto blockAttr = [&](const QuantizedOperand &operand) {
    SmallVector<int64_t> block = operand.blockOfDims();
    return block.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(block);
  };
  bool isGradient = lhs.kind() == TensorKind::grad_output || rhs.kind() == TensorKind::grad_output;
  // The gradients of a matmul of two activations add as those of a matmul with a weight.
  Role role = *op.getRole() == Role::other && isGradient ? Role::dgrad : *op.getRole();
  auto describe = [&](auto properties, ArrayAttr maps) {
    properties.setIndexingMaps(maps);
    properties.setAccumulation(AccumulationAttr::get(op.getContext(), lhs.recipe.getAccumulation(role)));
    properties.setSite(op.getSiteAttr());
    properties.setRole(op.getRoleAttr());
    properties.setRecipe(lhs.recipe);
    properties.setLhsBlock(blockAttr(lhs));
    properties.setRhsBlock(blockAttr(rhs));
    return properties;
  };
  if (std::optional<GroupedMatmul> grouped = lhs.grouped()) {
    auto scaled = ScaledGroupedMatmulOp::create(
        builder, op.getLoc(),
        {lhsCast.data, rhsCast.data, grouped->ends, lhsCast.scaleInv, rhsCast.scaleInv, op.getInit()},
        describe(ScaledGroupedMatmulOp::Properties(), builder.getAffineMapArrayAttr(grouped->maps)));
    op.replaceAllUsesWith(scaled.getResults());
    op.erase();
    return;
  }
  Value lhsData = replayViews(lhs.value(), lhs.source(), lhsCast.data);
  Value rhsData = replayViews(rhs.value(), rhs.source(), rhsCast.data);
  auto isOpaque = [](const QuantizedOperand &operand) {
    return !operand.ownBytes() && operand.recipe.hasOwnDequantize(operand.kind());
  };
  if (isOpaque(lhs) || isOpaque(rhs))
    return multiplyDequantized(lhs, rhs, lhsData, rhsData);
  auto properties = describe(ScaledMatmulOp::Properties(), op.getIndexingMapsAttr());
  properties.setAccumulate(op.getAccumulateAttr());
  if (lhs.ownBytes() && rhs.ownBytes())
    properties.setRecipe(nullptr);
  auto scaled = ScaledMatmulOp::create(
      builder, op.getLoc(), {lhsData, rhsData, lhsCast.scaleInv, rhsCast.scaleInv, op.getInit()}, properties);
  op.replaceAllUsesWith(scaled.getResults());
  op.erase();
}

void FunctionRewriter::rewrite(ArrayRef<QuantizedOperand> operands) {
  if (pair)
    findForwardColumns(operands);
  for (size_t i = 0; i < operands.size(); i += 2)
    replaceMatmul(operands[i], operands[i + 1]);
}

LogicalResult FunctionRewriter::addRounding() {
  FailureOr<Value> random = addRoundingState(function, pair);
  if (failed(random))
    return failure();
  auto result = dyn_cast<OpResult>(*random);
  randomNumber = result ? result.getResultNumber() : cast<BlockArgument>(*random).getArgNumber();
  return success();
}
