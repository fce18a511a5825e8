// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiling of the dialect by upstream. Every operation is described by one affine map per
// operand, from its iteration space to what an iteration reads or writes there; all else
// follows from the maps. A tile computes exactly what the whole computes there: dimensions
// that a result is reduced over stay whole, and blocks are never cut.

#include "fp8/Dialect/FP8/Transforms/TilingInterfaceImpl.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

//===----------------------------------------------------------------------===//
// Operations as maps
//===----------------------------------------------------------------------===//

static AffineMap identityOf(Value value) {
  return AffineMap::getMultiDimIdentityMap(cast<ShapedType>(value.getType()).getRank(), value.getContext());
}

/// Where the scale of the element at `data` is: dimensions of extent e count blocks of e.
static AffineMap getScaleMap(AffineMap data, std::optional<ArrayRef<int64_t>> block) {
  SmallVector<AffineExpr> entries;
  if (block)
    for (auto [expr, extent] : llvm::zip_equal(data.getResults(), *block))
      entries.push_back(extent == 0 ? getAffineConstantExpr(0, data.getContext()) : expr.floorDiv(extent));
  return AffineMap::get(data.getNumDims(), 0, entries, data.getContext());
}

static AffineMap getScalarMap(AffineMap data) { return getScaleMap(data, std::nullopt); }

static void getMaps(fp8::QuantizeOp op, SmallVectorImpl<AffineMap> &maps) {
  AffineMap data = identityOf(op.getOuts().front());
  AffineMap scale = getScaleMap(data, op.getBlock());
  fp8::ElementRegion element = *fp8::ElementRegion::of(op);
  llvm::append_range(maps, element.inputMaps());
  maps.append({scale, data});
  if (op.getTransposition())
    maps.push_back(AffineMap::getPermutationMap(*op.getTransposition(), op.getContext()));
  maps.push_back(scale);
  if (op.getRecordAmax())
    maps.push_back(getScalarMap(data));
  llvm::append_range(maps, element.extraMaps());
}

/// After the operands of a product: what its epilogue reads and writes; `out` is the result's map.
template <typename Product>
static void appendEpilogueMaps(Product op, AffineMap out, SmallVectorImpl<AffineMap> &maps) {
  fp8::ElementRegion element = *fp8::ElementRegion::of(op);
  for (AffineMap map : element.inputMaps())
    maps.push_back(map.compose(out));
  if (op.getOutScale())
    maps.push_back(getScalarMap(out));
  maps.push_back(out);
  maps.append(element.firstExtra() - 1, getScalarMap(out));
  for (AffineMap map : element.extraMaps())
    maps.push_back(map.compose(out));
}

static void getMaps(fp8::MatmulOp op, SmallVectorImpl<AffineMap> &maps) {
  maps = op.getIndexingMapsArray();
  appendEpilogueMaps(op, maps.pop_back_val(), maps);
}

static void getMaps(fp8::ScaledMatmulOp op, SmallVectorImpl<AffineMap> &maps) {
  maps = op.getIndexingMapsArray();
  AffineMap out = maps.pop_back_val();
  maps.append({getScaleMap(maps[0], op.getLhsBlock()), getScaleMap(maps[1], op.getRhsBlock())});
  appendEpilogueMaps(op, out, maps);
}

static void getMaps(fp8::AmaxOp op, SmallVectorImpl<AffineMap> &maps) {
  fp8::ElementRegion element = *fp8::ElementRegion::of(op);
  AffineMap data = AffineMap::getMultiDimIdentityMap(element.numDims, op.getContext());
  llvm::append_range(maps, element.inputMaps());
  maps.push_back(getScaleMap(data, op.getBlock()));
  llvm::append_range(maps, element.extraMaps());
}

/// One map per operand.
static SmallVector<AffineMap> getMaps(Operation *operation) {
  SmallVector<AffineMap> maps;
  llvm::TypeSwitch<Operation *>(operation)
      .Case<fp8::MatmulOp, fp8::ScaledMatmulOp, fp8::QuantizeOp, fp8::AmaxOp>(
          [&](auto op) { getMaps(op, maps); })
      .Case([&](fp8::DequantizeOp op) {
        AffineMap data = identityOf(op.getData());
        maps = {data, getScaleMap(data, op.getBlock()), data};
      })
      .Case([&](fp8::ComputeScaleOp op) { maps.append(2, identityOf(op.getAmax())); });
  return maps;
}

namespace {

/// What upstream asks about, for one operation: its iteration space and a tile of it.
class Space {
public:
  explicit Space(Operation *op) : op(cast<DestinationStyleOpInterface>(op)), maps(getMaps(op)) {}

