// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts stacked weights as a whole: a loop over layers, which casts the slice of each, reads slices of the
// FP8 bytes instead. A slice of the bytes is the bytes of the slice, as a cast has one scale for all slices,
// or scales of blocks within each. A slice with a scale of its own is one block.

#include "ParameterCasts.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fp8;

namespace {
/// A cast of a slice of a stack of weights.
struct SliceCast {
  Operation *op;
  scf::ForOp loop;
  tensor::ExtractSliceOp slice;
  SmallVector<Operation *>
      steps; ///< from the cast to the slice: elementwise code, and reshapes to its matrix
};
} // namespace

static RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns whether `op` computes each element of its result from one of its only input, by one operation: it
/// rounds them, as a rule.
static bool isElementwise(Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic->getNumResults() == 1 && generic.getNumDpsInputs() == 1 &&
           generic.getNumParallelLoops() == generic.getNumLoops() &&
           llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }) &&
           llvm::hasNItems(*generic.getBody(), 2) && isMemoryEffectFree(&generic.getBody()->front()) &&
           llvm::equal(generic.getBody()->front().getOperands(), generic.getRegionInputArgs());
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 1 && op->getNumResults() == 1;
}

/// Returns whether `slice` takes one whole slice along the first dimension of a stack of known size.
static bool isOfStack(tensor::ExtractSliceOp slice) {
  auto source = slice.getSourceType();
  if (!source.hasStaticShape() || source.getRank() < 2 || !slice.hasUnitStride())
    return false;
  SmallVector<int64_t> sizes(source.getShape());
  sizes[0] = 1;
  return ArrayRef(slice.getStaticSizes()) == ArrayRef(sizes) &&
         llvm::all_of(slice.getStaticOffsets().drop_front(), [](int64_t offset) { return offset == 0; });
}

/// Returns whether `index` is the number of the iteration of `loop`, which has `count` of them, forwards or
/// backwards: then every slice comes once. JAX keeps indices within bounds, which changes none of these.
static bool countsIterations(Value index, scf::ForOp loop, int64_t count) {
  if (index == loop.getInductionVar())
    return true;
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<arith::IndexCastOp>(op))
    return countsIterations(op->getOperand(0), loop, count);
  if (!isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp, arith::SubIOp>(op))
    return false;
  std::optional<int64_t> left = getConstantIntValue(op->getOperand(0)),
                         right = getConstantIntValue(op->getOperand(1));
  if (isa<arith::SubIOp>(op))
    return left == count - 1 && countsIterations(op->getOperand(1), loop, count);
  bool isBound = right && (isa<arith::MaxSIOp>(op) ? *right <= 0 : *right >= count - 1);
  return isBound && countsIterations(op->getOperand(0), loop, count);
}

static bool castsEverySlice(const SliceCast &cast) {
  tensor::ExtractSliceOp slice = cast.slice;
  scf::ForOp loop = cast.loop;
  int64_t count = slice.getSourceType().getDimSize(0);
  auto is = [](Value bound, int64_t value) { return getConstantIntValue(bound) == value; };
  auto index = dyn_cast<Value>(slice.getMixedOffsets()[0]);
  return is(loop.getLowerBound(), 0) && is(loop.getUpperBound(), count) && is(loop.getStep(), 1) && index &&
         countsIterations(index, loop, count);
}

/// Returns whether `value` can be computed before `loop`: there already, or by one operation on what is.
static bool isInvariant(scf::ForOp loop, Value value) {
  auto isOutside = [&](Value v) { return loop.isDefinedOutsideOfLoop(v); };
  Operation *op = value.getDefiningOp();
  return isOutside(value) || (op && isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
                              llvm::all_of(op->getOperands(), isOutside));
}

/// Returns the operation that computes the scale of `cast` from the amax of the tensor that is cast, if that
/// is all that it does.
static ComputeScaleOp findOwnScale(QuantizeOp cast) {
  auto scale = cast.getScale().getDefiningOp<ComputeScaleOp>();
  auto amax = scale ? scale.getAmax().getDefiningOp<AmaxOp>() : AmaxOp();
  bool isOwn = amax && amax.getInputs() == cast.getInputs() && amax.getProducer().empty() &&
               !amax.getIndexingMaps() && amax->getNumResults() == 1 && !cast.getColumn() &&
               !cast.getRecordAmax() && scale.getFormat() == cast.getFormat();
  return isOwn ? scale : ComputeScaleOp();
}

