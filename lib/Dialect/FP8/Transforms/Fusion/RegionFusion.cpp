// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mechanics of fusing code into regions. The passes decide what to fuse.

#include "RegionFusion.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

//===----------------------------------------------------------------------===//
// Code that can move
//===----------------------------------------------------------------------===//

/// Returns whether the body is arithmetic on scalars and indices, without gathers and branches.
static bool isScalarCode(linalg::GenericOp op) {
  for (Operation &inner : op.getBody()->without_terminator()) {
    bool scalar = isa<linalg::IndexOp>(inner) ||
                  (isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) && isPure(&inner));
    if (!scalar || llvm::any_of(inner.getOperandTypes(), llvm::IsaPred<ShapedType>) ||
        llvm::any_of(inner.getResultTypes(), llvm::IsaPred<ShapedType>))
      return false;
  }
  return op.hasPureTensorSemantics();
}

linalg::GenericOp fp8::detail::getElementwise(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getNumReductionLoops() != 0 || !isScalarCode(generic))
    return {};
  auto readsInit = [&](OpOperand &init) { return generic.payloadUsesValueFromOperand(&init); };
  return llvm::any_of(generic.getDpsInitsMutable(), readsInit) ? linalg::GenericOp() : generic;
}

bool fp8::detail::isCheap(linalg::GenericOp op) {
  auto code = op.getBody()->without_terminator();
  return llvm::range_size(code) <= kCheapOps && llvm::none_of(code, [](Operation &inner) {
           return isa<math::MathDialect>(inner.getDialect()) || isa<arith::DivFOp, arith::RemFOp>(inner);
         });
}

std::optional<Sum> fp8::detail::matchSum(Operation *op, Reason *why) {
  auto refuse = [&](Reason reason) { return decline(why, reason), std::nullopt; };
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumReductionLoops() == 0 || generic->getNumResults() != 1)
    return refuse("it is no sum with one result");
  if (!isScalarCode(generic))
    return refuse("its code is more than arithmetic on scalars");
  if (!getElementTypeOrSelf(generic.getResult(0)).isF32())
    return refuse("its sum is not in f32");
  auto fill = generic.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!fill || !matchPattern(fill.getInputs().front(), m_PosZeroFloat()))
    return refuse("its sum does not begin with zero");
  Value accumulator = generic.getRegionOutputArgs()[0];
  auto add = generic.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add || !accumulator.hasOneUse() || *accumulator.user_begin() != add)
    return refuse("it reduces by more than an addition");
  return Sum{generic, add.getLhs() == accumulator ? add.getRhs() : add.getLhs(), fill.getOutputs().front()};
}

//===----------------------------------------------------------------------===//
// Where two operations can become one
//===----------------------------------------------------------------------===//

/// Returns whether `op` takes neither time nor memory, so that it may move up.
static bool isLight(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         isa<tensor::EmptyOp, tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
             tensor::CastOp, tensor::DimOp>(op);
}

/// Collects the operations that must move before `place` to make `value` available there; returns
/// false if that is impossible.
static bool collectMoves(Value value, Operation *place, llvm::SetVector<Operation *> &moves) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != place->getBlock() || op->isBeforeInBlock(place) || moves.contains(op))
    return true;
  if (op == place || !isLight(op))
    return false;
  for (Value operand : op->getOperands())
    if (!collectMoves(operand, place, moves))
      return false;
  return moves.insert(op);
}

/// Returns the values that `op` needs. A sum needs its destination, but not the fill with zeros.
static SmallVector<Value> findNeeds(Operation *op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  if (std::optional<Sum> sum = matchSum(op)) {
    values.remove(sum->op.getDpsInits()[0]);
    values.insert(sum->out);
  }
  return values.takeVector();
}

/// Returns whether all readers of `first` but `second` come after `second`.
static bool readersComeLater(Operation *first, Operation *second) {
  return llvm::all_of(first->getUsers(), [&](Operation *user) {
    Operation *reader = first->getBlock()->findAncestorOpInBlock(*user);
    return !reader || reader == second || second->isBeforeInBlock(reader);
  });
}

/// Collects what must move before `first` so that `second` can be computed there; returns false if that is
/// impossible.
static bool collectNeeds(Operation *first, Operation *second, llvm::SetVector<Operation *> &moves) {
  return llvm::all_of(findNeeds(second), [&](Value value) {
    return value.getDefiningOp() == first || collectMoves(value, first, moves);
  });
}

bool fp8::detail::canMeet(Operation *first, Operation *second, Reason *why) {
  llvm::SetVector<Operation *> moves;
  return readersComeLater(first, second) || collectNeeds(first, second, moves) ||
         decline(why,
                 "it needs a value that is computed between the two, while others read the first before");
}

