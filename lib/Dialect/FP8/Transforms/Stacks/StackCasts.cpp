// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills stacks with FP8 bytes where a loop of forward fills a stack slice by slice and backward
// only casts slices of it: in a joined pair, and in a function that is both. A cast with a scale
// of the state is elementwise, so that slices of the bytes are the bytes of the slices. Where
// each slice has a scale of its own, a second stack holds the scale_inv of each.

#include "CastStacks.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_STACKCASTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// The results of a cast.
struct CastResults {
  Value bytes, scaleInv;
};

/// Fills stacks with bytes.
class StackReplacer {
public:
  StackReplacer(CastStacks &found, OpBuilder builder)
      : found(found), scale(found.scale), results(found.results), builder(builder) {}
  void replace();

private:
  Value invertScale(Location loc, Value scale);
  void stackScales();
  void carryScales(unsigned i, Value none, ArrayRef<int64_t> dims);
  void fillScales(unsigned i);
  void stackBytes();
  void eraseCasts();
  CastResults quantize(Value value);
  Value getBytes(Value value);
  Value getScaleInv(Value value);

  CastStacks &found;
  CastScale &scale;
  SmallVector<OpResult> &results;
  OpBuilder builder;
  Operation *start = nullptr; ///< the last operation that computes the scale from arguments
  DenseMap<Value, Value> bytes, scales;
  DenseMap<Value, CastResults> quantized;
  /// The stack of scale_inv beside each stack: its value in the loop's body, and the number of its result.
  SmallVector<std::pair<Value, unsigned>> carried;
};

Type withElements(Type type, Type element) { return cast<RankedTensorType>(type).clone(element); }

} // namespace

Value StackReplacer::invertScale(Location loc, Value scale) {
  auto one = DenseElementsAttr::get(cast<RankedTensorType>(scale.getType()), llvm::APFloat(1.0f));
  return arith::DivFOp::create(builder, loc, arith::ConstantOp::create(builder, loc, one), scale);
}

/// Makes the loop that fills stack `i` carry a stack of scale_inv too, whose elements are `none` before the
/// loop.
void StackReplacer::carryScales(unsigned i, Value none, ArrayRef<int64_t> dims) {
  OpOperand *init = matchStack(results[i])->init;
  Location loc = init->get().getLoc();
  builder.setInsertionPoint(init->getOwner());
  SmallVector<OpFoldResult> all = tensor::getMixedSizes(builder, loc, init->get()), ofSlices;
  for (int64_t dim : dims)
    ofSlices.push_back(all[dim]);
  Value empty = tensor::EmptyOp::create(builder, loc, ofSlices, builder.getF32Type());
  Value filled = linalg::FillOp::create(builder, loc, none, empty).getResult(0);

  SmallVector<std::pair<unsigned, unsigned>> moved; // results of the same loop
  for (auto [j, result] : llvm::enumerate(results))
    if (result.getOwner() == results[i].getOwner())
      moved.push_back({j, result.getResultNumber()});
  Carried scalesOfLoop = addCarried(results[i].getOwner(), filled);
  for (auto [j, number] : moved)
    results[j] = scalesOfLoop.result.getOwner()->getResult(number);
  carried.push_back({scalesOfLoop.body, scalesOfLoop.result.getResultNumber()});
}

/// Inserts the scale_inv of each slice that is inserted into stack `i` into the stack beside.
void StackReplacer::fillScales(unsigned i) {
  Stack stack = *matchStack(results[i]);
  Value body = carried[i].first, inserted = getScaleInv(stack.insert.getSource());
  builder.setInsertionPointAfter(stack.insert);
  Value filled = insertSliceValues(builder, stack.insert, inserted, body, *found.findSliceDims(results[i]));
  body.replaceAllUsesExcept(filled, filled.getDefiningOp());
  Stack ofScales = *matchStack(results[i].getOwner()->getResult(carried[i].second));
  for (auto [value, scale] : llvm::zip_equal(stack.values, ofScales.values))
    scales[value] = scale;
}

