// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every operation is described by one affine map per operand, from its iteration space to the
// element that an iteration reads or writes; everything else is computed from these maps.

#include "TilingSpace.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

//===----------------------------------------------------------------------===//
// Operations as maps
//===----------------------------------------------------------------------===//

static AffineMap identityOf(Value value) {
  return AffineMap::getMultiDimIdentityMap(cast<ShapedType>(value.getType()).getRank(), value.getContext());
}

/// Returns the map to the scale of the element at `data`: index / extent in each dimension, or 0 for
/// extent 0.
static AffineMap getScaleMap(AffineMap data, std::optional<ArrayRef<int64_t>> block) {
  SmallVector<AffineExpr> entries;
  if (block)
    for (auto [expr, extent] : llvm::zip_equal(data.getResults(), *block))
      entries.push_back(extent == 0 ? getAffineConstantExpr(0, data.getContext()) : expr.floorDiv(extent));
  return AffineMap::get(data.getNumDims(), 0, entries, data.getContext());
}

static AffineMap getScalarMap(AffineMap data) { return getScaleMap(data, std::nullopt); }

/// Returns the map to the first element of a vector.
static AffineMap getFirstMap(AffineMap data) {
  return AffineMap::get(data.getNumDims(), 0, getAffineConstantExpr(0, data.getContext()));
}

static void getMaps(QuantizeOp op, SmallVectorImpl<AffineMap> &maps) {
  AffineMap data = identityOf(op.getOuts().front());
  AffineMap scale = getScalarMap(data);
  ElementRegion element = *ElementRegion::of(op);
  llvm::append_range(maps, element.inputMaps());
  maps.push_back(scale);
  if (op.getRandom())
    maps.push_back(getFirstMap(data));
  maps.push_back(data);
  if (op.getTransposition())
    maps.push_back(AffineMap::getPermutationMap(*op.getTransposition(), op.getContext()));
  maps.push_back(scale);
  if (op.getRecordAmax())
    maps.push_back(getScalarMap(data));
  llvm::append_range(maps, element.extraMaps());
}

/// Appends the maps of the epilogue inputs and of all `outs` of a matmul; `out` is the result's map.
template <typename MatmulView>
static void appendEpilogueMaps(MatmulView op, AffineMap out, SmallVectorImpl<AffineMap> &maps) {
  ElementRegion element = *ElementRegion::of(op);
  for (AffineMap map : element.inputMaps())
    maps.push_back(map.compose(out));
  if (op.getOutScale())
    maps.push_back(getScalarMap(out));
  maps.push_back(out);
  maps.append(element.firstExtra() - 1, getScalarMap(out));
  for (AffineMap map : element.extraMaps())
    maps.push_back(map.compose(out));
}

static void getMaps(MatmulOp op, SmallVectorImpl<AffineMap> &maps) {
  maps = op.getIndexingMapsArray();
  appendEpilogueMaps(op, maps.pop_back_val(), maps);
}

static void getMaps(ScaledMatmulOp op, SmallVectorImpl<AffineMap> &maps) {
  maps = op.getIndexingMapsArray();
  AffineMap out = maps.pop_back_val();
  maps.append({getScaleMap(maps[0], op.getLhsBlock()), getScaleMap(maps[1], op.getRhsBlock())});
  appendEpilogueMaps(op, out, maps);
}

static void getMaps(AmaxOp op, SmallVectorImpl<AffineMap> &maps) {
  ElementRegion element = *ElementRegion::of(op);
  AffineMap data = AffineMap::getMultiDimIdentityMap(element.numDims, op.getContext());
  llvm::append_range(maps, element.inputMaps());
  maps.push_back(getScalarMap(data));
  llvm::append_range(maps, element.extraMaps());
}

static void getMaps(QuantizeBlocksOp op, SmallVectorImpl<AffineMap> &maps) {
  ElementRegion element = *ElementRegion::of(op);
  AffineMap data = AffineMap::getMultiDimIdentityMap(element.numDims, op.getContext());
  llvm::append_range(maps, element.inputMaps());
  if (op.getRandom())
    maps.push_back(getFirstMap(data));
  for (unsigned i = 0; i < op.getNumDirections(); ++i) {
    AffineMap layout = data, scale = getScaleMap(data, op.getBlock(i));
    if (op.getTranspositions())
      layout = AffineMap::getPermutationMap(op.getTransposition(i), op.getContext());
    maps.append({layout, layout.compose(scale)});
  }
  llvm::append_range(maps, element.extraMaps());
}

/// Returns one map per operand.
static SmallVector<AffineMap> getMaps(Operation *operation) {
  SmallVector<AffineMap> maps;
  llvm::TypeSwitch<Operation *>(operation)
      .Case<MatmulOp, ScaledMatmulOp, QuantizeOp, QuantizeBlocksOp, AmaxOp>(
          [&](auto op) { getMaps(op, maps); })
      .Case([&](DequantizeOp op) {
        AffineMap data = identityOf(op.getData());
        maps = {data, getScaleMap(data, op.getBlock()), data};
      })
      .Case([&](ComputeScaleOp op) { maps.append(2, identityOf(op.getAmax())); });
  return maps;
}

