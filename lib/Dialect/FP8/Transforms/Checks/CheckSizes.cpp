// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations on tensors of dynamic shape are undefined if their sizes do not fit together, and
// operations with indices if an index is out of range: compiled code would read and write past
// the end of a buffer. This pass asserts every condition that it cannot prove, at the start of the
// function if it depends on the arguments only.

#include "SizeMessages.h"
#include "TensorSizes.h"
#include "fp8/Analysis/IntegerRanges.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fp8 {
#define GEN_PASS_DEF_CHECKSIZES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

static bool isDynamic(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && !type.hasStaticShape();
}

static bool hasDynamicShape(Operation *op) {
  return llvm::any_of(op->getOperands(), isDynamic) || llvm::any_of(op->getResults(), isDynamic);
}

/// Returns whether `op` has an index, offset or size that its verifier does not check.
static bool hasIndices(Operation *op) {
  if (isa<tensor::ExtractOp>(op))
    return op->getNumOperands() > 1;
  if (isa<tensor::InsertOp>(op))
    return op->getNumOperands() > 2;
  auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op);
  return slice && isa<tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::ParallelInsertSliceOp>(op) &&
         !(slice.getOffsets().empty() && slice.getSizes().empty() && slice.getStrides().empty());
}

/// Returns the operation before which assertions about `op` can be inserted.
static Operation *getAnchor(Operation *op) {
  return isa<InParallelOpInterface>(op->getParentOp()) ? op->getParentOp() : op;
}

namespace {
/// Inserts the assertions of one function.
class SizeChecker {
public:
  explicit SizeChecker(func::FuncOp func) : func(func), sizes(func) {}

  void check(Operation *op);

private:
  void checkLinalg(linalg::LinalgOp op);
  void checkElementwise(Operation *op);
  void checkCast(tensor::CastOp op);
  void checkExpand(tensor::ExpandShapeOp op);
  void checkReshape(tensor::ReshapeOp op);
  void checkConcat(tensor::ConcatOp op);
  void checkSlice(OffsetSizeAndStrideOpInterface op, Value whole);
  void checkIndices(Operation *op, Value tensor, ValueRange indices);

  /// Asserts a = b, or a <= b, at `op`.
  void requireSame(Operation *op, OpFoldResult a, OpFoldResult b);
  void requireAtMost(Operation *op, OpFoldResult a, OpFoldResult b, const std::string &message);
  void require(Operation *op, arith::CmpIPredicate predicate, OpFoldResult a, OpFoldResult b,
               const std::string &message);
  bool isIndexUpTo(OpFoldResult index, OpFoldResult size);

  OpFoldResult apply(Operation *op, AffineExpr expr, ArrayRef<OpFoldResult> symbols) {
    OpBuilder builder(getAnchor(op));
    return affine::makeComposedFoldedAffineApply(builder, op->getLoc(), expr, symbols);
  }
  OpFoldResult multiply(Operation *op, ArrayRef<OpFoldResult> factors);
  OpFoldResult constant(int64_t value) { return Builder(func.getContext()).getIndexAttr(value); }

  func::FuncOp func;
  TensorSizes sizes;
};
} // namespace

//===----------------------------------------------------------------------===//
// Assertions
//===----------------------------------------------------------------------===//

void SizeChecker::require(Operation *op, arith::CmpIPredicate predicate, OpFoldResult a, OpFoldResult b,
                          const std::string &message) {
  bool atStart = op->getBlock() == &func.front() && sizes.hoist(a) && sizes.hoist(b);
  OpBuilder builder = atStart ? sizes.atStart() : OpBuilder(getAnchor(op));
  Location loc = op->getLoc();
  Value good =
      arith::CmpIOp::create(builder, loc, predicate, getValueOrCreateConstantIndexOp(builder, loc, a),
                            getValueOrCreateConstantIndexOp(builder, loc, b));
  cf::AssertOp::create(builder, loc, good, message);
  if (atStart && predicate == arith::CmpIPredicate::eq)
    sizes.setSame(a, b);
}

void SizeChecker::requireSame(Operation *op, OpFoldResult a, OpFoldResult b) {
  a = sizes.simplify(a);
  b = sizes.simplify(b);
  if (!sizes.isSame(a, b))
    require(op, arith::CmpIPredicate::eq, a, b, describeMismatch(sizes, a, b));
}