/// Makes a stack of scale_inv beside each stack. A slice that no iteration inserts is zeros, and
/// has the scale_inv of zeros.
void StackReplacer::stackScales() {
  Location loc = start->getLoc();
  auto zeros =
      DenseElementsAttr::get(RankedTensorType::get({1}, found.element), builder.getZeroAttr(found.element));
  Value zero = arith::ConstantOp::create(builder, loc, zeros);
  Value inverse = invertScale(loc, scale.cloneFor(builder, zero));
  Value none = tensor::ExtractOp::create(builder, loc, inverse, ValueRange());
  SmallVector<SliceDims> dims =
      llvm::map_to_vector(results, [&](OpResult result) { return *found.findSliceDims(result); });
  for (unsigned i = 0; i < results.size(); ++i)
    carryScales(i, none, dims[i]);
  found.stacked.clear();
  for (auto [i, result] : llvm::enumerate(results))
    for (Value value : matchStack(result)->values)
      found.stacked[value] = i;
  for (Operation *op : found.casts)
    op->getResult(1).replaceAllUsesWith(getScaleInv(op->getOperand(0)));
}

/// Returns the scale_inv of each slice of `value`.
Value StackReplacer::getScaleInv(Value value) {
  if (Value known = scales.lookup(value))
    return known;
  if (auto known = found.stacked.find(value); known != found.stacked.end()) {
    fillScales(known->second);
    return scales.lookup(value);
  }
  if (found.getSource(value) == value)
    return scales[value] = quantize(value).scaleInv;
  Operation *view = value.getDefiningOp();
  Value ofSource = getScaleInv(view->getOperand(0));
  builder.setInsertionPoint(view);
  return scales[value] = viewSliceValues(builder, view, ofSource, *found.findSliceDims(view->getOperand(0)));
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

CastResults StackReplacer::quantize(Value value) {
  if (auto known = quantized.find(value); known != quantized.end())
    return known->second;
  if (QuantizeOp known = found.findCastInForward(value))
    return quantized[value] = {known->getResult(0), known->getResult(1)};
  builder.setInsertionPointAfterValue(value);
  if (value.getParentBlock() == start->getBlock() && !value.getDefiningOp())
    builder.setInsertionPointAfter(start);
  Location loc = value.getLoc();
  Value narrow = value;
  if (getElementTypeOrSelf(value) != found.element)
    narrow = arith::TruncFOp::create(builder, loc, withElements(value.getType(), found.element), value);
  Value ownScale = scale.cloneFor(builder, narrow);
  SmallVector<Value> outs{
      tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, narrow), found.format),
      tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, builder.getF32Type())};
  QuantizeParts parts(narrow, ownScale, outs);
  parts.column = found.column;
  auto op = parts.create(builder, loc);
  return quantized[value] = {op->getResult(0), op->getResult(1)};
}

/// Returns the bytes of `value`; the bytes of a view are the view of the bytes.
Value StackReplacer::getBytes(Value value) {
  if (found.stacked.contains(value))
    return value;
  if (Value known = bytes.lookup(value))
    return known;
  if (found.getSource(value) == value)
    return bytes[value] = quantize(value).bytes;
  Operation *view = value.getDefiningOp();
  Value source = getBytes(view->getOperand(0));
  if (isNarrowing(view))
    return bytes[value] = source;
  builder.setInsertionPoint(view);
  Operation *copy = builder.clone(*view);
  copy->setOperand(0, source);
  copy->getResult(0).setType(withElements(value.getType(), found.format));
  if (auto moved = dyn_cast<linalg::LinalgOp>(copy)) {
    builder.setInsertionPoint(copy);
    Value init = copy->getOperand(1);
    copy->setOperand(1, tensor::EmptyOp::create(builder, init.getLoc(),
                                                tensor::getMixedSizes(builder, init.getLoc(), init),
                                                found.format));
    for (BlockArgument argument : moved.getBlock()->getArguments())
      argument.setType(found.format);
  }
  return bytes[value] = copy->getResult(0);
}

