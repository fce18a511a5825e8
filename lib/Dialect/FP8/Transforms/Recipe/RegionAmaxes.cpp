// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carries amaxes out of loops and branches, from the innermost to the function.

#include "RegionAmaxes.h"
#include "WidenRegions.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace fp8;

bool fp8::canCarryOut(Operation *op) {
  if (isa<scf::ExecuteRegionOp>(op))
    return op->getRegion(0).hasOneBlock();
  return isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::IndexSwitchOp, scf::ForallOp>(op);
}

namespace {

/// Adds one result per recorded column to one loop or branch.
class RegionCarrier {
public:
  /// `recorded`: by column, the amaxes of blocks of `op` itself; `none`: the value for no amax.
  RegionCarrier(Operation *op, const ColumnAmaxes &recorded, float none)
      : op(op), recorded(recorded), none(none), builder(op) {}
  /// Returns the new results, in the order of `recorded`.
  SmallVector<Value> run();

private:
  SmallVector<Value> carryOutOfForall(scf::ForallOp loop);
  Value combine(Value known, ArrayRef<RecordedAmax> amaxes, Block *block);
  SmallVector<Value> combineAll(ArrayRef<Value> known, Block *block);
  SmallVector<Value> addArguments(Block *block);
  Value createNone();

  Operation *op;
  const ColumnAmaxes &recorded;
  float none;
  OpBuilder builder;
};

} // namespace

static RankedTensorType getAmaxType(OpBuilder &builder) {
  return RankedTensorType::get({}, builder.getF32Type());
}

/// Creates the value that stands for no amax.
Value RegionCarrier::createNone() {
  auto value = DenseElementsAttr::get(getAmaxType(builder), llvm::APFloat(none));
  return arith::ConstantOp::create(builder, op->getLoc(), value);
}

SmallVector<Value> RegionCarrier::addArguments(Block *block) {
  SmallVector<Value> arguments;
  for (size_t i = 0; i < recorded.size(); ++i)
    arguments.push_back(block->addArgument(getAmaxType(builder), op->getLoc()));
  return arguments;
}

/// Returns the maximum of `known` (may be null) and the amaxes of `block`. None of them is NaN.
Value RegionCarrier::combine(Value known, ArrayRef<RecordedAmax> amaxes, Block *block) {
  for (const RecordedAmax &amax : amaxes)
    if (amax.block == block)
      known = known ? arith::MaximumFOp::create(builder, op->getLoc(), known, amax.value) : amax.value;
  return known ? known : createNone();
}

/// Returns one value per column, computed at the end of `block`.
SmallVector<Value> RegionCarrier::combineAll(ArrayRef<Value> known, Block *block) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(block->getTerminator());
  SmallVector<Value> combined;
  for (auto [value, entry] : llvm::zip(known, recorded))
    combined.push_back(combine(value, entry.second, block));
  return combined;
}

