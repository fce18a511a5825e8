// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys that a block of rows sees: those from the first one of its first row to the last one of its last
// row, if the operands are numbers for which `visible_keys` speaks, else all.

#include "AttentionDecomposer.h"
#include "fp8/Analysis/Attention/NumberRanges.h"
#include "fp8/Dialect/FP8/IR/Magnitude.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Keys are left out in groups of so many, so that every vector of a row has the keys that it has in a row of
/// all keys, and sums by lanes of vectors have the same order.
static constexpr int64_t kKeyGroup = 64;

/// Returns whether the tensors of the code of rows are scalars and rows of all keys, which can be cut.
static bool hasOnlyRows(Block &code, int64_t keys) {
  return llvm::all_of(code, [&](Operation &op) {
    return llvm::all_of(op.getResultTypes(), [&](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return !tensor || tensor.getRank() == 0 || llvm::equal(tensor.getShape(), ArrayRef(keys));
    });
  });
}

/// Returns the limit that blocks can apply: `visible_keys` of the form i + number, with loops over rows, of
/// f32, bf16 or f16. Every block sees a key.
template <typename Op>
std::optional<Limit> AttentionDecomposer<Op>::chooseLimit() {
  std::optional<AffineMap> visible = op.getVisibleKeys();
  auto canCheck = [](Value value) {
    Type type = getElementTypeOrSelf(value);
    return type.isF32() || type.isBF16() || type.isF16();
  };
  if (!visible || !isLoop || !hasOnlyRows(op.getRows().front(), ranges[dims.keys.front()]) ||
      !llvm::all_of(op->getOperands().take_front(kIsGrad ? 4 : 3), canCheck))
    return std::nullopt;
  for (unsigned dim : dims.outer) {
    // Keys that no row of a block sees have no gradients from it.
    if (maps[1].isFunctionOfDim(dim) || maps[2].isFunctionOfDim(dim) ||
        (kIsGrad && (outMaps[1].isFunctionOfDim(dim) || outMaps[2].isFunctionOfDim(dim))))
      continue;
    int64_t keys = ranges[dims.keys.front()], rows = ranges[dim];
    Limit found{dim, getKeyDistance(*visible, 0, dim), getKeyDistance(*visible, 1, dim), Value()};
    if (found.end && (*found.end <= 0 || *found.end >= keys))
      found.end.reset();
    if (found.first && (ShapedType::isDynamic(rows) || *found.first <= -rows || *found.first > keys - rows ||
                        (found.end && *found.first >= *found.end)))
      found.first.reset();
    if (found.first || found.end)
      return found;
  }
  return std::nullopt;
}

/// Returns the largest magnitude in a tensor, as f32; infinity if it has a NaN.
static Value findMagnitude(OpBuilder &b, Location loc, Value tensor) {
  return tensor::ExtractOp::create(b, loc, buildMagnitude(b, loc, tensor), ValueRange());
}

/// Returns whether scores, and gradients of probabilities, are within the limits of `visible_keys`, and
/// values are finite: a sum of `count` products is at most their number times the largest factors. The limits
/// are halved for its rounding. `visible_if` must be true, too.
template <typename Op>
Value AttentionDecomposer<Op>::checkOperands() {
  OpBuilder &b = rewriter;
  auto makeFloat = [&](double number) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(number)));
  };
  auto countOf = [&](ArrayRef<unsigned> summed) {
    Value count = arith::ConstantIndexOp::create(b, loc, 1);
    for (unsigned dim : summed)
      count = arith::MulIOp::create(b, loc, count, getValueOrCreateConstantIndexOp(b, loc, sizeOf(dim)));
    Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), count);
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), integer).getResult();
  };
  auto isAtMost = [&](Value number, double most) -> Value {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, number, makeFloat(most));
  };
  auto areSumsAtMost = [&](Value x, Value y, ArrayRef<unsigned> summed, double most) {
    Value product = arith::MulFOp::create(b, loc, x, y);
    return isAtMost(arith::MulFOp::create(b, loc, product, countOf(summed)), most);
  };
  Value query = findMagnitude(b, loc, op->getOperand(0)), key = findMagnitude(b, loc, op->getOperand(1)),
        value = findMagnitude(b, loc, op->getOperand(2));
  auto limit = [&](double number, unsigned row) {
    return limitToType(number, getElementTypeOrSelf(op.getMatmulRow(row))) / 2;
  };
  Value isValid = areSumsAtMost(query, key, dims.depth, limit(kMostScore, 0)), also;
  if constexpr (kIsGrad)
    also =
        areSumsAtMost(findMagnitude(b, loc, op->getOperand(3)), value, dims.width, limit(kMostGradient, 1));
  else
    also = isAtMost(value, std::numeric_limits<float>::max());
  isValid = arith::AndIOp::create(b, loc, isValid, also);
  if (std::optional<uint64_t> condition = op.getVisibleIf())
    isValid = arith::AndIOp::create(
        b, loc, isValid, tensor::ExtractOp::create(b, loc, op.getInputs()[*condition], ValueRange()));
  return isValid;
}

/// Returns `box` with the keys that its rows see, whole groups before them included.
template <typename Op>
Box AttentionDecomposer<Op>::limitKeys(OpBuilder &b, const Box &box) {
  Box seen = box;
  if (!limit)
    return seen;
  unsigned key = dims.keys.front();
  MLIRContext *context = op.getContext();
  AffineExpr offset, size, all, from;
  bindDims(context, offset, size, all, from);
  OpFoldResult begin = b.getIndexAttr(0), rowOffset = box.offsets[limit->row];
  if (limit->first) {
    AffineExpr group = (offset + *limit->first).floorDiv(kKeyGroup) * kKeyGroup;
    AffineMap most = AffineMap::get(1, 0, {group, b.getAffineConstantExpr(0)}, context);
    begin = affine::makeComposedFoldedAffineMax(b, loc, most, rowOffset);
  }
  SmallVector<AffineExpr> counts{all - from};
  if (limit->end)
    counts.push_back(offset + size - 1 + *limit->end - from);
  OpFoldResult count =
      affine::makeComposedFoldedAffineMin(b, loc, AffineMap::get(4, 0, counts, context),
                                          {rowOffset, box.sizes[limit->row], box.sizes[key], begin});
  if (getConstantIntValue(count) && getConstantIntValue(count) == getConstantIntValue(box.sizes[key]))
    return seen;
  auto ifValid = [&](OpFoldResult limited, OpFoldResult whole) -> OpFoldResult {
    return arith::SelectOp::create(b, loc, limit->isValid, getValueOrCreateConstantIndexOp(b, loc, limited),
                                   getValueOrCreateConstantIndexOp(b, loc, whole))
        .getResult();
  };
  seen.sizes[key] = ifValid(count, box.sizes[key]);
  if (limit->first)
    seen.offsets[key] = ifValid(begin, box.offsets[key]);
  return seen;
}

/// Returns whether the rows of a block may see a part of the keys.
template <typename Op>
bool AttentionDecomposer<Op>::isLimited(const Box &seen) const {
  return limit && !getConstantIntValue(seen.sizes[dims.keys.front()]);
}

template class fp8::detail::AttentionDecomposer<AttentionOp>;
template class fp8::detail::AttentionDecomposer<AttentionGradOp>;
