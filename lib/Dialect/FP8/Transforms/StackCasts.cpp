// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stacks that loops of forward fill and backward only casts, slice by slice, are filled with
// bytes. A cast with a scale of the state is elementwise: slices of the bytes are the bytes
// of the slices.

#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_STACKCASTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// The elements of operand 0, from f32 to what the program casts: rounded.
bool isNarrowing(Operation *op) {
  std::optional<Rearrangement> view = op ? matchRearrangement(op) : std::nullopt;
  return view && isa_and_present<arith::TruncFOp>(view->cast) && view->map.isIdentity() &&
         view->input == op->getOperand(0) && getElementTypeOrSelf(view->input).isF32();
}

/// Elements of operand 0, each as it is or narrowed.
bool isView(Operation *op) {
  if (!op)
    return false;
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp, tensor::ExtractSliceOp>(op) ||
      isNarrowing(op))
    return true;
  std::optional<Rearrangement> view = matchRearrangement(op);
  return view && !view->cast && view->input == op->getOperand(0);
}

bool isZeroOrUndefined(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.getInputs().front();
  return value.getDefiningOp<tensor::EmptyOp>() || matchPattern(value, m_PosZeroFloat());
}

Type withElements(Type type, Type element) { return cast<RankedTensorType>(type).clone(element); }

/// A value that a loop carries and fills: `body[index] = source` in every iteration.
struct Stack {
  OpOperand *init;
  SmallVector<Value, 3> values; ///< in the loop's regions, and its result
  tensor::InsertSliceOp insert;
  SmallVector<OpOperand *, 2> handedOn; ///< in the loop's terminators
};

std::optional<Stack> matchStack(OpResult result) {
  unsigned i = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner())) {
    OpOperand &yielded = loop.getBody()->getTerminator()->getOpOperand(i);
    BlockArgument body = loop.getRegionIterArg(i);
    auto insert = yielded.get().getDefiningOp<tensor::InsertSliceOp>();
    if (!insert || insert.getDest() != body)
      return std::nullopt;
    return Stack{&loop.getInitArgsMutable()[i], {body, insert.getResult(), result}, insert, {&yielded}};
  }
  auto loop = dyn_cast<scf::WhileOp>(result.getOwner());
  if (!loop)
    return std::nullopt;
  OpOperand &passed = loop.getConditionOp().getArgsMutable()[i];
  auto before = dyn_cast<BlockArgument>(passed.get());
  if (!before || before.getOwner() != loop.getBeforeBody())
    return std::nullopt;
  BlockArgument body = loop.getAfterArguments()[i];
  OpOperand &yielded = loop.getYieldOp()->getOpOperand(before.getArgNumber());
  auto insert = yielded.get().getDefiningOp<tensor::InsertSliceOp>();
  if (!insert || insert.getDest() != body)
    return std::nullopt;
  return Stack{&loop.getInitsMutable()[before.getArgNumber()],
               {before, body, insert.getResult(), result},
               insert,
               {&passed, &yielded}};
}

/// A cast of backward, the stacks that it reads, and all other casts that read these.
class CastStacks {
public:
  CastStacks(JoinedPair &pair, QuantizeOp first)
      : pair(pair), scale(first.getScale()), format(first.getFormat()), column(*first.getColumn()),
        element(getElementTypeOrSelf(first.getInputs().front())), builder(first) {}
  /// False where something but such casts reads one of them.
  bool find(QuantizeOp first);
  void replace();

private:
  bool isSameCast(QuantizeOp op) const;
  QuantizeOp findCastInForward(Value value) const;
  Value getSource(Value value) const;
  bool addSource(Value value);
  bool addStack(OpResult result);
  bool addReaders(Value value, bool inBackward);
  bool addReader(OpOperand &use);
  Value quantize(Value value);
  Value getBytes(Value value);

  JoinedPair &pair;
  Value scale;
  Type format;
  uint64_t column;
  Type element; ///< of what is cast
  OpBuilder builder;
  SmallVector<Stack> stacks;
  llvm::DenseSet<Value> stacked;
  llvm::SetVector<Operation *> casts, views, sizes;
  DenseMap<Value, Value> bytes;
};

} // namespace

