// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dimensions and blocks of rows of attention, and its matmuls.

#include "AttentionDecomposer.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Blocks of more rows are multiples of so many, to be whole tiles of a matmul.
static constexpr int64_t kWholeRows = 64;

/// Blocks that divide rows which see a part of the keys.
static constexpr int64_t kLeastParts = 4, kMostParts = 16;

/// Scores of a block of a task: with their gradients they stay in the caches of a core.
static constexpr int64_t kTaskElements = 1 << 19;
/// Scores below which all threads together are faster than tasks.
static constexpr int64_t kLeastTaskScores = 1 << 14;

/// The number of keys that blocks are made for where it is not known.
static constexpr int64_t kAssumedKeys = 2048;

//===----------------------------------------------------------------------===//
// Dimensions and blocks
//===----------------------------------------------------------------------===//

template <typename Op>
OpFoldResult AttentionDecomposer<Op>::sizeOf(unsigned dim) {
  if (!ShapedType::isDynamic(ranges[dim]))
    return rewriter.getIndexAttr(ranges[dim]);
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), maps))
    if (std::optional<unsigned> position = map.getResultPosition(rewriter.getAffineDimExpr(dim)))
      return tensor::getMixedSize(rewriter, loc, operand, *position);
  llvm_unreachable("verified: every dimension is one of an operand");
}

/// Returns the dimensions of the scores in their tensors, in which rows are contiguous.
template <typename Op>
SmallVector<unsigned> AttentionDecomposer<Op>::scoreDims() const {
  SmallVector<unsigned> all(dims.outer);
  llvm::append_range(all, dims.keys);
  return all;
}

template <typename Op>
AffineMap AttentionDecomposer<Op>::selectDims(ArrayRef<unsigned> selected) const {
  SmallVector<AffineExpr> exprs =
      llvm::map_to_vector(selected, [&](unsigned dim) { return rewriter.getAffineDimExpr(dim); });
  return AffineMap::get(ranges.size(), 0, exprs, rewriter.getContext());
}

template <typename Op>
int64_t AttentionDecomposer<Op>::countRowElements() const {
  int64_t count = 1;
  for (unsigned dim : dims.keys)
    count *= ShapedType::isDynamic(ranges[dim]) ? kAssumedKeys : ranges[dim];
  return count;
}