TilingSpace::TilingSpace(Operation *op) : op(cast<DestinationStyleOpInterface>(op)), maps(getMaps(op)) {}

//===----------------------------------------------------------------------===//
// Dimensions that can be tiled
//===----------------------------------------------------------------------===//

SmallVector<std::pair<Value, int64_t>> TilingSpace::getOperandDims(unsigned dim) {
  SmallVector<std::pair<Value, int64_t>> dims;
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), maps))
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (expr == getAffineDimExpr(dim, op.getContext()))
        dims.emplace_back(operand, position);
  return dims;
}

OpFoldResult TilingSpace::getSize(OpBuilder &builder, unsigned dim) {
  SmallVector<std::pair<Value, int64_t>> operandDims = getOperandDims(dim);
  for (auto [value, position] : operandDims)
    if (int64_t size = cast<ShapedType>(value.getType()).getDimSize(position); !ShapedType::isDynamic(size))
      return builder.getIndexAttr(size);
  auto [value, position] = operandDims.front();
  return linalg::createFoldedDimOp(builder, op.getLoc(), value, position);
}

std::optional<unsigned> TilingSpace::getReducedResult(unsigned dim) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    unsigned result = init.getOperandNumber() - getInit(0).getOperandNumber();
    // scale_inv depends on the scale only, so every tile writes the same value.
    auto quantize = dyn_cast<QuantizeOp>(op.getOperation());
    if (quantize && result == quantize.getScaleInvIndex())
      continue;
    if (!maps[init.getOperandNumber()].isFunctionOfDim(dim))
      return result;
  }
  return std::nullopt;
}

bool TilingSpace::isWhole(unsigned dim, OpFoldResult size) {
  return !size || llvm::any_of(getOperandDims(dim), [&](auto operandDim) {
    auto [operand, position] = operandDim;
    return ValueBoundsConstraintSet::areEqual(size, {operand, position}).value_or(false);
  });
}

/// Returns whether `value` is known to be a multiple of `factor`: a constant, the induction variable
/// of a loop with such a lower bound and step, or an affine.apply.
static bool isMultipleOf(OpFoldResult value, int64_t factor) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % factor == 0;
  if (auto apply = cast<Value>(value).getDefiningOp<affine::AffineApplyOp>())
    return apply.getAffineMap().getResult(0).isMultipleOf(factor);
  auto argument = dyn_cast<BlockArgument>(cast<Value>(value));
  auto loop = argument ? dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp()) : nullptr;
  auto indices = loop ? loop.getLoopInductionVars() : std::nullopt;
  auto begins = loop ? loop.getLoopLowerBounds() : std::nullopt,
       steps = loop ? loop.getLoopSteps() : std::nullopt;
  if (!indices || !begins || !steps)
    return false;
  auto *found = llvm::find(*indices, argument);
  size_t position = found - indices->begin();
  return found != indices->end() && isMultipleOf((*begins)[position], factor) &&
         isMultipleOf((*steps)[position], factor);
}

/// Returns whether `op` is a cast with random bits.
static bool isStochastic(Operation *op) {
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    return bool(quantize.getRandom());
  auto blocks = dyn_cast<QuantizeBlocksOp>(op);
  return blocks && blocks.getRandom();
}