  unsigned getNumDims() { return maps.front().getNumDims(); }
  /// Whether dimension `dim` belongs to rows, which are computed whole.
  bool isInRow(unsigned dim) {
    std::optional<fp8::ElementRegion> element = fp8::ElementRegion::of(op);
    return element && llvm::is_contained(element->rows, dim);
  }
  /// The result that dimension `dim` is reduced into, if there is one.
  std::optional<unsigned> getReducedResult(unsigned dim);
  /// Number of iterations of dimension `dim`.
  OpFoldResult getSize(OpBuilder &builder, unsigned dim);

  /// Why the tile cannot be computed on its own, empty where it can. No IR is made. A null
  /// size stands for the whole dimension.
  std::string findObstacle(ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes);
  /// The tile of the iteration space that computes a tile of a result; null offsets and sizes
  /// for dimensions that stay whole. Fails where no such tile can be computed on its own.
  LogicalResult getTileOfResult(unsigned result, ArrayRef<OpFoldResult> resultOffsets,
                                ArrayRef<OpFoldResult> resultSizes, SmallVectorImpl<OpFoldResult> &offsets,
                                SmallVectorImpl<OpFoldResult> &sizes);
  /// Replaces null offsets and sizes by those of the whole dimension.
  void fillInWhole(OpBuilder &builder, SmallVectorImpl<OpFoldResult> &offsets,
                   SmallVectorImpl<OpFoldResult> &sizes);

  linalg::SliceParameters getSlice(OpBuilder &builder, OpOperand &operand, ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes);
  OpOperand &getInit(unsigned result) { return *op.getDpsInitOperand(result); }
  TilingResult tile(OpBuilder &builder, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes);

private:
  /// Operand dimensions that run through iteration dimension `dim`.
  SmallVector<std::pair<Value, int64_t>> getOperandDims(unsigned dim);
  bool isWhole(unsigned dim, OpFoldResult size);

  DestinationStyleOpInterface op;
  SmallVector<AffineMap> maps;
};

} // namespace

//===----------------------------------------------------------------------===//
// What can be tiled
//===----------------------------------------------------------------------===//

SmallVector<std::pair<Value, int64_t>> Space::getOperandDims(unsigned dim) {
  SmallVector<std::pair<Value, int64_t>> dims;
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), maps))
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (expr == getAffineDimExpr(dim, op.getContext()))
        dims.emplace_back(operand, position);
  return dims;
}

OpFoldResult Space::getSize(OpBuilder &builder, unsigned dim) {
  SmallVector<std::pair<Value, int64_t>> operandDims = getOperandDims(dim);
  for (auto [value, position] : operandDims)
    if (int64_t size = cast<ShapedType>(value.getType()).getDimSize(position); !ShapedType::isDynamic(size))
      return builder.getIndexAttr(size);
  auto [value, position] = operandDims.front();
  return linalg::createFoldedDimOp(builder, op.getLoc(), value, position);
}

std::optional<unsigned> Space::getReducedResult(unsigned dim) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    unsigned result = init.getOperandNumber() - getInit(0).getOperandNumber();
    // scale_inv follows from the scale alone: every tile writes the same.
    auto quantize = dyn_cast<fp8::QuantizeOp>(op.getOperation());
    if (quantize && result == quantize.getScaleInvIndex())
      continue;
    if (!maps[init.getOperandNumber()].isFunctionOfDim(dim))
      return result;
  }
  return std::nullopt;
}

bool Space::isWhole(unsigned dim, OpFoldResult size) {
  return !size || llvm::any_of(getOperandDims(dim), [&](auto operandDim) {
    auto [operand, position] = operandDim;
    return ValueBoundsConstraintSet::areEqual(size, {operand, position}).value_or(false);
  });
}

/// Whether `value` is known to be a multiple: a constant, an index that a loop counts in
/// multiples, or computed from one by an affine map.
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
  auto found = llvm::find(*indices, argument);
  size_t position = found - indices->begin();
  return found != indices->end() && isMultipleOf((*begins)[position], factor) &&
         isMultipleOf((*steps)[position], factor);
}

