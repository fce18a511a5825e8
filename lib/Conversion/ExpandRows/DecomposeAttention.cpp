// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decomposes attention, still on tensors, into matmuls and the code of rows between them: a loop over the
// rows or, where a row is too long for that, operations on all rows. It runs block by block of rows, so that
// scores of one block are in memory at a time. A gradient that is summed over rows of several blocks is an
// f32 tensor whose sums each block resumes, so that blocks change no bit.

#include "LiftRows.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_DECOMPOSEATTENTION
#include "fp8/Conversion/Passes.h.inc"

namespace {

/// Blocks of more rows are multiples of so many, to be whole tiles of a matmul.
constexpr int64_t kWholeRows = 64;

/// The number of keys that blocks are made for where it is not known.
constexpr int64_t kAssumedKeys = 2048;

/// A range of each dimension of the iteration space.
struct Box {
  SmallVector<OpFoldResult> offsets, sizes;
};

/// A tensor with its map from the iteration space.
struct Mapped {
  Value tensor;
  AffineMap map;
};

/// The part that a block of rows has of each outer dimension: one index of those before number `cut`, `size`
/// of that one, all of those after it.
struct Blocks {
  unsigned cut;
  int64_t size;
};

template <typename Op>
class Decomposer {
public:
  Decomposer(RewriterBase &rewriter, Op op)
      : rewriter(rewriter), loc(op.getLoc()), op(op), maps(op.getIndexingMapsArray()),
        outMaps(op.getOutMaps()), ranges(op.getStaticLoopRanges()), dims(op.getAttentionDims()) {}

  /// `blockElements`: the most scores in memory at a time, where a block has more than one row.
  LogicalResult run(int64_t blockElements);

private:
  static constexpr bool isGrad = Op::kNumProducts == 5;

  OpFoldResult sizeOf(unsigned dim);
  SmallVector<unsigned> scoreDims() const;
  AffineMap selectDims(ArrayRef<unsigned> selected) const;
  int64_t countRowElements() const;
  bool fitsLoop();

  std::optional<Blocks> chooseBlocks(int64_t blockElements) const;
  bool isSplit(unsigned dim) const;
  bool isSummedOverBlocks(AffineMap map) const;
  bool canResume(unsigned result);

  Value slice(OpBuilder &b, const Mapped &mapped, const Box &box);
  Value insert(OpBuilder &b, Value part, const Mapped &mapped, const Box &box);
  Value emptyScores(OpBuilder &b, Type element, const Box &box);
  Value multiply(OpBuilder &b, unsigned number, const Mapped &lhs, const Mapped &rhs, const Mapped &out,
                 bool resume);
  Value multiplyScores(OpBuilder &b, unsigned number, unsigned lhs, unsigned rhs, Type element,
                       const Box &box);
  Value multiplyInto(OpBuilder &b, unsigned number, const Mapped &scores, unsigned operand, unsigned result,
                     Value out, const Box &box);

  SmallVector<Value> runRow(OpBuilder &b, ValueRange position, ArrayRef<Value> products, const Box &box);
  SmallVector<Value> runRows(OpBuilder &b, ArrayRef<Value> products, ValueRange further, const Box &box);
  AffineMap mapToPart(AffineMap map) const;
  FailureOr<SmallVector<Value>> liftRows(OpBuilder &b, ArrayRef<Value> products, ValueRange further,
                                         const Box &box);
  SmallVector<Value> runBlock(OpBuilder &b, ValueRange outs, const Box &box);
  SmallVector<Value> runOuter(OpBuilder &b, unsigned outer, ValueRange outs, Box box);
  SmallVector<Value> runCut(OpBuilder &b, ValueRange outs, Box box);
  SmallVector<Value> buildLoop(OpBuilder &b, OpFoldResult end, int64_t step, ValueRange outs,
                               function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)> body);
  Value begin(unsigned result);
  Value finish(unsigned result, Value sums);

  RewriterBase &rewriter;
  Location loc;
  Op op;
  SmallVector<AffineMap> maps, outMaps;
  SmallVector<int64_t> ranges;
  AttentionDims dims;
  std::optional<Blocks> blocks; ///< none: all rows are one block
  bool isLoop = true;           ///< whether a loop runs the code of the rows
  bool hasFailed = false;
};