/// Replaces a cast with a scale of its own by one with blocks, of which there is one, in each layout.
static Operation *castAsBlock(QuantizeOp cast, ComputeScaleOp scale) {
  OpBuilder builder(cast);
  Location loc = cast.getLoc();
  int64_t rank = getType(cast.getInputs()[0]).getRank();
  SmallVector<Attribute> orders{builder.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, rank)))};
  if (auto order = cast.getTransposition())
    orders.push_back(builder.getDenseI64ArrayAttr(*order));
  SmallVector<Attribute> blocks(orders.size(), builder.getDenseI64ArrayAttr(SmallVector<int64_t>(rank, 0)));
  SmallVector<Value> outs;
  for (Value data : cast.getOuts().take_front(orders.size())) {
    outs.push_back(data);
    outs.push_back(
        tensor::EmptyOp::create(builder, loc, SmallVector<int64_t>(rank, 1), builder.getF32Type()));
  }
  QuantizeBlocksParts parts(cast.getInputs(), scale.getRecipe(), builder.getArrayAttr(blocks), outs);
  parts.transpositions = builder.getArrayAttr(orders);
  parts.stream = cast.getStreamAttr();
  auto created = parts.create(builder, loc);
  created->setDiscardableAttrs(cast->getDiscardableAttrDictionary());
  cast->getResult(0).replaceAllUsesWith(created.getResult(0));
  if (int64_t transposed = cast.getDataTIndex(); transposed >= 0)
    cast->getResult(transposed).replaceAllUsesWith(created.getResult(2));
  Value scaleInv =
      tensor::CollapseShapeOp::create(builder, loc, created.getResult(1), ArrayRef<ReassociationIndices>());
  cast->getResult(cast.getScaleInvIndex()).replaceAllUsesWith(scaleInv);
  cast.erase();
  return created;
}

/// Returns the cast `op` as one of a slice of a stack from outside of its loop, if it is one.
static std::optional<SliceCast> match(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  if (!loop || op->getNumRegions() == 0 || !op->getRegion(0).empty())
    return std::nullopt;
  auto quantize = dyn_cast<QuantizeOp>(op);
  auto blocks = dyn_cast<QuantizeBlocksOp>(op);
  if ((quantize &&
       (quantize.getRandom() || (!isInvariant(loop, quantize.getScale()) && !findOwnScale(quantize)))) ||
      (blocks && (blocks.getRandom() || blocks->getNumResults() != 2 * blocks.getNumDirections())) ||
      (!quantize && !blocks))
    return std::nullopt;
  SliceCast cast{op, loop, {}, {}};
  Operation *step = (quantize ? quantize.getInputs() : blocks.getInputs())[0].getDefiningOp();
  for (; step && !cast.slice && step->getBlock() == op->getBlock();
       step = step->getOperand(0).getDefiningOp()) {
    auto collapse = dyn_cast<tensor::CollapseShapeOp>(step);
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(step))
      cast.slice = slice;
    else if (isElementwise(step) || (collapse && collapse.getSrcType().getShape().drop_front() ==
                                                     collapse.getResultType().getShape()))
      cast.steps.push_back(step);
    else
      return std::nullopt;
    if (cast.slice)
      break;
  }
  if (!cast.slice || !isOfStack(cast.slice) || !loop.isDefinedOutsideOfLoop(cast.slice.getSource()) ||
      getType(step->getResult(0)).getNumElements() == 0)
    return std::nullopt;
  // The cast must see the matrix of a slice, without the dimension that numbers slices.
  ArrayRef<int64_t> matrix = cast.slice.getSourceType().getShape().drop_front();
  if (getType(quantize ? quantize.getInputs()[0] : blocks.getInputs()[0]).getShape() != matrix)
    return std::nullopt;
  if (quantize && quantize.getRecordAmax() && !castsEverySlice(cast))
    return std::nullopt; // the amax would be that of other slices as well
  return cast;
}

/// Applies the elementwise `step` to all slices.
static Value repeatForStack(OpBuilder &builder, Operation *step, Value stack) {
  auto type = getType(stack).clone(getElementTypeOrSelf(step->getResult(0)));
  auto generic = dyn_cast<linalg::GenericOp>(step);
  if (!generic) {
    IRMapping mapping;
    mapping.map(step->getOperand(0), stack);
    Operation *copy = builder.clone(*step, mapping);
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }
  Location loc = step->getLoc();
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &inner, Location, ValueRange arguments) {
    IRMapping mapping;
    mapping.map(generic.getBody()->getArguments(), arguments);
    for (Operation &op : generic.getBody()->getOperations())
      inner.clone(op, mapping);
  };
  return linalg::GenericOp::create(builder, loc, type, stack, init, ArrayRef{identity, identity}, iterators,
                                   body)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// One cast of a stack for all casts of its slices
//===----------------------------------------------------------------------===//