std::string Space::findObstacle(ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
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
  if (llvm::any_of(op->getRegions(), [](Region &region) { return !region.getOps<fp8::IndexOp>().empty(); }) &&
      !isAllWhole())
    return "cannot be tiled: its region reads an index, which is that in the whole tensor";
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

LogicalResult Space::getTileOfResult(unsigned result, ArrayRef<OpFoldResult> resultOffsets,
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

void Space::fillInWhole(OpBuilder &builder, SmallVectorImpl<OpFoldResult> &offsets,
                        SmallVectorImpl<OpFoldResult> &sizes) {
  for (unsigned dim = 0; dim < getNumDims(); ++dim)
    if (!sizes[dim]) {
      offsets[dim] = builder.getIndexAttr(0);
      sizes[dim] = getSize(builder, dim);
    }
}

/// The last index of each dimension of a tile, which upstream maps to sizes of slices.
static SmallVector<OpFoldResult> getLastIndices(OpBuilder &builder, Location loc,
                                                ArrayRef<OpFoldResult> sizes) {
  AffineExpr last = getAffineSymbolExpr(0, builder.getContext()) - 1;
  return llvm::map_to_vector(sizes, [&](OpFoldResult size) {
    return affine::makeComposedFoldedAffineApply(builder, loc, last, size);
  });
}

linalg::SliceParameters Space::getSlice(OpBuilder &builder, OpOperand &operand,
                                        ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  return linalg::computeSliceParameters(builder, op.getLoc(), operand.get(), sizes,
                                        maps[operand.getOperandNumber()], offsets, /*ubs=*/{},
                                        getLastIndices(builder, op.getLoc(), sizes),
                                        /*omitPartialTileCheck=*/true);
}

/// The indices that a region on rows starts with count from the start of the whole, not of the tile.
static void offsetRowIndices(OpBuilder &builder, Operation *tiled, ArrayRef<OpFoldResult> offsets) {
  std::optional<fp8::ElementRegion> element = fp8::ElementRegion::of(tiled);
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

TilingResult Space::tile(OpBuilder &builder, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
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

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {

template <typename Op>
struct TilingModel : TilingInterface::ExternalModel<TilingModel<Op>, Op> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    Space space(op);
    return llvm::map_to_vector(llvm::seq(space.getNumDims()), [&](unsigned dim) {
      return space.isInRow(dim) || space.getReducedResult(dim) ? utils::IteratorType::reduction
                                                               : utils::IteratorType::parallel;
    });
  }

  SmallVector<Range> getIterationDomain(Operation *op, OpBuilder &builder) const {
    Space space(op);
    return llvm::map_to_vector(llvm::seq(space.getNumDims()), [&](unsigned dim) {
      return Range{builder.getIndexAttr(0), space.getSize(builder, dim), builder.getIndexAttr(1)};
    });
  }

  FailureOr<TilingResult> getTiledImplementation(Operation *op, OpBuilder &builder,
                                                 ArrayRef<OpFoldResult> offsets,
                                                 ArrayRef<OpFoldResult> sizes) const {
    Space space(op);
    std::string obstacle = space.findObstacle(offsets, sizes);
    if (!obstacle.empty())
      return op->emitOpError(obstacle);
    return space.tile(builder, offsets, sizes);
  }

  LogicalResult getResultTilePosition(Operation *op, OpBuilder &builder, unsigned result,
                                      ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                                      SmallVector<OpFoldResult> &resultOffsets,
                                      SmallVector<OpFoldResult> &resultSizes) const {
    Space space(op);
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
    Space space(op);
    if (failed(space.getTileOfResult(result, resultOffsets, resultSizes, offsets, sizes)))
      return failure();
    space.fillInWhole(builder, offsets, sizes);
    return success();
  }

  // Fusion is an offer: where a tile cannot be had, the operation stays whole, and no error is due.
  FailureOr<TilingResult> generateResultTileValue(Operation *op, OpBuilder &builder, unsigned result,
                                                  ArrayRef<OpFoldResult> resultOffsets,
                                                  ArrayRef<OpFoldResult> resultSizes) const {
    SmallVector<OpFoldResult> offsets, sizes;
    if (failed(getIterationDomainTileFromResultTile(op, builder, result, resultOffsets, resultSizes, offsets,
                                                    sizes)))
      return failure();
    TilingResult tiled = Space(op).tile(builder, offsets, sizes);
    tiled.tiledValues = {tiled.tiledValues[result]};
    return tiled;
  }

  bool isOpFusableWithConsumerSlice(Operation *op, unsigned result, ArrayRef<OpFoldResult> resultOffsets,
                                    ArrayRef<OpFoldResult> resultSizes) const {
    SmallVector<OpFoldResult> offsets, sizes;
    return succeeded(Space(op).getTileOfResult(result, resultOffsets, resultSizes, offsets, sizes));
  }
};

template <typename... Ops>
void attachTo(MLIRContext *context) {
  (Ops::template attachInterface<TilingModel<Ops>>(*context), ...);
}

} // namespace

void fp8::registerTilingInterfaceExternalModels(DialectRegistry &registry) {
  // Two sizes known only at run time are compared by what they are computed from.
  tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  memref::registerValueBoundsOpInterfaceExternalModels(registry);
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    // Positions of tiles are computed with affine.apply.
    context->loadDialect<affine::AffineDialect>();
    attachTo<MatmulOp, ScaledMatmulOp, QuantizeOp, DequantizeOp, AmaxOp, ComputeScaleOp>(context);
  });
}