void SizeChecker::requireAtMost(Operation *op, OpFoldResult a, OpFoldResult b, const std::string &message) {
  std::optional<int64_t> left = getConstantIntValue(a), right = getConstantIntValue(b);
  bool isCount = isa<Value>(b) && isa_and_nonnull<tensor::DimOp>(cast<Value>(b).getDefiningOp());
  if (sizes.isSame(a, b) || (left && right && *left <= *right) || (left && *left <= 0 && isCount))
    return;
  require(op, arith::CmpIPredicate::sle, a, b, message);
}

OpFoldResult SizeChecker::multiply(Operation *op, ArrayRef<OpFoldResult> factors) {
  if (factors.size() == 1)
    return factors.front();
  AffineExpr product = getAffineConstantExpr(1, op->getContext());
  for (unsigned i : llvm::seq<unsigned>(factors.size()))
    product = product * getAffineSymbolExpr(i, op->getContext());
  return apply(op, product, factors);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Asserts that every dimension of the iteration space has one size, and that other index
/// expressions do not exceed the end of the operand. They start at 0, because their coefficients
/// are positive.
void SizeChecker::checkLinalg(linalg::LinalgOp op) {
  SmallVector<OpFoldResult> extents(op.getNumLoops());
  auto forEachSize = [&](llvm::function_ref<void(AffineExpr, OpFoldResult)> visit) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()))
        for (auto [dim, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
          visit(expr, sizes.get(operand.get(), dim));
  };
  forEachSize([&](AffineExpr expr, OpFoldResult size) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return;
    OpFoldResult &extent = extents[dim.getPosition()];
    if (!extent)
      extent = size;
    else
      requireSame(op, extent, size);
  });
  forEachSize([&](AffineExpr expr, OpFoldResult size) {
    if (isa<AffineDimExpr>(expr) || llvm::is_contained(extents, OpFoldResult()))
      return;
    SmallVector<AffineExpr> last;
    for (unsigned dim : llvm::seq<unsigned>(extents.size()))
      last.push_back(getAffineSymbolExpr(dim, op->getContext()) - 1);
    requireAtMost(op, apply(op, expr.replaceDims(last) + 1, extents), size,
                  "an operand is too small for the indices at which it is read");
  });
}

void SizeChecker::checkElementwise(Operation *op) {
  SmallVector<Value> tensors = llvm::to_vector(
      llvm::make_filter_range(op->getOperands(), [](Value v) { return isa<RankedTensorType>(v.getType()); }));
  for (Value tensor : llvm::drop_begin(tensors))
    for (auto [a, b] : llvm::zip_equal(sizes.getAll(tensors.front()), sizes.getAll(tensor)))
      requireSame(op, a, b);
}

void SizeChecker::checkCast(tensor::CastOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type || !isa<RankedTensorType>(op.getSource().getType()))
    return;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!type.isDynamicDim(dim))
      requireSame(op, sizes.get(op.getSource(), dim), constant(type.getDimSize(dim)));
}

void SizeChecker::checkExpand(tensor::ExpandShapeOp op) {
  SmallVector<OpFoldResult> shape = op.getMixedOutputShape();
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    if (!op.getSrcType().isDynamicDim(dim))
      continue;
    SmallVector<OpFoldResult> parts;
    for (int64_t part : group)
      parts.push_back(sizes.simplify(shape[part]));
    requireSame(op, multiply(op, parts), sizes.get(op.getSrc(), dim));
  }
}

/// Takes the elements of the shape from the tensor.from_elements that creates it.
void SizeChecker::checkReshape(tensor::ReshapeOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type || !isa<RankedTensorType>(op.getSource().getType()))
    return;
  OpBuilder builder(op);
  SmallVector<OpFoldResult> shape;
  auto elements = op.getShape().getDefiningOp<tensor::FromElementsOp>();
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value index = arith::ConstantIndexOp::create(builder, op.getLoc(), dim);
    Value size = elements ? elements.getElements()[dim]
                          : tensor::ExtractOp::create(builder, op.getLoc(), op.getShape(), index).getResult();
    if (!size.getType().isIndex())
      size = arith::IndexCastOp::create(builder, op.getLoc(), builder.getIndexType(), size);
    shape.push_back(sizes.simplify(size));
    requireAtMost(op, constant(0), shape.back(), "a size of a shape is negative");
    if (!type.isDynamicDim(dim))
      requireSame(op, shape.back(), constant(type.getDimSize(dim)));
  }
  requireSame(op, multiply(op, shape), multiply(op, sizes.getAll(op.getSource())));
}

void SizeChecker::checkConcat(tensor::ConcatOp op) {
  for (Value input : op.getInputs().drop_front())
    for (auto [dim, pair] :
         llvm::enumerate(llvm::zip_equal(sizes.getAll(op.getInputs().front()), sizes.getAll(input))))
      if (dim != op.getDim())
        requireSame(op, std::get<0>(pair), std::get<1>(pair));
}