std::string TilingSpace::findObstacle(ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (unsigned dim = 0; dim < getNumDims(); ++dim)
    if (isInRow(dim) && !isWhole(dim, sizes[dim])) {
      out << "cannot be tiled along dimension d" << dim
          << ", which is in `rows`; leave that dimension whole (tile size 0)";
      return text;
    }
  for (unsigned dim = 0; dim < getNumDims(); ++dim)
    if (std::optional<unsigned> result = getReducedResult(dim); result && !isWhole(dim, sizes[dim])) {
      out << "cannot be tiled along dimension d" << dim << ": its result #" << *result
          << " is reduced over it; leave that dimension whole (tile size 0)";
      return text;
    }
  auto isAllWhole = [&] {
    return llvm::all_of(llvm::seq(getNumDims()), [&](unsigned dim) { return isWhole(dim, sizes[dim]); });
  };
  if (llvm::any_of(op->getRegions(), [](Region &region) { return !region.getOps<IndexOp>().empty(); }) &&
      !isAllWhole())
    return "cannot be tiled: its region reads fp8.index, which counts in the whole tensor, not in a tile";
  if (isStochastic(op) && !isAllWhole())
    return "cannot be tiled: its random bits depend on the number of an element in the whole tensor";
  for (auto [number, map] : llvm::enumerate(maps))
    for (AffineExpr expr : map.getResults()) {
      if (isa<AffineDimExpr>(expr) || expr == getAffineConstantExpr(0, op.getContext()))
        continue;
      auto block = dyn_cast<AffineBinaryOpExpr>(expr);
      auto dim = block ? dyn_cast<AffineDimExpr>(block.getLHS()) : nullptr;
      auto extent = block ? dyn_cast<AffineConstantExpr>(block.getRHS()) : nullptr;
      if (!dim || !extent || block.getKind() != AffineExprKind::FloorDiv) {
        out << "cannot be tiled: its operand #" << number << " is read at " << expr
            << ", which is neither a dimension nor a block of one";
        return text;
      }
      OpFoldResult offset = offsets[dim.getPosition()], size = sizes[dim.getPosition()];
      if (isWhole(dim.getPosition(), size) ||
          (isMultipleOf(offset, extent.getValue()) && isMultipleOf(size, extent.getValue())))
        continue;
      out << "cannot be tiled along dimension " << dim << " through the blocks of operand #" << number
          << "; give it a tile size that divides the dimension and is a multiple of " << extent;
      return text;
    }
  return text;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LogicalResult TilingSpace::getTileOfResult(unsigned result, ArrayRef<OpFoldResult> resultOffsets,
                                           ArrayRef<OpFoldResult> resultSizes,
                                           SmallVectorImpl<OpFoldResult> &offsets,
                                           SmallVectorImpl<OpFoldResult> &sizes) {
  AffineMap map = maps[getInit(result).getOperandNumber()];
  if (!map.isProjectedPermutation())
    return failure();
  offsets.assign(getNumDims(), OpFoldResult());
  sizes.assign(getNumDims(), OpFoldResult());
  for (unsigned position = 0; position < map.getNumResults(); ++position) {
    offsets[map.getDimPosition(position)] = resultOffsets[position];
    sizes[map.getDimPosition(position)] = resultSizes[position];
  }
  return success(findObstacle(offsets, sizes).empty());
}

void TilingSpace::fillInWhole(OpBuilder &builder, SmallVectorImpl<OpFoldResult> &offsets,
                              SmallVectorImpl<OpFoldResult> &sizes) {
  for (unsigned dim = 0; dim < getNumDims(); ++dim)
    if (!sizes[dim]) {
      offsets[dim] = builder.getIndexAttr(0);
      sizes[dim] = getSize(builder, dim);
    }
}

/// Returns the last index of each dimension of a tile, from which upstream computes slice sizes.
static SmallVector<OpFoldResult> getLastIndices(OpBuilder &builder, Location loc,
                                                ArrayRef<OpFoldResult> sizes) {
  AffineExpr last = getAffineSymbolExpr(0, builder.getContext()) - 1;
  return llvm::map_to_vector(sizes, [&](OpFoldResult size) {
    return affine::makeComposedFoldedAffineApply(builder, loc, last, size);
  });
}

linalg::SliceParameters TilingSpace::getSlice(OpBuilder &builder, OpOperand &operand,
                                              ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  return linalg::computeSliceParameters(builder, op.getLoc(), operand.get(), sizes,
                                        maps[operand.getOperandNumber()], offsets, /*ubs=*/{},
                                        getLastIndices(builder, op.getLoc(), sizes),
                                        /*omitPartialTileCheck=*/true);
}

/// Adds the offsets of the tile to the row indices, which are relative to the whole tensor.
static void offsetRowIndices(OpBuilder &builder, Operation *tiled, ArrayRef<OpFoldResult> offsets) {
  std::optional<ElementRegion> element = ElementRegion::of(tiled);
  if (!element || element->rows.empty())
    return;
  OpBuilder::InsertionGuard guard(builder);
  Block &body = element->body();
  builder.setInsertionPointToStart(&body);
  for (auto [argument, dim] : llvm::zip(body.getArguments(), element->outerDims())) {
    if (argument.use_empty())
      continue;
    AffineExpr sum = builder.getAffineDimExpr(0) + builder.getAffineDimExpr(1);
    auto index = affine::makeComposedAffineApply(builder, tiled->getLoc(), sum, {argument, offsets[dim]});
    argument.replaceAllUsesExcept(index, index);
  }
}

TilingResult TilingSpace::tile(OpBuilder &builder, ArrayRef<OpFoldResult> offsets,
                               ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> lastIndices = getLastIndices(builder, op.getLoc(), sizes);
  SmallVector<Operation *> slices;
  SmallVector<Value> operands;
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), maps)) {
    operands.push_back(operand);
    if (map.getNumResults() == 0)
      continue;
    slices.push_back(linalg::makeTiledShape(builder, op.getLoc(), operand, sizes, map, offsets, /*ubs=*/{},
                                            lastIndices, /*omitPartialTileCheck=*/true));
    operands.back() = slices.back()->getResult(0);
  }
  Operation *tiled = builder.clone(*op);
  tiled->setOperands(operands);
  for (OpResult result : tiled->getOpResults())
    result.setType(operands[getInit(result.getResultNumber()).getOperandNumber()].getType());
  offsetRowIndices(builder, tiled, offsets);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}