/// Returns whether a loop over rows can have the temporaries of a row: of known size, and within the target's
/// limit.
template <typename Op>
bool AttentionDecomposer<Op>::fitsLoop() {
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

/// Chooses the dimensions whose indices are independent tasks, such as batch and heads: each has several, and
/// a part of every result of its own. There are none if a size is not known, if the target wants all scores
/// in memory, or if they are so few that threads gain nothing.
template <typename Op>
SmallVector<unsigned> AttentionDecomposer<Op>::chooseTasks(int64_t blockElements) const {
  SmallVector<unsigned> chosen;
  if (blockElements == std::numeric_limits<int64_t>::max() || llvm::any_of(ranges, ShapedType::isDynamic))
    return chosen;
  // Queries are the most rows that read one key.
  std::optional<unsigned> queries;
  for (unsigned dim : dims.outer)
    if (!maps[1].isFunctionOfDim(dim) && (!queries || ranges[dim] >= ranges[*queries]))
      queries = dim;
  int64_t scores = countRowElements();
  for (unsigned dim : dims.outer) {
    scores *= ranges[dim];
    if (dim != queries && ranges[dim] > 1 &&
        llvm::all_of(outMaps, [&](AffineMap map) { return map.isFunctionOfDim(dim); }))
      chosen.push_back(dim);
  }
  return scores < std::min(blockElements, kLeastTaskScores) ? SmallVector<unsigned>() : chosen;
}

/// Chooses blocks of whole outer dimensions from the last one on, and of a part of the next. Returns nullopt
/// if they can be one block. Tasks have blocks of their own.
template <typename Op>
std::optional<Blocks> AttentionDecomposer<Op>::chooseBlocks(int64_t blockElements) const {
  if (blockElements == std::numeric_limits<int64_t>::max())
    return std::nullopt;
  if (!tasks.empty()) // blocks of a few rows would multiply slowly
    blockElements = std::min(blockElements, std::max(kTaskElements, kWholeRows * countRowElements()));
  int64_t most = std::max<int64_t>(1, blockElements / std::max<int64_t>(countRowElements(), 1));
  for (unsigned i = dims.outer.size(); i-- > 0;) {
    if (isTask(dims.outer[i]))
      continue;
    int64_t size = ranges[dims.outer[i]];
    if (ShapedType::isDynamic(size))
      return Blocks{i, most};
    // Blocks of fewer rows leave out more keys.
    if (limit && limit->row == dims.outer[i] && size >= kLeastParts * kWholeRows)
      most = std::min(most, std::max(kWholeRows, size / kMostParts));
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
bool AttentionDecomposer<Op>::isSplit(unsigned dim) const {
  const auto *found = llvm::find(dims.outer, dim);
  if (!blocks || found == dims.outer.end() || found - dims.outer.begin() > blocks->cut)
    return false;
  bool isCut = found - dims.outer.begin() == blocks->cut;
  return ShapedType::isDynamic(ranges[dim]) || ranges[dim] > (isCut ? blocks->size : 1);
}

/// Returns whether a result with this map has summands from several blocks.
template <typename Op>
bool AttentionDecomposer<Op>::isSummedOverBlocks(AffineMap map) const {
  return llvm::any_of(dims.outer, [&](unsigned dim) { return !map.isFunctionOfDim(dim) && isSplit(dim); });
}

/// Returns whether a further result is a sum of rows, because it lacks an outer dimension.
template <typename Op>
bool AttentionDecomposer<Op>::isSum(unsigned result) const {
  return result >= Op::kNumMainResults && llvm::any_of(dims.outer, [&](unsigned dim) {
           return ranges[dim] != 1 && !outMaps[result].isFunctionOfDim(dim);
         });
}

/// Returns whether blocks take the summands of a gradient in the order of the iteration space, and a matmul
/// can resume their sums.
template <typename Op>
bool AttentionDecomposer<Op>::canResume(unsigned result) {
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
// Matmuls
//===----------------------------------------------------------------------===//

/// Returns the part of a tensor at `box`.
template <typename Op>
Value AttentionDecomposer<Op>::slice(OpBuilder &b, const Mapped &mapped, const Box &box) {
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
Value AttentionDecomposer<Op>::insert(OpBuilder &b, Value part, const Mapped &mapped, const Box &box) {
  auto source = slice(b, mapped, box).template getDefiningOp<tensor::ExtractSliceOp>();
  Value inserted = tensor::InsertSliceOp::create(b, loc, part, mapped.tensor, source.getMixedOffsets(),
                                                 source.getMixedSizes(), source.getMixedStrides());
  if (source->use_empty())
    source->erase();
  return inserted;
}

/// Returns memory for scores of the block, that of all keys, cut to those that are `seen`.
template <typename Op>
Value AttentionDecomposer<Op>::emptyScores(OpBuilder &b, Type element, const Box &box, const Box &seen) {
  SmallVector<OpFoldResult> sizes, cut;
  for (unsigned dim : scoreDims()) {
    sizes.push_back(box.sizes[dim]);
    cut.push_back(seen.sizes[dim]);
  }
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  if (!isLimited(seen))
    return empty;
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, empty, offsets, cut, strides);
}

/// Creates matmul `number`, in the dimensions that its tensors have.
template <typename Op>
Value AttentionDecomposer<Op>::multiply(OpBuilder &b, unsigned number, const Mapped &lhs, const Mapped &rhs,
                                        const Mapped &out, bool resume) {
  llvm::SmallBitVector unused(ranges.size());
  for (unsigned dim : llvm::seq<unsigned>(ranges.size()))
    if (!lhs.map.isFunctionOfDim(dim) && !rhs.map.isFunctionOfDim(dim))
      unused.set(dim);
  SmallVector<AffineMap> ofMatmul =
      llvm::map_to_vector(ArrayRef{lhs.map, rhs.map, out.map},
                          [&](AffineMap map) { return projectDims(map, unused, /*compressDimsFlag=*/true); });
  MatmulOp::Properties properties;
  properties.setIndexingMaps(b.getAffineMapArrayAttr(ofMatmul));
  properties.setResume(resume ? b.getUnitAttr() : nullptr);
  if (op.getSites()) {
    auto site = cast<MatmulSiteAttr>((*op.getSites())[number]);
    MLIRContext *context = op.getContext();
    properties.setSite(site.getSite());
    properties.setRole(RoleAttr::get(context, site.getRole()));
    properties.setLhsKind(TensorKindAttr::get(context, site.getLhsKind()));
    properties.setRhsKind(TensorKindAttr::get(context, site.getRhsKind()));
    properties.setKept(site.getKept());
  }
  return MatmulOp::create(b, loc, {lhs.tensor, rhs.tensor, out.tensor}, properties).getResult(0);
}

/// Creates the matmul of two operands whose sums are scores of the block, for the keys that are `seen`.
template <typename Op>
Value AttentionDecomposer<Op>::multiplyScores(OpBuilder &b, unsigned number, unsigned lhs, unsigned rhs,
                                              Type element, const Box &box, const Box &seen) {
  Mapped left{slice(b, {op->getOperand(lhs), maps[lhs]}, seen), maps[lhs]};
  Mapped right{slice(b, {op->getOperand(rhs), maps[rhs]}, seen), maps[rhs]};
  return multiply(b, number, left, right, {emptyScores(b, element, box, seen), selectDims(scoreDims())},
                  /*resume=*/false);
}

/// Creates the matmul of the block's `scores` and an operand, as the block's part of a result, or as the
/// sums so far of such a part. Returns `out` with the part.
template <typename Op>
Value AttentionDecomposer<Op>::multiplyInto(OpBuilder &b, unsigned number, Value scores, unsigned operand,
                                            unsigned result, Value out, const Box &seen) {
  Mapped whole{out, outMaps[result]};
  Mapped rows{scores, selectDims(scoreDims())};
  Mapped factor{slice(b, {op->getOperand(operand), maps[operand]}, seen), maps[operand]};
  Mapped part{slice(b, whole, seen), outMaps[result]};
  Value matmul = multiply(b, number, rows, factor, part, isSummedOverBlocks(outMaps[result]));
  return insert(b, matmul, whole, seen);
}

/// Adds the block's `rows` to the sum of them that `result` is. Returns `out` with that.
template <typename Op>
Value AttentionDecomposer<Op>::addRows(OpBuilder &b, Value rows, unsigned result, Value out,
                                       const Box &seen) {
  Mapped whole{out, outMaps[result]};
  AffineMap scores = selectDims(scoreDims());
  SmallVector<AffineExpr> loops(ranges.size(), b.getAffineConstantExpr(0));
  for (auto [loop, expr] : llvm::enumerate(scores.getResults()))
    loops[cast<AffineDimExpr>(expr).getPosition()] = b.getAffineDimExpr(loop);
  AffineMap toSum = outMaps[result].replaceDimsAndSymbols(loops, {}, scores.getNumResults(), 0);
  SmallVector<utils::IteratorType> iterators;
  for (unsigned loop = 0; loop < scores.getNumResults(); ++loop)
    iterators.push_back(toSum.isFunctionOfDim(loop) ? utils::IteratorType::parallel
                                                    : utils::IteratorType::reduction);
  Value sums = slice(b, whole, seen);
  auto added = linalg::GenericOp::create(
      b, loc, sums.getType(), rows, sums, ArrayRef{b.getMultiDimIdentityMap(scores.getNumResults()), toSum},
      iterators, [](OpBuilder &inside, Location at, ValueRange values) {
        linalg::YieldOp::create(inside, at, arith::AddFOp::create(inside, at, values).getResult());
      });
  return insert(b, added.getResult(0), whole, seen);
}

template class fp8::detail::AttentionDecomposer<AttentionOp>;
template class fp8::detail::AttentionDecomposer<AttentionGradOp>;
