// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations on tensors of dynamic shape say nothing of what happens where their sizes do
// not fit together. Compiled code would read and write past the end; so whatever cannot be
// shown to fit is asserted, before anything else where it follows from the arguments.

#include "TensorSizes.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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

namespace {
/// Asserts what one function's operations need.
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
  void requireAtMost(Operation *op, OpFoldResult a, OpFoldResult b);
  void require(Operation *op, arith::CmpIPredicate predicate, OpFoldResult a, OpFoldResult b,
               const std::string &message);
  std::string describeMismatch(OpFoldResult a, OpFoldResult b);

  OpFoldResult apply(Operation *op, AffineExpr expr, ArrayRef<OpFoldResult> symbols) {
    OpBuilder builder(op);
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

/// "argument 2 'x'"
static std::string describe(BlockArgument argument) {
  return "argument " + std::to_string(argument.getArgNumber()) + " '" + getArgumentName(argument) + "'";
}

/// The argument and dimension that a size is that of, if it is.
static std::optional<std::pair<BlockArgument, int64_t>> getArgumentSize(OpFoldResult size) {
  auto value = dyn_cast<Value>(size);
  auto op = value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
  auto argument = op ? dyn_cast<BlockArgument>(op.getSource()) : BlockArgument();
  if (!argument || !op.getConstantIndex() || !isa<func::FuncOp>(argument.getOwner()->getParentOp()))
    return std::nullopt;
  return std::pair(argument, *op.getConstantIndex());
}

std::string SizeChecker::describeMismatch(OpFoldResult a, OpFoldResult b) {
  auto left = getArgumentSize(a), right = getArgumentSize(b);
  // The argument that comes later is the one that does not fit.
  if (right && (!left || left->first.getArgNumber() < right->first.getArgNumber())) {
    std::swap(left, right);
    std::swap(a, b);
  }
  if (left && (right || getConstantIntValue(b))) {
    std::string text = describe(left->first) + ": size " + std::to_string(left->second) + " must be ";
    if (!right)
      return text + std::to_string(*getConstantIntValue(b));
    return text + "size " + std::to_string(right->second) + " of " + describe(right->first);
  }
  llvm::SetVector<BlockArgument> arguments;
  sizes.collectArguments(a, arguments);
  sizes.collectArguments(b, arguments);
  std::string text = "sizes do not fit together";
  if (arguments.empty())
    return text;
  SmallVector<BlockArgument> inOrder = arguments.takeVector();
  llvm::sort(inOrder, [](BlockArgument a, BlockArgument b) { return a.getArgNumber() < b.getArgNumber(); });
  return text + ", which follow from " +
         llvm::join(llvm::map_range(inOrder, [](BlockArgument a) { return describe(a); }), ", ");
}

void SizeChecker::require(Operation *op, arith::CmpIPredicate predicate, OpFoldResult a, OpFoldResult b,
                          const std::string &message) {
  bool atStart = op->getBlock() == &func.front() && sizes.hoist(a) && sizes.hoist(b);
  OpBuilder builder = atStart ? sizes.atStart() : OpBuilder(op);
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
    require(op, arith::CmpIPredicate::eq, a, b, describeMismatch(a, b));
}

void SizeChecker::requireAtMost(Operation *op, OpFoldResult a, OpFoldResult b) {
  std::optional<int64_t> left = getConstantIntValue(a), right = getConstantIntValue(b);
  bool isCount = isa<Value>(b) && isa_and_nonnull<tensor::DimOp>(cast<Value>(b).getDefiningOp());
  if (sizes.isSame(a, b) || (left && right && *left <= *right) || (left && *left <= 0 && isCount))
    return;
  require(op, arith::CmpIPredicate::sle, a, b, "an index or a slice is outside of its tensor");
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

/// Every dimension of the iteration space has one size; other index expressions stay within
/// the operand at its end. (Their coefficients are positive: they begin at the front.)
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
    requireAtMost(op, apply(op, expr.replaceDims(last) + 1, extents), size);
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

/// The elements of the shape are read where they were put together.
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
    requireAtMost(op, constant(0), shape.back());
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
  for (auto [dim, parts] :
       llvm::enumerate(llvm::zip_equal(op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides()))) {
    OpFoldResult first = sizes.simplify(std::get<0>(parts)), count = sizes.simplify(std::get<1>(parts));
    OpFoldResult extent = sizes.get(whole, dim);
    if (getConstantIntValue(first) == 0 && sizes.isSame(count, extent))
      continue;
    requireAtMost(op, constant(0), first);
    requireAtMost(op, constant(0), count);
    requireAtMost(op, first, extent); // so that the sum below does not overflow
    requireAtMost(op, count, extent);
    requireAtMost(op, apply(op, offset + (size - 1) * stride + 1, {first, count, std::get<2>(parts)}),
                  extent);
  }
}

void SizeChecker::checkIndices(Operation *op, Value tensor, ValueRange indices) {
  for (auto [dim, index] : llvm::enumerate(indices)) {
    requireAtMost(op, constant(0), sizes.simplify(index));
    requireAtMost(op, apply(op, getAffineSymbolExpr(0, op->getContext()) + 1, {OpFoldResult(index)}),
                  sizes.get(tensor, dim));
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
      });
}

namespace {
struct CheckSizesPass : public fp8::impl::CheckSizesBase<CheckSizesPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !func.getBody().hasOneBlock())
      return;
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) {
      if (hasDynamicShape(op) && !op->getParentOfType<linalg::LinalgOp>())
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