Operation *fp8::detail::findMeetingPoint(RewriterBase &rewriter, Operation *first, Operation *second) {
  if (readersComeLater(first, second))
    return second;
  llvm::SetVector<Operation *> moves;
  if (!collectNeeds(first, second, moves))
    return nullptr;
  for (Operation *op : moves)
    rewriter.moveOpBefore(op, first);
  return first;
}

bool fp8::detail::readsTooMuch(Operation *op, linalg::GenericOp code, AffineMap loops, Value tensor) {
  ElementRegion region = *ElementRegion::of(op);
  llvm::SetVector<std::pair<Value, AffineMap>> reads;
  for (auto [input, map] : llvm::zip(region.inputs, region.inputMaps()))
    if (input != tensor)
      reads.insert({input, map});
  for (OpOperand *input : code.getDpsInputOperands())
    if (input->get() != tensor)
      reads.insert({input->get(), code.getMatchingIndexingMap(input).compose(loops)});
  return reads.size() > getTarget(op).getMaxFusedInputs();
}

AffineMap fp8::detail::findLoops(linalg::GenericOp op, OpOperand &operand, AffineMap tensorMap) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  return map.isPermutation() ? inversePermutation(map).compose(tensorMap) : AffineMap();
}

//===----------------------------------------------------------------------===//
// How a region grows
//===----------------------------------------------------------------------===//

/// Builds the region that changes nothing; that of a matmul rounds the sum to the result's type.
static void buildIdentity(OpBuilder &builder, ElementRegion &region) {
  SmallVector<Type> types(region.firstArgument, builder.getF32Type());
  for (Value input : region.inputs)
    types.push_back(getElementTypeOrSelf(input));
  Location loc = region.op->getLoc();
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(region.region, {}, types, SmallVector<Location>(types.size(), loc));
  Value element = body->getArgument(0);
  Type wanted = getElementTypeOrSelf(region.outs[0]);
  if (region.firstArgument != 0 && element.getType() != wanted)
    element = arith::TruncFOp::create(builder, loc, wanted, element);
  YieldOp::create(builder, loc, element, ValueRange());
}

RegionFuser::RegionFuser(RewriterBase &rewriter, Operation *op) : rewriter(rewriter), op(op) {
  ElementRegion region = *ElementRegion::of(op);
  if (region.isEmpty())
    buildIdentity(rewriter, region);
  body = &region.body();
  firstArgument = region.firstArgument;
  inputs.assign(region.inputs.begin(), region.inputs.end());
  inputMaps.assign(region.inputMaps().begin(), region.inputMaps().end());
  llvm::append_range(extraOuts, region.extras());
  llvm::append_range(extraMaps, region.extraMaps());
  llvm::append_range(yielded, region.yield()->getOperands());
}

Value RegionFuser::addInput(Value tensor, AffineMap map) {
  for (auto [i, known, knownMap] : llvm::enumerate(inputs, inputMaps))
    if (known == tensor && knownMap == map)
      return getArgument(i);
  inputs.push_back(tensor);
  inputMaps.push_back(map);
  return body->addArgument(getElementTypeOrSelf(tensor), op->getLoc());
}

/// Builds the value of `index` in a region; `loops` maps its dimensions to the loops of the code.
static Value createIndex(OpBuilder &builder, linalg::IndexOp index, AffineMap loops) {
  AffineExpr expr = loops.getResult(index.getDim());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return IndexOp::create(builder, index.getLoc(), builder.getIndexType(), dim.getPosition());
  int64_t value = cast<AffineConstantExpr>(expr).getValue();
  return arith::ConstantIndexOp::create(builder, index.getLoc(), value);
}

IRMapping RegionFuser::inlineCode(linalg::GenericOp code, AffineMap loops,
                                  const llvm::DenseMap<Value, Value> &known, bool atEnd) {
  IRMapping mapping;
  for (OpOperand *input : code.getDpsInputOperands()) {
    Value element = known.lookup(input->get());
    if (!element)
      element = isa<ShapedType>(input->get().getType())
                    ? addInput(input->get(), code.getMatchingIndexingMap(input).compose(loops))
                    : input->get();
    mapping.map(code.getMatchingBlockArgument(input), element);
  }
  OpBuilder::InsertionGuard guard(rewriter);
  if (atEnd)
    rewriter.setInsertionPoint(body->getTerminator());
  else
    rewriter.setInsertionPointToStart(body);
  Value accumulator = code.getNumReductionLoops() ? code.getRegionOutputArgs()[0] : Value();
  for (Operation &inner : code.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      mapping.map(index.getResult(), createIndex(rewriter, index, loops));
    else if (!accumulator || !llvm::is_contained(inner.getOperands(), accumulator))
      rewriter.clone(inner, mapping);
  }
  return mapping;
}

void RegionFuser::replaceInput(unsigned i, Value element) {
  BlockArgument argument = body->getArgument(firstArgument + i);
  rewriter.replaceAllUsesWith(argument, element);
  llvm::replace(yielded, Value(argument), element);
  body->eraseArgument(firstArgument + i);
  inputs.erase(inputs.begin() + i);
  inputMaps.erase(inputMaps.begin() + i);
}