//===----------------------------------------------------------------------===//
// Dimensions and blocks
//===----------------------------------------------------------------------===//

template <typename Op>
OpFoldResult Decomposer<Op>::sizeOf(unsigned dim) {
  if (!ShapedType::isDynamic(ranges[dim]))
    return rewriter.getIndexAttr(ranges[dim]);
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), maps))
    if (std::optional<unsigned> position = map.getResultPosition(rewriter.getAffineDimExpr(dim)))
      return tensor::getMixedSize(rewriter, loc, operand, *position);
  llvm_unreachable("verified: every dimension is one of an operand");
}

/// Returns the dimensions of the scores in their tensors, in which rows are contiguous.
template <typename Op>
SmallVector<unsigned> Decomposer<Op>::scoreDims() const {
  SmallVector<unsigned> all(dims.outer);
  llvm::append_range(all, dims.keys);
  return all;
}

template <typename Op>
AffineMap Decomposer<Op>::selectDims(ArrayRef<unsigned> selected) const {
  SmallVector<AffineExpr> exprs =
      llvm::map_to_vector(selected, [&](unsigned dim) { return rewriter.getAffineDimExpr(dim); });
  return AffineMap::get(ranges.size(), 0, exprs, rewriter.getContext());
}

template <typename Op>
int64_t Decomposer<Op>::countRowElements() const {
  int64_t count = 1;
  for (unsigned dim : dims.keys)
    count *= ShapedType::isDynamic(ranges[dim]) ? kAssumedKeys : ranges[dim];
  return count;
}

/// Returns whether a loop over rows can have the temporaries of a row: of known size, and within the target's
/// limit.
template <typename Op>
bool Decomposer<Op>::fitsLoop() {
  int64_t bytes = 0;
  for (Operation &inner : op.getRows().front())
    for (Type type : inner.getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (tensor && !tensor.hasStaticShape())
        return false;
      if (tensor && isa<linalg::LinalgOp>(inner) && !isa<linalg::FillOp>(inner))
        bytes += llvm::divideCeil(tensor.getNumElements() * tensor.getElementTypeBitWidth(), 8);
    }
  return bytes <= getTarget(op).getMaxRowBytes() &&
         llvm::none_of(dims.keys, [&](unsigned dim) { return ShapedType::isDynamic(ranges[dim]); });
}

/// Chooses blocks of whole outer dimensions from the last one on, and of a part of the next. Returns nullopt
/// if they can be one block.
template <typename Op>
std::optional<Blocks> Decomposer<Op>::chooseBlocks(int64_t blockElements) const {
  if (blockElements == std::numeric_limits<int64_t>::max())
    return std::nullopt;
  int64_t most = std::max<int64_t>(1, blockElements / std::max<int64_t>(countRowElements(), 1));
  for (unsigned i = dims.outer.size(); i-- > 0;) {
    int64_t size = ranges[dims.outer[i]];
    if (ShapedType::isDynamic(size))
      return Blocks{i, most};
    if (size > most) {
      int64_t even = llvm::divideCeil(size, llvm::divideCeil(size, most));
      int64_t whole = llvm::alignTo(even, kWholeRows);
      return Blocks{i, whole <= most ? whole : even};
    }
    most /= std::max<int64_t>(size, 1);
  }
  return std::nullopt;
}

/// Returns whether several blocks divide an outer dimension among them.
template <typename Op>
bool Decomposer<Op>::isSplit(unsigned dim) const {
  const auto *found = llvm::find(dims.outer, dim);
  if (!blocks || found == dims.outer.end() || found - dims.outer.begin() > blocks->cut)
    return false;
  bool isCut = found - dims.outer.begin() == blocks->cut;
  return ShapedType::isDynamic(ranges[dim]) || ranges[dim] > (isCut ? blocks->size : 1);
}

/// Returns whether a result with this map has summands from several blocks.
template <typename Op>
bool Decomposer<Op>::isSummedOverBlocks(AffineMap map) const {
  return llvm::any_of(dims.outer, [&](unsigned dim) { return !map.isFunctionOfDim(dim) && isSplit(dim); });
}