/// With the scale that the state has while forward runs, and recorded there.
static bool repeatsForward(QuantizeOp op, JoinedPair &pair) {
  auto scale = op.getScale().getDefiningOp<tensor::ExtractSliceOp>();
  if (!scale || !scale.getOffsets().empty() || !op.getColumn() || op.getRecordAmax() || op.getBlockAttr() ||
      op.getTransposition() || !op.getProducer().empty() || pair.isForward(op.getOperation()))
    return false;
  auto state = dyn_cast<BlockArgument>(scale.getSource());
  return state && state.getOwner() == &pair.getFunction().front();
}

bool CastStacks::isSameCast(QuantizeOp op) const {
  return repeatsForward(op, pair) && *op.getColumn() == column && op.getFormat() == format &&
         getElementTypeOrSelf(op.getInputs().front()) == element;
}

/// Forward's own cast of `value`; it has the same scale.
QuantizeOp CastStacks::findCastInForward(Value value) const {
  if (getElementTypeOrSelf(value) != element)
    return nullptr;
  for (Operation *user : value.getUsers())
    if (auto op = dyn_cast<QuantizeOp>(user))
      if (op.getColumn() && *op.getColumn() == column && op.getFormat() == format &&
          pair.isForward(op.getOperation()) && op->getBlock() == value.getParentBlock() &&
          op.getProducer().empty())
        return op;
  return nullptr;
}

/// What `value` is a view of; a value that forward casts is not looked behind.
Value CastStacks::getSource(Value value) const {
  while (isView(value.getDefiningOp()) && !findCastInForward(value))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

bool CastStacks::find(QuantizeOp first) {
  Value value = first.getInputs().front(), source = getSource(value);
  if (source == value || !pair.isForward(source))
    return false;
  auto result = dyn_cast<OpResult>(source);
  if (result && matchStack(result))
    return addStack(result);
  return addReaders(source, /*inBackward=*/true);
}

bool CastStacks::addSource(Value value) {
  auto result = dyn_cast<OpResult>(getSource(value));
  return !result || !matchStack(result) || addStack(result);
}

bool CastStacks::addStack(OpResult result) {
  if (stacked.contains(result))
    return true;
  Stack stack = *matchStack(result);
  if (!isZeroOrUndefined(stack.init->get()))
    return false;
  stacks.push_back(stack);
  stacked.insert(stack.values.begin(), stack.values.end());
  auto addAll = [&](Value value) { return addReaders(value, /*inBackward=*/false); };
  return addSource(stack.insert.getSource()) && llvm::all_of(stack.values, addAll);
}

bool CastStacks::addReaders(Value value, bool inBackward) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    return (inBackward && pair.isForward(use.getOwner())) || addReader(use);
  });
}

bool CastStacks::addReader(OpOperand &use) {
  Operation *op = use.getOwner();
  bool isPlumbing = llvm::any_of(stacks, [&](Stack &stack) {
    return llvm::is_contained(stack.handedOn, &use) ||
           (op == stack.insert && use.get() == stack.insert.getDest());
  });
  if (isPlumbing)
    return true;
  if (isa<tensor::DimOp>(op))
    return sizes.insert(op), true;
  if (auto cast = dyn_cast<QuantizeOp>(op))
    return isSameCast(cast) && use.getOperandNumber() == 0 && (casts.insert(op), true);
  // What an inner loop filled is inserted into the stack of an outer one.
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    auto dest = dyn_cast<BlockArgument>(insert.getDest());
    auto loop = dest ? dyn_cast<LoopLikeOpInterface>(dest.getOwner()->getParentOp()) : LoopLikeOpInterface();
    if (!loop || use.get() != insert.getSource())
      return false;
    return llvm::any_of(loop->getResults(), [&](OpResult result) {
      std::optional<Stack> stack = matchStack(result);
      return stack && stack->insert == insert && addStack(result);
    });
  }
  if (!isView(op) || use.getOperandNumber() != 0)
    return false;
  views.insert(op);
  return addReaders(op->getResult(0), /*inBackward=*/false);
}

//===----------------------------------------------------------------------===//
// Replacing
//===----------------------------------------------------------------------===//

