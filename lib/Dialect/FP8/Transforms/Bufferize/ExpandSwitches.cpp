// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes branches by number branches of two. One-shot bufferization of LLVM 22 does not know that a result of
// scf.index_switch is in the memory of the tensors that its branches yield: it lets a later operation
// overwrite that memory before the result is read (findings/mlir-switch-memory.sh).

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp8 {
#define GEN_PASS_DEF_EXPANDSWITCHES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Emits the branch at case `number` of `branch`, with all cases after it as its other branch.
static scf::IfOp buildCase(OpBuilder &builder, scf::IndexSwitchOp branch, unsigned number) {
  Location loc = branch.getLoc();
  Value wanted = arith::ConstantIndexOp::create(builder, loc, branch.getCases()[number]);
  Value isCase = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, branch.getArg(), wanted);
  auto made = scf::IfOp::create(builder, loc, branch.getResultTypes(), isCase, /*withElseRegion=*/true);
  made.getThenRegion().takeBody(branch.getCaseRegions()[number]);
  if (number + 1 == branch.getCases().size()) {
    made.getElseRegion().takeBody(branch.getDefaultRegion());
    return made;
  }
  made.getElseRegion().getBlocks().clear();
  OpBuilder others = OpBuilder::atBlockEnd(&made.getElseRegion().emplaceBlock());
  scf::IfOp rest = buildCase(others, branch, number + 1);
  scf::YieldOp::create(others, loc, rest.getResults());
  return made;
}

/// A switch without cases is its default branch.
static void inlineDefault(scf::IndexSwitchOp branch) {
  Block &block = branch.getDefaultBlock();
  Operation *yield = block.getTerminator();
  branch.replaceAllUsesWith(yield->getOperands());
  yield->erase();
  branch->getBlock()->getOperations().splice(branch->getIterator(), block.getOperations());
}

namespace {
struct ExpandSwitchesPass : public fp8::impl::ExpandSwitchesBase<ExpandSwitchesPass> {
  void runOnOperation() override {
    SmallVector<scf::IndexSwitchOp> branches;
    getOperation().walk([&](scf::IndexSwitchOp branch) {
      if (llvm::any_of(branch.getResultTypes(), llvm::IsaPred<TensorType>))
        branches.push_back(branch);
    });
    for (scf::IndexSwitchOp branch : branches) {
      if (branch.getCases().empty()) {
        inlineDefault(branch);
      } else {
        OpBuilder builder(branch);
        scf::IfOp made = buildCase(builder, branch, 0);
        made->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
        branch.replaceAllUsesWith(made.getResults());
      }
      branch.erase();
    }
  }
};
} // namespace