void SizeChecker::checkSlice(OffsetSizeAndStrideOpInterface op, Value whole) {
  AffineExpr offset, size, stride;
  bindSymbols(op->getContext(), offset, size, stride);
  IntegerRanges ranges(op);
  for (auto [dim, parts] :
       llvm::enumerate(llvm::zip_equal(op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides()))) {
    OpFoldResult first = sizes.simplify(std::get<0>(parts)), count = sizes.simplify(std::get<1>(parts)),
                 step = std::get<2>(parts), extent = sizes.get(whole, dim);
    if ((getConstantIntValue(first) == 0 && sizes.isSame(count, extent)) ||
        ranges.isInside(first, count, step, extent))
      continue;
    std::string message = describeOutside("a slice", whole, dim, {first, count, step});
    requireAtMost(op, constant(0), first, message);
    requireAtMost(op, constant(0), count, message);
    requireAtMost(op, first, extent, message); // so that the sum below does not overflow
    requireAtMost(op, count, extent, message);
    requireAtMost(op, apply(op, offset + (size - 1) * stride + 1, {first, count, step}), extent, message);
  }
}

/// Returns whether `index` is the induction variable of a loop that ends at `size`.
bool SizeChecker::isIndexUpTo(OpFoldResult index, OpFoldResult size) {
  auto value = dyn_cast<Value>(index);
  if (auto op = value ? value.getDefiningOp<linalg::IndexOp>() : linalg::IndexOp()) {
    auto parent = cast<linalg::LinalgOp>(op->getParentOp());
    AffineExpr dim = getAffineDimExpr(op.getDim(), op.getContext());
    return llvm::any_of(parent->getOpOperands(), [&](OpOperand &operand) {
      std::optional<unsigned> place = parent.getMatchingIndexingMap(&operand).getResultPosition(dim);
      return place && sizes.isSame(sizes.get(operand.get(), *place), size);
    });
  }
  auto loop = value ? scf::getForInductionVarOwner(value) : scf::ForOp();
  std::optional<int64_t> first = loop ? getConstantIntValue(loop.getLowerBound()) : std::nullopt;
  return first && *first >= 0 && sizes.isSame(loop.getUpperBound(), size);
}

void SizeChecker::checkIndices(Operation *op, Value tensor, ValueRange indices) {
  IntegerRanges ranges(op);
  for (auto [dim, value] : llvm::enumerate(indices)) {
    OpFoldResult index = sizes.simplify(value), size = sizes.get(tensor, dim);
    // Unsigned comparison: a negative index is larger than every size.
    if (!ranges.isInside(index, size) && !isIndexUpTo(index, size))
      require(op, arith::CmpIPredicate::ult, index, size, describeOutside("an index", tensor, dim, {index}));
  }
}

void SizeChecker::check(Operation *op) {
  if (OpTrait::hasElementwiseMappableTraits(op))
    return checkElementwise(op);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](linalg::LinalgOp op) { checkLinalg(op); })
      .Case([&](tensor::CastOp op) { checkCast(op); })
      .Case([&](tensor::ExpandShapeOp op) { checkExpand(op); })
      .Case([&](tensor::ReshapeOp op) { checkReshape(op); })
      .Case([&](tensor::ConcatOp op) { checkConcat(op); })
      .Case([&](tensor::ExtractOp op) { checkIndices(op, op.getTensor(), op.getIndices()); })
      .Case([&](tensor::InsertOp op) { checkIndices(op, op.getDest(), op.getIndices()); })
      .Case([&](tensor::ExtractSliceOp op) { checkSlice(op, op.getSource()); })
      .Case([&](tensor::InsertSliceOp op) {
        checkSlice(op, op.getDest());
        if (op.getSourceType().getRank() == op.getDestType().getRank())
          for (auto [have, want] : llvm::zip_equal(sizes.getAll(op.getSource()), op.getMixedSizes()))
            requireSame(op, have, want);
      })
      .Case([&](tensor::ParallelInsertSliceOp op) { checkSlice(op, op.getDest()); });
}

namespace {
struct CheckSizesPass : public fp8::impl::CheckSizesBase<CheckSizesPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !func.getBody().hasOneBlock())
      return;
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) {
      if (hasIndices(op) || (hasDynamicShape(op) && !op->getParentOfType<linalg::LinalgOp>()))
        ops.push_back(op);
    });
    if (ops.empty())
      return;
    SizeChecker checker(func);
    for (Operation *op : ops)
      checker.check(op);
  }
};
} // namespace