Value CastStacks::quantize(Value value) {
  if (QuantizeOp known = findCastInForward(value))
    return known->getResult(0);
  builder.setInsertionPointAfterValue(value);
  if (value.getParentBlock() == scale.getParentBlock() && !value.getDefiningOp())
    builder.setInsertionPointAfterValue(scale);
  Location loc = value.getLoc();
  if (getElementTypeOrSelf(value) != element)
    value = arith::TruncFOp::create(builder, loc, withElements(value.getType(), element), value);
  SmallVector<Value> outs{
      tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, value), format),
      tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, builder.getF32Type())};
  return QuantizeOp::create(builder, loc, TypeRange(ValueRange(outs)), value, scale, outs,
                            /*record_amax=*/false, DenseI64ArrayAttr(), DenseI64ArrayAttr(),
                            builder.getI64IntegerAttr(column), ArrayAttr())
      .getResult(0);
}

/// The bytes of a view are the view of the bytes.
Value CastStacks::getBytes(Value value) {
  if (stacked.contains(value))
    return value;
  if (Value known = bytes.lookup(value))
    return known;
  if (getSource(value) == value)
    return bytes[value] = quantize(value);
  Operation *view = value.getDefiningOp();
  Value source = getBytes(view->getOperand(0));
  if (isNarrowing(view))
    return bytes[value] = source;
  builder.setInsertionPoint(view);
  Operation *copy = builder.clone(*view);
  copy->setOperand(0, source);
  copy->getResult(0).setType(withElements(value.getType(), format));
  if (auto moved = dyn_cast<linalg::LinalgOp>(copy)) {
    builder.setInsertionPoint(copy);
    Value init = copy->getOperand(1);
    copy->setOperand(1, tensor::EmptyOp::create(builder, init.getLoc(),
                                                tensor::getMixedSizes(builder, init.getLoc(), init), format));
    for (BlockArgument argument : moved.getBlock()->getArguments())
      argument.setType(format);
  }
  return bytes[value] = copy->getResult(0);
}

void CastStacks::replace() {
  Operation *slice = scale.getDefiningOp();
  slice->moveBefore(&pair.getFunction().front().front());
  builder.setInsertionPointAfter(slice);
  auto one = DenseElementsAttr::get(cast<RankedTensorType>(scale.getType()), llvm::APFloat(1.0f));
  Value inverse = arith::DivFOp::create(builder, slice->getLoc(),
                                        arith::ConstantOp::create(builder, slice->getLoc(), one), scale);
  for (Stack &stack : stacks) {
    Value init = stack.init->get();
    Location loc = init.getLoc();
    builder.setInsertionPoint(stack.init->getOwner());
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(format));
    Value empty = tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, init), format);
    stack.init->set(linalg::FillOp::create(builder, loc, zero, empty).getResult(0));
    for (Value value : stack.values)
      value.setType(withElements(value.getType(), format));
  }
  for (Stack &stack : stacks)
    stack.insert.getSourceMutable().assign(getBytes(stack.insert.getSource()));
  for (Operation *op : casts) {
    op->getResult(0).replaceAllUsesWith(getBytes(op->getOperand(0)));
    op->getResult(1).replaceAllUsesWith(inverse);
    op->erase();
  }
  for (Operation *op : sizes)
    if (!stacked.contains(op->getOperand(0)))
      op->setOperand(0, getBytes(op->getOperand(0)));
  for (Operation *op : llvm::reverse(views))
    if (isOpTriviallyDead(op))
      op->erase();
}

namespace {

class StackCasts : public impl::StackCastsBase<StackCasts> {
public:
  void runOnOperation() final {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (std::optional<JoinedPair> pair = JoinedPair::find(function))
        while (replaceOne(*pair)) {
        }
  }

private:
  /// True if there was something to replace.
  static bool replaceOne(JoinedPair &pair) {
    WalkResult walked = pair.getFunction().walk([&](QuantizeOp op) {
      if (!repeatsForward(op, pair))
        return WalkResult::advance();
      CastStacks stacks(pair, op);
      if (!stacks.find(op))
        return WalkResult::advance();
      stacks.replace();
      return WalkResult::interrupt();
    });
    return walked.wasInterrupted();
  }
};

} // namespace
} // namespace fp8