void StackReplacer::stackBytes() {
  SmallVector<Stack> stacks =
      llvm::map_to_vector(results, [](OpResult result) { return *matchStack(result); });
  for (Stack &stack : stacks) {
    Value init = stack.init->get();
    Location loc = init.getLoc();
    builder.setInsertionPoint(stack.init->getOwner());
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(found.format));
    Value empty =
        tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, init), found.format);
    stack.init->set(linalg::FillOp::create(builder, loc, zero, empty).getResult(0));
    for (Value value : stack.values)
      value.setType(withElements(value.getType(), found.format));
  }
  for (Stack &stack : stacks)
    stack.insert.getSourceMutable().assign(getBytes(stack.insert.getSource()));
  for (Operation *op : found.casts)
    op->getResult(0).replaceAllUsesWith(getBytes(op->getOperand(0)));
  for (Operation *op : found.sizes)
    if (!found.stacked.contains(op->getOperand(0)))
      op->setOperand(0, getBytes(op->getOperand(0)));
}

/// Erases the casts, the code that computed their scales, and the views that they read.
void StackReplacer::eraseCasts() {
  for (Operation *op : found.casts) {
    if (cast<QuantizeOp>(op).getRecordAmax()) { // forward records it: 0 changes no maximum
      builder.setInsertionPoint(op);
      auto none = DenseElementsAttr::get(cast<RankedTensorType>(op->getResult(2).getType()), 0.0f);
      op->getResult(2).replaceAllUsesWith(arith::ConstantOp::create(builder, op->getLoc(), none));
    }
    SmallVector<Operation *> code(CastScale::of(cast<QuantizeOp>(op))->getTensorCode());
    op->erase();
    for (Operation *inner : llvm::reverse(code))
      if (isOpTriviallyDead(inner))
        inner->erase();
  }
  for (Operation *op : llvm::reverse(found.views))
    if (isOpTriviallyDead(op))
      op->erase();
}

void StackReplacer::replace() {
  start = scale.moveToStart();
  if (!start) { // no operation computes the scale: it is an argument
    auto function = found.casts.front()->getParentOfType<func::FuncOp>();
    OpBuilder atStart = OpBuilder::atBlockBegin(&function.front());
    start = arith::ConstantIndexOp::create(atStart, function.getLoc(), 0);
  }
  builder.setInsertionPointAfter(start);
  if (scale.followsFromTensor()) {
    stackScales();
  } else {
    Value inverse = invertScale(start->getLoc(), scale.getValue());
    for (Operation *op : found.casts)
      op->getResult(1).replaceAllUsesWith(inverse);
  }
  stackBytes();
  eraseCasts();
}

namespace {

class StackCasts : public impl::StackCastsBase<StackCasts> {
public:
  void runOnOperation() final {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      std::optional<JoinedPair> pair = JoinedPair::find(function);
      while (replaceOne(function, pair)) {
      }
    }
  }

private:
  static std::optional<Forward> findForward(QuantizeOp op, std::optional<JoinedPair> &pair);
  static bool replaceOne(func::FuncOp function, std::optional<JoinedPair> &pair);
};

} // namespace

/// The part of the function that fills the stack of which `op` casts a slice; unset where `op` is
/// no such cast. In a pair that part is forward, and a cast that records its amax casts a tensor
/// of backward.
std::optional<Forward> StackCasts::findForward(QuantizeOp op, std::optional<JoinedPair> &pair) {
  if (pair)
    return op.getRecordAmax() || pair->isForward(op) ? std::nullopt
                                                     : std::optional(Forward(pair->getEndForward()));
  Value value = op.getInputs().front();
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto result = dyn_cast<OpResult>(value);
  if (!result || !matchStack(result))
    return std::nullopt;
  Operation *reader = result.getOwner()->getBlock()->findAncestorOpInBlock(*op);
  return reader && reader != op.getOperation() ? std::optional(Forward(reader)) : std::nullopt;
}

/// Replaces the first stack that can hold bytes; false where there is none.
bool StackCasts::replaceOne(func::FuncOp function, std::optional<JoinedPair> &pair) {
  WalkResult walked = function.walk([&](QuantizeOp op) {
    std::optional<CastScale> scale = CastScale::of(op);
    std::optional<Forward> forward = scale ? findForward(op, pair) : std::nullopt;
    if (!forward)
      return WalkResult::advance();
    CastStacks stacks(*forward, op, *scale);
    if (!stacks.find(op))
      return WalkResult::advance();
    StackReplacer(stacks, OpBuilder(op)).replace();
    return WalkResult::interrupt();
  });
  return walked.wasInterrupted();
}

} // namespace fp8
