// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the reshapes beside a matmul, and adds the one that is missing where the others agree.

#include "MatmulReshapes.h"
#include "ViewPatterns.h"
#include "fp8/Analysis/Rearrangement.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace fp8;
using fp8::detail::Reshape;

/// Returns the sizes of every group of dimensions; an empty Reshape if a split size is dynamic.
static Reshape makeReshape(Operation *op, ArrayRef<ReassociationIndices> groups, ArrayRef<int64_t> shape) {
  Reshape reshape{op, {}};
  for (const ReassociationIndices &group : groups) {
    SmallVector<int64_t> &sizes = reshape.sizes.emplace_back();
    for (int64_t d : group)
      sizes.push_back(shape[d]);
    if (sizes.size() > 1 && llvm::is_contained(sizes, ShapedType::kDynamic))
      return {};
  }
  return groups.empty() ? Reshape() : reshape;
}

Reshape fp8::detail::getReshape(tensor::ExpandShapeOp expand) {
  return makeReshape(expand, expand.getReassociationIndices(), expand.getResultType().getShape());
}

static Reshape findOperandReshape(Value operand) {
  auto collapse = operand.getDefiningOp<tensor::CollapseShapeOp>();
  return collapse
             ? makeReshape(collapse, collapse.getReassociationIndices(), collapse.getSrcType().getShape())
             : Reshape();
}

static Reshape findResultReshape(MatmulOp op) {
  Value result = op->getResult(0);
  if (!result.hasOneUse() || op.readsInit())
    return {};
  auto expand = dyn_cast<tensor::ExpandShapeOp>(*result.user_begin());
  return expand ? fp8::detail::getReshape(expand) : Reshape();
}

SmallVector<Reshape, 3> fp8::detail::findReshapes(MatmulOp op) {
  return {findOperandReshape(op.getLhs()), findOperandReshape(op.getRhs()), findResultReshape(op)};
}

ArrayRef<int64_t> fp8::detail::getSplit(const Reshape &reshape, unsigned position) {
  ArrayRef<int64_t> sizes = reshape.op ? ArrayRef<int64_t>(reshape.sizes[position]) : ArrayRef<int64_t>();
  return sizes.size() > 1 ? sizes : ArrayRef<int64_t>();
}

/// Returns whether elementwise code on a tensor, and transposes, end in a reshape that splits its dimensions
/// into `parts`.
static bool isSplitLater(Value tensor, SmallVector<SmallVector<int64_t>> parts) {
  while (tensor.hasOneUse()) {
    Operation *user = *tensor.user_begin();
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user))
      return fp8::detail::getReshape(expand).sizes == parts;
    if (auto transpose = dyn_cast<linalg::TransposeOp>(user)) {
      applyPermutationToVector(parts, transpose.getPermutation());
      tensor = transpose->getResult(0);
      continue;
    }
    if (!fp8::detail::isElementwise(*tensor.use_begin()))
      return false;
    tensor = user->getResult(0);
  }
  return false;
}

/// Returns whether an operation computes something of the elements of its operands. A matmul does not keep
/// their dimensions.
static bool isCode(Operation *op) { return isa_and_nonnull<linalg::LinalgOp>(op); }

/// Returns whether code on elements computes or reads a tensor, beside casts, transposes and broadcasts.
static bool isPartOfCode(Value tensor) {
  while (Operation *producer = tensor.getDefiningOp()) {
    std::optional<Rearrangement> view = matchRearrangement(producer);
    if (!view) {
      if (isCode(producer))
        return true;
      break;
    }
    tensor = view->input;
  }
  SmallVector<Value> tensors{tensor};
  while (!tensors.empty())
    for (Operation *user : tensors.pop_back_val().getUsers()) {
      if (matchRearrangement(user))
        tensors.push_back(user->getResult(0));
      else if (isCode(user))
        return true;
    }
  return false;
}

/// Returns whether code works on the split side of a reshape.
static bool isBesideCode(const Reshape &reshape) {
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(reshape.op))
    return isPartOfCode(collapse.getSrc());
  return reshape.op && isPartOfCode(reshape.op->getResult(0));
}

/// Returns for each dimension of the tensor `third` the sizes that both others split it into, or its size.
static SmallVector<SmallVector<int64_t>> findParts(ArrayRef<AffineMap> maps, ArrayRef<Reshape> reshapes,
                                                   unsigned third, ArrayRef<int64_t> shape) {
  unsigned first = third == 0 ? 1 : 0, second = third == 2 ? 1 : 2;
  SmallVector<SmallVector<int64_t>> parts;
  for (auto [expr, size] : llvm::zip_equal(maps[third].getResults(), shape)) {
    std::optional<unsigned> places[] = {maps[first].getResultPosition(expr),
                                        maps[second].getResultPosition(expr)};
    ArrayRef<int64_t> split;
    if (places[0] && places[1] &&
        getSplit(reshapes[first], *places[0]) == getSplit(reshapes[second], *places[1]))
      split = getSplit(reshapes[first], *places[0]);
    parts.emplace_back(split.empty() ? ArrayRef(size) : split);
  }
  return parts;
}

void fp8::detail::splitThirdTensor(RewriterBase &rewriter, MatmulOp op) {
  SmallVector<Reshape, 3> reshapes = findReshapes(op);
  const Reshape *missing = llvm::find_if(reshapes, [](const Reshape &reshape) { return !reshape.op; });
  if (missing == reshapes.end() ||
      llvm::count_if(reshapes, [](const Reshape &reshape) { return reshape.op; }) != 2)
    return;
  unsigned third = missing - reshapes.begin();
  bool isResult = third == 2;
  Value tensor = isResult ? op->getResult(0) : op->getOperand(third);
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || (isResult && (op.readsInit() || op->getNumResults() != 1)))
    return;
  SmallVector<SmallVector<int64_t>> parts =
      findParts(op.getIndexingMapsArray(), reshapes, third, type.getShape());
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> shape;
  for (ArrayRef<int64_t> sizes : parts) {
    ReassociationIndices &group = groups.emplace_back();
    for (int64_t size : sizes) {
      group.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(size);
    }
  }
  if (shape.size() == groups.size())
    return;
  if (!(isResult && isSplitLater(tensor, parts)) &&
      (isPartOfCode(tensor) || llvm::none_of(reshapes, isBesideCode)))
    return;
  if (isResult)
    rewriter.setInsertionPointAfter(op);
  else
    rewriter.setInsertionPoint(op);
  auto expand = tensor::ExpandShapeOp::create(rewriter, op.getLoc(), type.clone(shape), tensor, groups);
  Value same = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), type, expand, groups);
  if (isResult)
    rewriter.replaceAllUsesExcept(tensor, same, expand);
  else
    rewriter.modifyOpInPlace(op, [&] { op->setOperand(third, same); });
}