static bool areEquivalent(Operation *a, Operation *b, bool withOperands) {
  return OperationEquivalence::isEquivalentTo(
      a, b,
      withOperands ? OperationEquivalence::exactValueMatch : OperationEquivalence::ignoreValueEquivalence,
      /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

/// Returns whether the results of both are of one cast of one stack.
static bool areOfOneCast(const SliceCast &a, const SliceCast &b) {
  tensor::ExtractSliceOp slices[] = {a.slice, b.slice};
  if (slices[0].getSource() != slices[1].getSource() || a.steps.size() != b.steps.size() ||
      !llvm::all_of(llvm::zip_equal(a.steps, b.steps), [](auto pair) {
        return areEquivalent(std::get<0>(pair), std::get<1>(pair), /*withOperands=*/false);
      }))
    return false;
  auto quantize = dyn_cast<QuantizeOp>(a.op), other = dyn_cast<QuantizeOp>(b.op);
  if (bool(quantize) != bool(other))
    return false;
  if (!quantize) {
    auto blocks = cast<QuantizeBlocksOp>(a.op), others = cast<QuantizeBlocksOp>(b.op);
    return blocks.getRecipe() == others.getRecipe() && blocks.getFormat() == others.getFormat();
  }
  Operation *scale = quantize.getScale().getDefiningOp(), *otherScale = other.getScale().getDefiningOp();
  return quantize.getFormat() == other.getFormat() && quantize.getColumnAttr() == other.getColumnAttr() &&
         (!quantize.getTransposition() || !other.getTransposition() ||
          quantize.getTransposition() == other.getTransposition()) &&
         (quantize.getScale() == other.getScale() ||
          (scale && otherScale && areEquivalent(scale, otherScale, /*withOperands=*/true)));
}

/// Returns `numbers`, which are per dimension of a slice, per dimension of a stack: `first` for the dimension
/// that numbers slices, the others grown by `add`.
static DenseI64ArrayAttr forStack(OpBuilder &builder, ArrayRef<int64_t> numbers, int64_t first, int64_t add) {
  SmallVector<int64_t> all{first};
  for (int64_t number : numbers)
    all.push_back(number + add);
  return builder.getDenseI64ArrayAttr(all);
}

namespace {
/// The casts of slices that become one cast of their stack.
class StackCast {
public:
  explicit StackCast(ArrayRef<SliceCast> casts)
      : casts(casts), first(casts.front()), builder(first.loop), loc(first.op->getLoc()) {
    tensor::ExtractSliceOp slice = first.slice;
    stack = slice.getSource();
    for (Operation *step : llvm::reverse(first.steps))
      if (!isa<tensor::CollapseShapeOp>(step))
        stack = repeatForStack(builder, step, stack);
  }

  void build() {
    isa<QuantizeOp>(first.op) ? buildQuantize() : buildBlocks();
    for (const SliceCast &cast : casts)
      cast.op->erase();
  }

private:
  Value createEmpty(ArrayRef<int64_t> shape, Type element) {
    return tensor::EmptyOp::create(builder, loc, shape, element);
  }
  void buildQuantize();
  void buildBlocks();
  void readSlice(const SliceCast &cast, unsigned result, Value whole);

  ArrayRef<SliceCast> casts;
  const SliceCast &first;
  OpBuilder builder;
  Location loc;
  Value stack;
};
} // namespace

/// Replaces a result of a cast of a slice by its part of that of the whole.
void StackCast::readSlice(const SliceCast &cast, unsigned result, Value whole) {
  Value own = cast.op->getResult(result);
  auto type = getType(own);
  if (type.getRank() == 0)
    return own.replaceAllUsesWith(whole);
  OpBuilder inside(cast.op);
  tensor::ExtractSliceOp slice = cast.slice;
  SmallVector<OpFoldResult> offsets(type.getRank() + 1, builder.getIndexAttr(0)),
      sizes{builder.getIndexAttr(1)}, strides(type.getRank() + 1, builder.getIndexAttr(1));
  offsets[0] = slice.getMixedOffsets()[0];
  llvm::append_range(sizes, getAsIndexOpFoldResult(builder.getContext(), type.getShape()));
  own.replaceAllUsesWith(
      tensor::ExtractSliceOp::create(inside, cast.op->getLoc(), type, whole, offsets, sizes, strides));
}

void StackCast::buildQuantize() {
  auto model = cast<QuantizeOp>(first.op);
  Value scale = model.getScale();
  scf::ForOp loop = first.loop;
  if (!loop.isDefinedOutsideOfLoop(scale))
    scale = builder.clone(*scale.getDefiningOp())->getResult(0);
  bool recordsAmax = false;
  DenseI64ArrayAttr order;
  for (const SliceCast &cast : casts) {
    auto quantize = mlir::cast<QuantizeOp>(cast.op);
    recordsAmax |= quantize.getRecordAmax();
    if (quantize.getTransposition())
      order = forStack(builder, *quantize.getTransposition(), 0, 1);
  }
  ArrayRef<int64_t> shape = getType(stack).getShape();
  SmallVector<Value> outs{createEmpty(shape, model.getFormat())};
  if (order)
    outs.push_back(createEmpty(applyPermutation(shape, order.asArrayRef()), model.getFormat()));
  for (int i = 0; i < (recordsAmax ? 2 : 1); ++i)
    outs.push_back(createEmpty({}, builder.getF32Type()));
  QuantizeParts parts(stack, scale, outs);
  parts.recordAmax = recordsAmax;
  parts.transposition = order;
  parts.column = model.getColumnAttr();
  parts.stream = model.getStreamAttr();
  auto created = parts.create(builder, loc);
  created->setDiscardableAttrs(model->getDiscardableAttrDictionary());
  for (const SliceCast &cast : casts) {
    auto quantize = mlir::cast<QuantizeOp>(cast.op);
    auto read = [&](int64_t own, int64_t whole) {
      if (own >= 0)
        readSlice(cast, own, created->getResult(whole));
    };
    read(0, 0);
    read(quantize.getDataTIndex(), created.getDataTIndex());
    read(quantize.getScaleInvIndex(), created.getScaleInvIndex());
    read(quantize.getAmaxIndex(), created.getAmaxIndex());
  }
}

void StackCast::buildBlocks() {
  auto model = cast<QuantizeBlocksOp>(first.op);
  int64_t rank = getType(stack).getRank();
  SmallVector<Attribute> blocks, orders;
  SmallVector<Value> outs;
  // Per cast and direction: the number of that direction in the whole.
  SmallVector<SmallVector<unsigned>> places;
  for (const SliceCast &cast : casts) {
    auto own = mlir::cast<QuantizeBlocksOp>(cast.op);
    places.emplace_back();
    for (unsigned i = 0; i < own.getNumDirections(); ++i) {
      Attribute block =
          forStack(builder, mlir::cast<DenseI64ArrayAttr>(own.getBlocks()[i]), /*first=*/1, /*add=*/0);
      Attribute order = builder.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
      if (own.getTranspositions())
        order = forStack(builder, mlir::cast<DenseI64ArrayAttr>((*own.getTranspositions())[i]), 0, 1);
      unsigned place = 0;
      while (place < blocks.size() && (blocks[place] != block || orders[place] != order))
        ++place;
      places.back().push_back(place);
      if (place < blocks.size())
        continue;
      blocks.push_back(block);
      orders.push_back(order);
      for (unsigned part : {0u, 1u}) {
        auto type = getType(own.getResult(2 * i + part));
        SmallVector<int64_t> shape{getType(stack).getDimSize(0)};
        llvm::append_range(shape, type.getShape());
        outs.push_back(createEmpty(shape, type.getElementType()));
      }
    }
  }
  QuantizeBlocksParts parts(stack, model.getRecipe(), builder.getArrayAttr(blocks), outs);
  parts.transpositions = builder.getArrayAttr(orders);
  parts.stream = model.getStreamAttr();
  auto created = parts.create(builder, loc);
  created->setDiscardableAttrs(model->getDiscardableAttrDictionary());
  for (auto [cast, ofCast] : llvm::zip_equal(casts, places))
    for (auto [direction, place] : llvm::enumerate(ofCast))
      for (unsigned part : {0u, 1u})
        readSlice(cast, 2 * direction + part, created.getResult(2 * place + part));
}

void fp8::castStacksOfWeights(func::FuncOp function) {
  SmallVector<SmallVector<SliceCast>> stacks;
  function.walk([&](Operation *op) {
    std::optional<SliceCast> cast = op->hasAttr(kWeightAttrName) ? match(op) : std::nullopt;
    if (!cast)
      return;
    auto quantize = dyn_cast<QuantizeOp>(op);
    if (quantize && !isInvariant(cast->loop, quantize.getScale()))
      cast->op = castAsBlock(quantize, findOwnScale(quantize));
    auto *same = llvm::find_if(stacks, [&](ArrayRef<SliceCast> others) {
      return others.front().loop->getBlock() == cast->loop->getBlock() &&
             llvm::all_of(others, [&](const SliceCast &other) { return areOfOneCast(other, *cast); });
    });
    if (same == stacks.end())
      stacks.push_back({*cast});
    else
      same->push_back(*cast);
  });
  for (ArrayRef<SliceCast> casts : stacks)
    StackCast(casts).build();
}