void RegionFuser::addExtra(Value element, AffineMap map, Value out) {
  yielded.push_back(element);
  extraMaps.push_back(map);
  extraOuts.push_back(out);
}

Value RegionFuser::exchangeFirst(unsigned i) {
  std::swap(yielded.front(), yielded[1 + i]);
  Value out = extraOuts[i];
  extraOuts[i] = ElementRegion::of(op)->outs.front();
  return out;
}

ArrayAttr RegionFuser::finishBody() {
  rewriter.modifyOpInPlace(body->getTerminator(), [&] { body->getTerminator()->setOperands(yielded); });
  SmallVector<AffineMap> maps(inputMaps);
  llvm::append_range(maps, extraMaps);
  return maps.empty() ? ArrayAttr() : rewriter.getAffineMapArrayAttr(maps);
}

Operation *RegionFuser::rebuild(Operation *place, Value out) {
  ArrayAttr maps = finishBody();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(place);
  ElementRegion region = *ElementRegion::of(op);
  SmallVector<Value> outs(region.outs.take_front(region.firstExtra()));
  if (out)
    outs.front() = out;
  llvm::append_range(outs, extraOuts);
  return rebuildElementRegion(rewriter, op, inputs, outs, maps);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Returns the map from dimensions of the region to loops of `sum`, or null unless it sums over the
/// leading dimensions in their order.
static AffineMap findLoopsOfSum(const Sum &sum, Value tensor, AffineMap map) {
  linalg::GenericOp op = sum.op;
  OpOperand *found = nullptr;
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get() == tensor) {
      if (found)
        return {};
      found = input;
    }
  AffineMap loops = found && map.isPermutation() ? findLoops(op, *found, map) : AffineMap();
  if (!loops)
    return {};
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0)).compose(loops);
  unsigned kept = out.getNumResults(), all = out.getNumDims();
  if (out != AffineMap::getMultiDimIdentityMap(all, out.getContext()).getSliceMap(all - kept, kept))
    return {};
  int64_t last = -1;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind == utils::IteratorType::parallel)
      continue;
    int64_t dim = cast<AffineDimExpr>(loops.getResult(loop)).getPosition();
    if (dim < last)
      return {};
    last = dim;
  }
  return loops;
}

bool fp8::detail::canFuseSum(Operation *op, Operation *user, Value tensor, AffineMap map, Reason *why) {
  if (user == op || user->getBlock() != op->getBlock())
    return decline(why, "it is in another block");
  if (llvm::is_contained(user->getUsers(), op))
    return decline(why, "the other operation needs the finished sum");
  std::optional<Sum> sum = matchSum(user, why);
  if (!sum)
    return false;
  if (llvm::any_of(sum->op.getDpsInputs(),
                   [&](Value input) { return input != tensor && input.getDefiningOp() == op; }))
    return decline(why, "it reads several results of the other operation");
  AffineMap loops = findLoopsOfSum(*sum, tensor, map);
  if (!loops)
    return decline(why, "it does not sum over the leading dimensions in their order");
  return !readsTooMuch(op, sum->op, loops, tensor) || decline(why, kTooManyInputs);
}

/// Returns the first reader of `tensor` that can become a sum in the region of `op`.
static std::optional<Sum> findSum(Operation *op, Value tensor, AffineMap map) {
  for (Operation *user : tensor.getUsers())
    if (canFuseSum(op, user, tensor, map))
      return matchSum(user);
  return std::nullopt;
}

Operation *fp8::detail::fuseSums(RewriterBase &rewriter, Operation *op, Value tensor, AffineMap map,
                                 function_ref<Value(RegionFuser &)> elementOf) {
  std::optional<Sum> sum = findSum(op, tensor, map);
  if (!sum)
    return op;
  bool sumFirst = sum->op->isBeforeInBlock(op);
  Operation *place =
      sumFirst ? findMeetingPoint(rewriter, sum->op, op) : findMeetingPoint(rewriter, op, sum->op);
  if (!place)
    return op;
  AffineMap loops = findLoopsOfSum(*sum, tensor, map);
  RegionFuser fuser(rewriter, op);
  IRMapping mapping = fuser.inlineCode(sum->op, loops, {{tensor, elementOf(fuser)}}, /*atEnd=*/true);
  fuser.addExtra(mapping.lookupOrDefault(sum->addend),
                 sum->op.getMatchingIndexingMap(sum->op.getDpsInitOperand(0)).compose(loops), sum->out);
  Operation *fused = fuser.rebuild(place);
  rewriter.replaceAllUsesWith(op->getResults(), fused->getResults().drop_back());
  rewriter.replaceAllUsesWith(sum->op->getResults(), fused->getResults().take_back());
  rewriter.eraseOp(sum->op);
  rewriter.eraseOp(op);
  return fused;
}