/// Returns whether blocks take the summands of a gradient in the order of the iteration space, and a matmul
/// can resume their sums.
template <typename Op>
bool Decomposer<Op>::canResume(unsigned result) {
  auto isWide = [](Value value) { return getElementTypeOrSelf(value).isF64(); };
  if (llvm::any_of(op->getOperands(), isWide) || llvm::any_of(op.getYield()->getOperands(), isWide) ||
      getElementTypeOrSelf(op.getOuts()[result]).getIntOrFloatBitWidth() < 16)
    return false;
  bool afterWhole = false;
  for (unsigned dim : llvm::seq<unsigned>(ranges.size())) {
    if (outMaps[result].isFunctionOfDim(dim) || !llvm::is_contained(scoreDims(), dim))
      continue;
    if (afterWhole && isSplit(dim))
      return false;
    afterWhole |= !isSplit(dim) && ranges[dim] != 1;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Returns the part of a tensor at `box`.
template <typename Op>
Value Decomposer<Op>::slice(OpBuilder &b, const Mapped &mapped, const Box &box) {
  SmallVector<OpFoldResult> offsets, sizes, strides(mapped.map.getNumResults(), b.getIndexAttr(1));
  for (AffineExpr expr : mapped.map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    offsets.push_back(dim ? box.offsets[dim.getPosition()]
                          : b.getIndexAttr(cast<AffineConstantExpr>(expr).getValue()));
    sizes.push_back(dim ? box.sizes[dim.getPosition()] : OpFoldResult(b.getIndexAttr(1)));
  }
  return tensor::ExtractSliceOp::create(b, loc, mapped.tensor, offsets, sizes, strides);
}

template <typename Op>
Value Decomposer<Op>::insert(OpBuilder &b, Value part, const Mapped &mapped, const Box &box) {
  auto source = slice(b, mapped, box).template getDefiningOp<tensor::ExtractSliceOp>();
  Value inserted = tensor::InsertSliceOp::create(b, loc, part, mapped.tensor, source.getMixedOffsets(),
                                                 source.getMixedSizes(), source.getMixedStrides());
  if (source->use_empty())
    source->erase();
  return inserted;
}

template <typename Op>
Value Decomposer<Op>::emptyScores(OpBuilder &b, Type element, const Box &box) {
  SmallVector<OpFoldResult> sizes =
      llvm::map_to_vector(scoreDims(), [&](unsigned dim) { return box.sizes[dim]; });
  return tensor::EmptyOp::create(b, loc, sizes, element);
}

/// Creates product `number`, in the dimensions that its tensors have.
template <typename Op>
Value Decomposer<Op>::multiply(OpBuilder &b, unsigned number, const Mapped &lhs, const Mapped &rhs,
                               const Mapped &out, bool resume) {
  llvm::SmallBitVector unused(ranges.size());
  for (unsigned dim : llvm::seq<unsigned>(ranges.size()))
    if (!lhs.map.isFunctionOfDim(dim) && !rhs.map.isFunctionOfDim(dim))
      unused.set(dim);
  SmallVector<AffineMap> ofProduct =
      llvm::map_to_vector(ArrayRef{lhs.map, rhs.map, out.map},
                          [&](AffineMap map) { return projectDims(map, unused, /*compressDimsFlag=*/true); });
  MatmulSiteAttr site;
  if (op.getSites())
    site = cast<MatmulSiteAttr>((*op.getSites())[number]);
  MLIRContext *context = op.getContext();
  auto kind = [&](TensorKind value) { return site ? TensorKindAttr::get(context, value) : TensorKindAttr(); };
  return MatmulOp::create(
             b, loc, out.tensor.getType(), lhs.tensor, rhs.tensor, /*epilogue_inputs=*/ValueRange(),
             /*out_scale=*/Value(), out.tensor, b.getAffineMapArrayAttr(ofProduct),
             site ? site.getSite() : StringAttr(), site ? RoleAttr::get(context, site.getRole()) : RoleAttr(),
             kind(site ? site.getLhsKind() : TensorKind::input),
             kind(site ? site.getRhsKind() : TensorKind::input), RecipeAttrInterface(),
             site ? site.getKept() : StringAttr(), /*accumulate=*/UnitAttr(), DenseI64ArrayAttr(),
             /*epilogue_maps=*/ArrayAttr(), resume ? b.getUnitAttr() : UnitAttr())
      .getResult(0);
}

/// Creates the product of two operands whose sums are scores of the block.
template <typename Op>
Value Decomposer<Op>::multiplyScores(OpBuilder &b, unsigned number, unsigned lhs, unsigned rhs, Type element,
                                     const Box &box) {
  Mapped left{slice(b, {op->getOperand(lhs), maps[lhs]}, box), maps[lhs]};
  Mapped right{slice(b, {op->getOperand(rhs), maps[rhs]}, box), maps[rhs]};
  return multiply(b, number, left, right, {emptyScores(b, element, box), selectDims(scoreDims())},
                  /*resume=*/false);
}

/// Creates the product of the block's `scores` and an operand, as the block's part of a result, or as the
/// sums so far of such a part. Returns `out` with the part.
template <typename Op>
Value Decomposer<Op>::multiplyInto(OpBuilder &b, unsigned number, const Mapped &scores, unsigned operand,
                                   unsigned result, Value out, const Box &box) {
  Mapped whole{out, outMaps[result]};
  Mapped factor{slice(b, {op->getOperand(operand), maps[operand]}, box), maps[operand]};
  Mapped part{slice(b, whole, box), outMaps[result]};
  Value product = multiply(b, number, scores, factor, part, isSummedOverBlocks(outMaps[result]));
  return insert(b, product, whole, box);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Copies the code of the row at `position` of the block. Returns what it yields.
template <typename Op>
SmallVector<Value> Decomposer<Op>::runRow(OpBuilder &b, ValueRange position, ArrayRef<Value> products,
                                          const Box &box) {
  SmallVector<OpFoldResult> indices(ranges.size(), b.getIndexAttr(0)), inBlock(indices);
  AffineExpr sum = b.getAffineDimExpr(0) + b.getAffineDimExpr(1);
  IRMapping mapping;
  Block &body = op.getRows().front();
  for (auto [argument, dim, index] : llvm::zip(body.getArguments(), dims.outer, position)) {
    inBlock[dim] = index;
    indices[dim] = affine::makeComposedFoldedAffineApply(b, loc, sum, {box.offsets[dim], index});
    mapping.map(argument, getValueOrCreateConstantIndexOp(b, loc, indices[dim]));
  }
  auto readPart = [&](Value tensor, AffineMap map, ArrayRef<OpFoldResult> at, Type type) -> Value {
    SmallVector<OpFoldResult> offsets, sizes, strides(map.getNumResults(), b.getIndexAttr(1));
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      bool isKey = dim && llvm::is_contained(dims.keys, dim.getPosition());
      offsets.push_back(
          affine::makeComposedFoldedAffineApply(b, loc, AffineMap::get(ranges.size(), 0, expr), at));
      sizes.push_back(b.getIndexAttr(isKey ? ranges[dim.getPosition()] : 1));
    }
    auto row = dyn_cast<RankedTensorType>(type);
    if (!row)
      return tensor::ExtractOp::create(b, loc, tensor, getValueOrCreateConstantIndexOp(b, loc, offsets));
    return tensor::ExtractSliceOp::create(b, loc, row, tensor, offsets, sizes, strides);
  };
  AffineMap scores = selectDims(scoreDims());
  for (auto [i, product] : llvm::enumerate(products)) {
    BlockArgument argument = op.getProductRow(i);
    mapping.map(argument, readPart(product, scores, inBlock, argument.getType()));
  }
  for (auto [i, input, map] : llvm::enumerate(op.getInputs(), op.getInputMaps())) {
    BlockArgument argument = op.getInputPart(i);
    mapping.map(argument, readPart(input, map, indices, argument.getType()));
  }
  for (Operation &inner : body.without_terminator())
    b.clone(inner, mapping);
  return llvm::map_to_vector(op.getYield()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Runs the rows of the block. Returns the rows that products read, as tensors of the block, then `further`
/// results with the parts of the block.
template <typename Op>
SmallVector<Value> Decomposer<Op>::runRows(OpBuilder &b, ArrayRef<Value> products, ValueRange further,
                                           const Box &box) {
  SmallVector<Value> shared;
  for (unsigned i = 0; i < Op::kNumProductRows; ++i)
    shared.push_back(emptyScores(b, getElementTypeOrSelf(op.getYield()->getOperand(i)), box));
  llvm::append_range(shared, further);
  SmallVector<OpFoldResult> counts =
      llvm::map_to_vector(dims.outer, [&](unsigned dim) { return box.sizes[dim]; });
  auto loop = scf::ForallOp::create(b, loc, counts, shared, /*mapping=*/std::nullopt);
  loop->setAttr(kRowElementsAttrName, b.getI64IntegerAttr(countRowElements()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> yielded = runRow(b, loop.getInductionVars(), products, box);

  AffineMap scores = selectDims(scoreDims());
  AffineExpr sum = b.getAffineDimExpr(0) + b.getAffineDimExpr(1);
  for (auto [i, value, argument] : llvm::enumerate(yielded, loop.getRegionIterArgs())) {
    bool ofBlock = i < Op::kNumProductRows;
    AffineMap map = ofBlock ? scores : outMaps[Op::kNumMainResults + i - Op::kNumProductRows];
    SmallVector<OpFoldResult> offsets, sizes, strides(map.getNumResults(), b.getIndexAttr(1));
    SmallVector<int64_t> kept;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      const auto *outer = dim ? llvm::find(dims.outer, dim.getPosition()) : dims.outer.end();
      bool isKey = dim && outer == dims.outer.end();
      OpFoldResult offset = b.getIndexAttr(0);
      if (outer != dims.outer.end())
        offset = loop.getInductionVars()[outer - dims.outer.begin()];
      if (outer != dims.outer.end() && !ofBlock)
        offset = affine::makeComposedFoldedAffineApply(b, loc, sum, {box.offsets[dim.getPosition()], offset});
      offsets.push_back(offset);
      sizes.push_back(b.getIndexAttr(isKey ? ranges[dim.getPosition()] : 1));
      if (isKey)
        kept.push_back(ranges[dim.getPosition()]);
    }
    Value part = value;
    if (kept.empty()) {
      auto scalar = RankedTensorType::get({}, getElementTypeOrSelf(argument));
      Value slot = tensor::ExtractSliceOp::create(b, loc, scalar, argument, offsets, sizes, strides);
      part = tensor::InsertOp::create(b, loc, value, slot, ValueRange());
    }
    OpBuilder atEnd = OpBuilder::atBlockEnd(loop.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(atEnd, loc, part, argument, offsets, sizes, strides);
  }
  return SmallVector<Value>(loop.getResults());
}

/// Returns the map to a box of a tensor with this `map`, from the outer dimensions and those of a row's part
/// of it.
template <typename Op>
AffineMap Decomposer<Op>::mapToPart(AffineMap map) const {
  SmallVector<AffineExpr> exprs;
  unsigned count = dims.outer.size();
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    const auto *outer = dim ? llvm::find(dims.outer, dim.getPosition()) : dims.outer.end();
    if (!dim)
      exprs.push_back(rewriter.getAffineConstantExpr(0));
    else
      exprs.push_back(
          rewriter.getAffineDimExpr(outer == dims.outer.end() ? count++ : outer - dims.outer.begin()));
  }
  return AffineMap::get(count, 0, exprs, rewriter.getContext());
}

/// Does what runRows does by operations on all rows of the block.
template <typename Op>
FailureOr<SmallVector<Value>> Decomposer<Op>::liftRows(OpBuilder &b, ArrayRef<Value> products,
                                                       ValueRange further, const Box &box) {
  SmallVector<OpFoldResult> offsets, sizes;
  for (unsigned dim : dims.outer) {
    offsets.push_back(box.offsets[dim]);
    sizes.push_back(box.sizes[dim]);
  }
  RowLifter lifter(b, loc, offsets, sizes);
  Block &body = op.getRows().front();
  for (unsigned i = 0; i < dims.outer.size(); ++i)
    lifter.setIndex(body.getArgument(i), i);
  AffineMap scores = b.getMultiDimIdentityMap(dims.outer.size() + dims.keys.size());
  for (auto [i, product] : llvm::enumerate(products))
    lifter.set(op.getProductRow(i), product, scores);
  for (auto [i, input, map] : llvm::enumerate(op.getInputs(), op.getInputMaps())) {
    if (!llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>))
      return op.emitOpError() << "computes with an index in the map of input " << i
                              << " of its rows, for which rows of this size have no code yet";
    lifter.set(op.getInputPart(i), slice(b, {input, map}, box), mapToPart(map));
  }
  for (Operation &inner : body.without_terminator())
    if (failed(lifter.lift(&inner)))
      return failure();
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(op.getYield()->getOperands())) {
    if (i < Op::kNumProductRows) {
      results.push_back(lifter.get(value));
      continue;
    }
    AffineMap map = outMaps[Op::kNumMainResults + i - Op::kNumProductRows];
    Mapped whole{further[i - Op::kNumProductRows], map};
    results.push_back(insert(b, lifter.write(value, slice(b, whole, box), mapToPart(map)), whole, box));
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Loops over blocks
//===----------------------------------------------------------------------===//

/// Computes the rows of `box`. Returns `outs` with their parts.
template <typename Op>
SmallVector<Value> Decomposer<Op>::runBlock(OpBuilder &b, ValueRange outs, const Box &box) {
  SmallVector<Value> products;
  auto elementOf = [&](unsigned i) { return getElementTypeOrSelf(op.getProductRow(i)); };
  products.push_back(multiplyScores(b, 0, 0, 1, elementOf(0), box));
  if constexpr (isGrad)
    products.push_back(multiplyScores(b, 1, 3, 2, elementOf(1), box));
  ValueRange further = outs.drop_front(Op::kNumMainResults);
  SmallVector<Value> rows;
  if (isLoop) {
    rows = runRows(b, products, further, box);
  } else if (FailureOr<SmallVector<Value>> lifted = liftRows(b, products, further, box); succeeded(lifted)) {
    rows = *lifted;
  } else {
    hasFailed = true;
    return SmallVector<Value>(outs);
  }
  AffineMap scores = selectDims(scoreDims());
  SmallVector<Value> results;
  if constexpr (isGrad) {
    Value valueGrad = multiplyInto(b, 2, {rows[0], scores}, 3, 2, outs[2], box);
    results.push_back(multiplyInto(b, 3, {rows[1], scores}, 1, 0, outs[0], box));
    results.push_back(multiplyInto(b, 4, {rows[1], scores}, 0, 1, outs[1], box));
    results.push_back(valueGrad);
  } else {
    results.push_back(multiplyInto(b, 1, {rows[0], scores}, 2, 0, outs[0], box));
  }
  llvm::append_range(results, ArrayRef(rows).drop_front(Op::kNumProductRows));
  return results;
}

template <typename Op>
SmallVector<Value>
Decomposer<Op>::buildLoop(OpBuilder &b, OpFoldResult end, int64_t step, ValueRange outs,
                          function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)> body) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), by = arith::ConstantIndexOp::create(b, loc, step);
  auto loop = scf::ForOp::create(b, loc, zero, getValueOrCreateConstantIndexOp(b, loc, end), by, outs,
                                 [&](OpBuilder &inner, Location at, Value index, ValueRange carried) {
                                   scf::YieldOp::create(inner, at, body(inner, index, carried));
                                 });
  return SmallVector<Value>(loop.getResults());
}

/// Runs the blocks along the dimension that is cut; the last one may be smaller.
template <typename Op>
SmallVector<Value> Decomposer<Op>::runCut(OpBuilder &b, ValueRange outs, Box box) {
  unsigned dim = dims.outer[blocks->cut];
  OpFoldResult size = sizeOf(dim);
  auto runFrom = [&](OpBuilder &inner, OpFoldResult offset, OpFoldResult count, ValueRange carried) {
    box.offsets[dim] = offset;
    box.sizes[dim] = count;
    return runBlock(inner, carried, box);
  };
  std::optional<int64_t> known = getConstantIntValue(size);
  if (known && *known <= blocks->size)
    return runFrom(b, b.getIndexAttr(0), size, outs);
  OpFoldResult whole = b.getIndexAttr(blocks->size);
  if (!known)
    return buildLoop(b, size, blocks->size, outs, [&](OpBuilder &inner, Value index, ValueRange carried) {
      AffineExpr left = inner.getAffineSymbolExpr(0) - inner.getAffineDimExpr(0);
      AffineMap least =
          AffineMap::get(1, 1, {inner.getAffineConstantExpr(blocks->size), left}, op.getContext());
      OpFoldResult count = affine::makeComposedFoldedAffineMin(inner, loc, least, {index, size});
      return runFrom(inner, index, count, carried);
    });
  int64_t end = *known / blocks->size * blocks->size;
  SmallVector<Value> results(outs);
  if (end == blocks->size)
    results = runFrom(b, b.getIndexAttr(0), whole, results);
  else
    results = buildLoop(b, b.getIndexAttr(end), blocks->size, results,
                        [&](OpBuilder &inner, Value index, ValueRange carried) {
                          return runFrom(inner, index, whole, carried);
                        });
  if (end < *known)
    results = runFrom(b, b.getIndexAttr(end), b.getIndexAttr(*known - end), results);
  return results;
}

/// Runs all blocks at the indices that `box` has of the outer dimensions before `outer`, in order.
template <typename Op>
SmallVector<Value> Decomposer<Op>::runOuter(OpBuilder &b, unsigned outer, ValueRange outs, Box box) {
  if (outer == blocks->cut)
    return runCut(b, outs, box);
  unsigned dim = dims.outer[outer];
  OpFoldResult size = sizeOf(dim);
  box.sizes[dim] = b.getIndexAttr(1);
  if (isOneInteger(size))
    return runOuter(b, outer + 1, outs, box);
  return buildLoop(b, size, 1, outs, [&](OpBuilder &inner, Value index, ValueRange carried) {
    box.offsets[dim] = index;
    return runOuter(inner, outer + 1, carried, box);
  });
}

/// Returns the tensor that blocks write a result to: `outs`, or zeros in f32 that sums begin with.
template <typename Op>
Value Decomposer<Op>::begin(unsigned result) {
  Value out = op.getOuts()[result];
  if (result >= Op::kNumMainResults || !isSummedOverBlocks(outMaps[result]))
    return out;
  if (!getElementTypeOrSelf(out).isF32())
    out = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, out),
                                  rewriter.getF32Type());
  Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0.0f));
  return linalg::FillOp::create(rewriter, loc, zero, out).getResult(0);
}