/// Iterations run in parallel, so each writes its amaxes to elements of its own.
SmallVector<Value> RegionCarrier::carryOutOfForall(scf::ForallOp loop) {
  Location loc = loop.getLoc();
  AffineExpr lower = builder.getAffineSymbolExpr(0), upper = builder.getAffineSymbolExpr(1),
             step = builder.getAffineSymbolExpr(2);
  SmallVector<OpFoldResult> counts;
  for (auto [lb, ub, by] :
       llvm::zip(loop.getMixedLowerBound(), loop.getMixedUpperBound(), loop.getMixedStep()))
    counts.push_back(
        affine::makeComposedFoldedAffineApply(builder, loc, (upper - lower).ceilDiv(step), {lb, ub, by}));
  SmallVector<Value> outputs(loop.getOutputs());
  for (size_t i = 0; i < recorded.size(); ++i)
    outputs.push_back(tensor::EmptyOp::create(builder, loc, counts, builder.getF32Type()));

  auto wider = scf::ForallOp::create(builder, loc, loop.getMixedLowerBound(), loop.getMixedUpperBound(),
                                     loop.getMixedStep(), outputs, loop.getMapping());
  wider.getRegion().takeBody(loop.getRegion());
  Block *body = wider.getBody();
  SmallVector<Value> shared;
  for (Value output : ValueRange(outputs).take_back(recorded.size()))
    shared.push_back(body->addArgument(output.getType(), loc));

  builder.setInsertionPoint(body->getTerminator());
  SmallVector<OpFoldResult> offsets, ones(counts.size(), builder.getIndexAttr(1));
  for (auto [iv, lb, by] :
       llvm::zip(wider.getInductionVars(), wider.getMixedLowerBound(), wider.getMixedStep()))
    offsets.push_back(affine::makeComposedFoldedAffineApply(builder, loc, (upper - lower).floorDiv(step),
                                                            {lb, OpFoldResult(iv), by}));
  SmallVector<Value> combined = combineAll(SmallVector<Value>(recorded.size()), body);
  builder.setInsertionPointToEnd(&wider.getTerminator().getRegion().front());
  for (auto [amax, output] : llvm::zip(combined, shared))
    tensor::ParallelInsertSliceOp::create(builder, loc, amax, output, offsets, ones, ones);

  loop.replaceAllUsesWith(wider.getResults().take_front(loop.getNumResults()));
  loop.erase();
  builder.setInsertionPointAfter(wider);
  SmallVector<Value> results;
  auto larger = [&](OpBuilder &inner, Location, ValueRange arguments) {
    Value larger = arith::MaximumFOp::create(inner, loc, arguments[0], arguments[1]);
    linalg::YieldOp::create(inner, loc, larger);
  };
  for (Value all : wider.getResults().take_back(recorded.size()))
    results.push_back(linalg::ReduceOp::create(builder, loc, all, createNone(),
                                               llvm::to_vector(llvm::seq<int64_t>(0, counts.size())), larger)
                          .getResult(0));
  return results;
}

SmallVector<Value> RegionCarrier::run() {
  if (auto loop = dyn_cast<scf::ForallOp>(op))
    return carryOutOfForall(loop);

  bool isLoop = isa<scf::ForOp, scf::WhileOp>(op);
  size_t count = recorded.size();
  op =
      fp8::detail::widen(builder, op, isLoop ? SmallVector<Value>(count, createNone()) : SmallVector<Value>(),
                         SmallVector<Type>(count, getAmaxType(builder)));
  for (Region &region : op->getRegions()) {
    if (region.empty()) { // an if without else
      builder.createBlock(&region);
      scf::YieldOp::create(builder, op->getLoc());
    }
    // In a while loop the first region passes its values on to the second one.
    Block *block = &region.front();
    SmallVector<Value> known = isLoop ? addArguments(block) : SmallVector<Value>(count);
    Operation *terminator = block->getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), combineAll(known, block));
  }
  return SmallVector<Value>(op->getResults().take_back(recorded.size()));
}

static unsigned getDepth(Operation *op) {
  unsigned depth = 0;
  for (; op; op = op->getParentOp())
    ++depth;
  return depth;
}

/// Returns the innermost loop or branch in which an amax is recorded; null if there is none.
static Operation *findInnermost(const ColumnAmaxes &amaxes) {
  Operation *innermost = nullptr;
  unsigned depth = 0;
  for (const auto &[column, recorded] : amaxes)
    for (const RecordedAmax &amax : recorded) {
      Operation *parent = amax.block->getParentOp();
      if (unsigned own = getDepth(parent); canCarryOut(parent) && own > depth) {
        innermost = parent;
        depth = own;
      }
    }
  return innermost;
}

void fp8::carryOutAmaxes(ColumnAmaxes &amaxes, float none) {
  while (Operation *op = findInnermost(amaxes)) {
    ColumnAmaxes inside;
    for (auto &[column, recorded] : amaxes) {
      auto isInside = [&](const RecordedAmax &amax) { return amax.block->getParentOp() == op; };
      if (llvm::none_of(recorded, isInside))
        continue;
      llvm::copy_if(recorded, std::back_inserter(inside[column]), isInside);
      llvm::erase_if(recorded, isInside);
    }
    Block *block = op->getBlock();
    SmallVector<Value> results = RegionCarrier(op, inside, none).run();
    for (auto [entry, result] : llvm::zip(inside, results))
      amaxes[entry.first].push_back({result, block});
  }
}
