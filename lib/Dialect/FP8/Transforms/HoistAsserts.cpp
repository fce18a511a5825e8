// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's exporters assert in the body of an operation that every index is within bounds.
// Kernels run in parallel and cannot fail halfway: the condition becomes an operation of its
// own, over the operands that it needs, and is asserted before the other one runs.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fp8 {
#define GEN_PASS_DEF_HOISTASSERTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {
/// One assertion in the body of `op`, and what its condition is computed from.
struct BodyAssert {
  linalg::LinalgOp op;
  cf::AssertOp assertion;
  llvm::SetVector<Operation *> slice; // in order, within the body
  llvm::SetVector<OpOperand *> inputs;
  llvm::SmallBitVector dims; // of the iteration space
};
} // namespace

static void addInput(BodyAssert &found, OpOperand &operand) {
  found.inputs.insert(&operand);
  AffineMap map = found.op.getMatchingIndexingMap(&operand);
  for (unsigned dim : llvm::seq<unsigned>(map.getNumDims()))
    if (map.isFunctionOfDim(dim))
      found.dims.set(dim);
}

/// A dimension's size comes from an operand that has it by itself.
static bool addOperandsOfDims(BodyAssert &found) {
  auto hasDim = [&](OpOperand *operand, unsigned dim) {
    AffineMap map = found.op.getMatchingIndexingMap(operand);
    return map.getResultPosition(getAffineDimExpr(dim, map.getContext())).has_value();
  };
  // An operand may bring further dimensions: look until all of them have one.
  for (;;) {
    auto dims = found.dims.set_bits();
    auto lacking = llvm::find_if(dims, [&](unsigned dim) {
      return llvm::none_of(found.inputs, [&](OpOperand *input) { return hasDim(input, dim); });
    });
    if (lacking == dims.end())
      return true;
    OpOperand *bringer = nullptr;
    for (OpOperand &operand : found.op->getOpOperands())
      if (!bringer && hasDim(&operand, *lacking))
        bringer = &operand;
    if (!bringer)
      return false;
    addInput(found, *bringer);
  }
}

/// Fails where the condition depends on more than elements of inputs, indices and values
/// from outside, or is computed under another condition.
static FailureOr<BodyAssert> analyze(linalg::LinalgOp op, cf::AssertOp assertion) {
  BodyAssert found{op, assertion, {}, {}, llvm::SmallBitVector(op.getNumLoops())};
  Block *body = op.getBlock();
  if (assertion->getBlock() != body || !op.hasPureTensorSemantics())
    return failure();
  SmallVector<Value> worklist{assertion.getArg()};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (value.getParentBlock() != body)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      OpOperand *operand = op.getMatchingOpOperand(argument);
      if (op.isDpsInit(operand))
        return failure();
      addInput(found, *operand);
      continue;
    }
    Operation *producer = value.getDefiningOp();
    if (!isMemoryEffectFree(producer) || producer->getNumRegions() != 0)
      return failure();
    if (auto index = dyn_cast<linalg::IndexOp>(producer))
      found.dims.set(index.getDim());
    found.slice.insert(producer);
    worklist.append(producer->operand_begin(), producer->operand_end());
  }
  found.slice = topologicalSort(found.slice);
  if (!addOperandsOfDims(found))
    return failure();
  return found;
}

/// True where the condition holds for all elements, as a tensor of rank 0.
static Value buildCondition(OpBuilder &builder, BodyAssert &found) {
  Location loc = found.assertion->getLoc();
  linalg::LinalgOp op = found.op;
  MLIRContext *context = op->getContext();
  // The dimensions that are left, and what the others become.
  SmallVector<AffineExpr> renamed(op.getNumLoops(), builder.getAffineConstantExpr(0));
  unsigned count = 0;
  for (unsigned dim : found.dims.set_bits())
    renamed[dim] = builder.getAffineDimExpr(count++);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : found.inputs) {
    inputs.push_back(input->get());
    maps.push_back(op.getMatchingIndexingMap(input).replaceDimsAndSymbols(renamed, {}, count, 0));
  }
  maps.push_back(AffineMap::get(count, 0, context));
  SmallVector<utils::IteratorType> iterators(count, utils::IteratorType::reduction);
  Value init = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(RankedTensorType::get({}, builder.getI1Type()), true));
  auto all = linalg::GenericOp::create(
      builder, loc, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        IRMapping mapping;
        for (auto [input, argument] : llvm::zip(found.inputs, arguments))
          mapping.map(op.getMatchingBlockArgument(input), argument);
        for (Operation *producer : found.slice) {
          auto index = dyn_cast<linalg::IndexOp>(producer);
          if (!index) {
            inner.clone(*producer, mapping);
            continue;
          }
          unsigned dim = cast<AffineDimExpr>(renamed[index.getDim()]).getPosition();
          mapping.map(index.getResult(), linalg::IndexOp::create(inner, loc, dim).getResult());
        }
        Value good = mapping.lookupOrDefault(found.assertion.getArg());
        linalg::YieldOp::create(inner, loc,
                                arith::AndIOp::create(inner, loc, arguments.back(), good).getResult());
      });
  return all.getResult(0);
}

namespace {
struct HoistAssertsPass : public fp8::impl::HoistAssertsBase<HoistAssertsPass> {
  void runOnOperation() override {
    SmallVector<cf::AssertOp> assertions;
    getOperation()->walk([&](cf::AssertOp op) {
      if (op->getParentOfType<linalg::LinalgOp>())
        assertions.push_back(op);
    });
    for (cf::AssertOp assertion : assertions) {
      auto op = assertion->getParentOfType<linalg::LinalgOp>();
      FailureOr<BodyAssert> found = analyze(op, assertion);
      if (failed(found)) {
        assertion.emitError(
            "cf.assert in the body of an operation must be about its inputs and indices; assert "
            "before the operation instead");
        return signalPassFailure();
      }
      OpBuilder builder(op);
      Value condition = buildCondition(builder, *found);
      Value good = tensor::ExtractOp::create(builder, assertion.getLoc(), condition, ValueRange());
      cf::AssertOp::create(builder, assertion.getLoc(), good, assertion.getMsg());
      assertion.erase();
    }
  }
};
} // namespace
