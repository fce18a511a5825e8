// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's exporters and fp8-check-sizes assert in the body of an operation that every index is
// within bounds. Kernels run in parallel and cannot stop halfway, so a separate operation, over
// the operands that the condition needs, computes the condition, and the result is asserted before
// the original operation.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fp8 {
#define GEN_PASS_DEF_HOISTASSERTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {
/// One assertion in the body of `op`, with the code and the inputs of its condition.
struct BodyAssert {
  linalg::LinalgOp op;
  cf::AssertOp assertion;
  llvm::SetVector<Operation *> slice; // in order, without nested operations
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

/// Adds operands until every dimension in `dims` is a dimension of an input, which determines its
/// size. Returns false if there is no such operand.
static bool addOperandsOfDims(BodyAssert &found) {
  auto hasDim = [&](OpOperand *operand, unsigned dim) {
    AffineMap map = found.op.getMatchingIndexingMap(operand);
    return map.getResultPosition(getAffineDimExpr(dim, map.getContext())).has_value();
  };
  // An added operand may have further dimensions.
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

/// Moves an assertion out of a branch, before it; its condition is true if the branch is not taken.
/// The code that computes the condition in the branch is duplicated.
static void moveOutOfBranch(cf::AssertOp assertion) {
  auto branch = cast<scf::IfOp>(assertion->getParentOp());
  Location loc = assertion.getLoc();
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) { return op->getBlock() == assertion->getBlock(); };
  (void)getBackwardSlice(assertion.getOperation(), &slice, options);
  bool inThen = assertion->getBlock() == branch.thenBlock();
  OpBuilder builder(branch);
  auto copy = [&](OpBuilder &inner, Location) {
    IRMapping mapping;
    for (Operation *op : slice)
      inner.clone(*op, mapping);
    scf::YieldOp::create(inner, loc, mapping.lookupOrDefault(assertion.getArg()));
  };
  auto holds = [&](OpBuilder &inner, Location) {
    Value yes = arith::ConstantOp::create(inner, loc, inner.getBoolAttr(true));
    scf::YieldOp::create(inner, loc, yes);
  };
  Value good = inThen ? scf::IfOp::create(builder, loc, branch.getCondition(), copy, holds).getResult(0)
                      : scf::IfOp::create(builder, loc, branch.getCondition(), holds, copy).getResult(0);
  builder.setInsertionPoint(branch);
  assertion.getArgMutable().assign(good);
  assertion->moveBefore(branch);
}

/// Finds the code and the inputs of a condition. Fails if it depends on anything but elements of
/// inputs, indices and values from outside, or is computed in a loop.
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
    if (!isMemoryEffectFree(producer))
      return failure();
    if (!found.slice.insert(producer))
      continue;
    producer->walk([&](Operation *nested) {
      if (auto index = dyn_cast<linalg::IndexOp>(nested))
        found.dims.set(index.getDim());
      worklist.append(nested->operand_begin(), nested->operand_end());
    });
  }
  found.slice = topologicalSort(found.slice);
  if (!addOperandsOfDims(found))
    return failure();
  return found;
}

/// Builds the conjunction of the condition over all elements, a tensor of rank 0.
static Value buildCondition(OpBuilder &builder, BodyAssert &found) {
  Location loc = found.assertion->getLoc();
  linalg::LinalgOp op = found.op;
  MLIRContext *context = op->getContext();
  // Renumber the dimensions that the condition needs; all others become 0.
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
        for (Operation *producer : found.slice)
          inner.clone(*producer, mapping)->walk([&](linalg::IndexOp index) {
            index.setDim(cast<AffineDimExpr>(renamed[index.getDim()]).getPosition());
          });
        Value good = mapping.lookupOrDefault(found.assertion.getArg());
        linalg::YieldOp::create(inner, loc,
                                arith::AndIOp::create(inner, loc, arguments.back(), good).getResult());
      });
  return all.getResult(0);
}

namespace {
struct HoistAssertsPass : public fp8::impl::HoistAssertsBase<HoistAssertsPass> {
  /// Converts every tensor.generate with assertions to a linalg operation.
  LogicalResult convertGenerates() {
    SmallVector<tensor::GenerateOp> generates;
    getOperation()->walk([&](tensor::GenerateOp op) {
      if (op.getBody().walk([](cf::AssertOp) { return WalkResult::interrupt(); }).wasInterrupted())
        generates.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (tensor::GenerateOp op : generates) {
      rewriter.setInsertionPoint(op);
      if (failed(linalg::rewriteInDestinationPassingStyle(rewriter, op)))
        return op.emitError("cannot check the indices in its body; write a linalg.generic instead");
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(convertGenerates()))
      return signalPassFailure();
    SmallVector<cf::AssertOp> assertions;
    getOperation()->walk([&](cf::AssertOp op) {
      if (op->getParentOfType<linalg::LinalgOp>())
        assertions.push_back(op);
    });
    for (cf::AssertOp assertion : assertions) {
      while (isa<scf::IfOp>(assertion->getParentOp()))
        moveOutOfBranch(assertion);
      auto op = assertion->getParentOfType<linalg::LinalgOp>();
      FailureOr<BodyAssert> found = analyze(op, assertion);
      if (failed(found)) {
        assertion.emitError(
            "what is asserted in the body of an operation must follow from its inputs and indices; "
            "compute and assert it before the operation instead: ")
            << assertion.getMsg();
        return signalPassFailure();
      }
      OpBuilder builder(op);
      Value condition = buildCondition(builder, *found);
      Value good = tensor::ExtractOp::create(builder, assertion.getLoc(), condition, ValueRange());
      cf::AssertOp::create(builder, assertion.getLoc(), good, assertion.getMsg());
      assertion.erase();
      for (Operation *producer : llvm::reverse(found->slice))
        if (isOpTriviallyDead(producer))
          producer->erase();
    }
  }
};
} // namespace