/// Rounds `sums` to the type of a result.
template <typename Op>
Value Decomposer<Op>::finish(unsigned result, Value sums) {
  Value out = op.getOuts()[result];
  if (sums.getType() == out.getType())
    return sums;
  AffineMap identity = rewriter.getMultiDimIdentityMap(outMaps[result].getNumResults());
  SmallVector<utils::IteratorType> iterators(identity.getNumDims(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             rewriter, loc, out.getType(), sums, out, ArrayRef{identity, identity}, iterators,
             [](OpBuilder &b, Location at, ValueRange values) {
               Value rounded = arith::TruncFOp::create(b, at, values[1].getType(), values[0]);
               linalg::YieldOp::create(b, at, rounded);
             })
      .getResult(0);
}

template <typename Op>
LogicalResult Decomposer<Op>::run(int64_t blockElements) {
  rewriter.setInsertionPoint(op);
  isLoop = fitsLoop();
  blocks = chooseBlocks(blockElements);
  for (unsigned i = 0; i < Op::kNumMainResults; ++i)
    if (isSummedOverBlocks(outMaps[i]) && !canResume(i))
      blocks.reset();
  Box box{SmallVector<OpFoldResult>(ranges.size(), rewriter.getIndexAttr(0)), {}};
  for (unsigned dim : llvm::seq<unsigned>(ranges.size()))
    box.sizes.push_back(sizeOf(dim));
  SmallVector<Value> results;
  for (unsigned i = 0; i < op.getOuts().size(); ++i)
    results.push_back(begin(i));
  results = blocks ? runOuter(rewriter, 0, results, box) : runBlock(rewriter, results, box);
  if (hasFailed)
    return failure();
  for (auto [i, result] : llvm::enumerate(results))
    result = finish(i, result);
  rewriter.replaceOp(op, results);
  return success();
}

class DecomposeAttention : public impl::DecomposeAttentionBase<DecomposeAttention> {
public:
  using impl::DecomposeAttentionBase<DecomposeAttention>::DecomposeAttentionBase;

  void runOnOperation() final {
    int64_t most = blockElements ? blockElements : getTarget(getOperation()).getScoreBlockElements();
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<AttentionOp, AttentionGradOp>(op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops) {
      auto grad = dyn_cast<AttentionGradOp>(op);
      LogicalResult done = grad ? Decomposer<AttentionGradOp>(rewriter, grad).run(most)
                                : Decomposer<AttentionOp>(rewriter, cast<AttentionOp>(op)).run(most);
      if (failed(done))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace fp8
