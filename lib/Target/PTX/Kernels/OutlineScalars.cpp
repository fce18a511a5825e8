// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves code on single elements of buffers out of the host's code, which cannot access the memory of a
// device: runs of it become kernels of one thread. A value that a run computes for other code is stored in
// a buffer of one element: a kernel that uses it loads it, and so does the host where a decision depends on
// it.

#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace fp8 {
#define GEN_PASS_DEF_OUTLINESCALARS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

static bool hasScalars(TypeRange types) {
  return llvm::all_of(types, [](Type type) { return type.isIntOrIndexOrFloat(); });
}

/// Returns whether `op` computes scalars from scalars.
static bool isArithmetic(Operation *op) {
  return op->getNumRegions() == 0 && op->getNumResults() != 0 && !op->hasTrait<OpTrait::ConstantLike>() &&
         isMemoryEffectFree(op) && hasScalars(op->getOperandTypes()) && hasScalars(op->getResultTypes());
}

/// Returns whether `op` is control flow around loads, stores, arithmetic and memory of its own, and nothing
/// else.
static bool isScalarControl(Operation *op) {
  if (!isa<scf::IfOp, scf::ForOp, scf::WhileOp, scf::ParallelOp>(op) || !hasScalars(op->getResultTypes()))
    return false;
  return !op->walk([](Operation *inner) {
              bool known = isa<memref::LoadOp, memref::StoreOp, memref::AllocaOp, scf::IfOp, scf::ForOp,
                               scf::WhileOp, scf::ParallelOp, scf::ReduceOp>(inner) ||
                           inner->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(inner);
              return known ? WalkResult::advance() : WalkResult::interrupt();
            }).wasInterrupted();
}

/// Returns whether fp8-outline-kernels makes a kernel of `op` by itself.
static bool isKernel(Operation *op) {
  if (isa<linalg::LinalgOp, memref::CopyOp>(op) || op->hasAttr(kKernelAttrName))
    return true;
  return isa<scf::ForOp, scf::ParallelOp>(op) && op->getNumResults() == 0 && isScalarControl(op);
}

namespace {
class ScalarOutliner {
public:
  void outline(Block &block);

private:
  bool isForDevice(Operation *op);
  bool isForHost(Operation *op);
  void close();
  void pass(Value value, Operation *region);
  void replaceInKernel(Value value, Value buffer, Operation *kernel);
  void replaceOnHost(Value value, Value buffer, Operation *user);

  bool usesRun(Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return onDevice.contains(operand); });
  }

  SmallVector<Operation *> run; ///< so far, in one block
  /// Results of code that belongs to the device.
  llvm::DenseSet<Value> onDevice;
  /// Loads, and arithmetic on what they load, that only decisions of the host depend on.
  llvm::DenseSet<Operation *> onHost;
};
} // namespace

/// Returns whether only the host uses the results of `op`: conditions, bounds, sizes and positions of views.
bool ScalarOutliner::isForHost(Operation *op) {
  if (!isa<memref::LoadOp>(op) && !isArithmetic(op))
    return false;
  return !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
    if (user->getBlock() != op->getBlock())
      return false;
    bool decides = !isKernel(user) && !isScalarControl(user) &&
                   (user->getNumRegions() != 0 || user->hasTrait<OpTrait::IsTerminator>() ||
                    isa<cf::AssertOp>(user) || !hasScalars(user->getResultTypes()));
    return (decides && !isa<memref::StoreOp>(user)) || onHost.contains(user);
  });
}

/// Returns whether `op` belongs into a run.
bool ScalarOutliner::isForDevice(Operation *op) {
  if (onHost.contains(op) || isKernel(op))
    return false;
  if (isa<memref::LoadOp, memref::StoreOp>(op) || isScalarControl(op))
    return true;
  return isArithmetic(op) && usesRun(op);
}

/// Makes `kernel` load `value` from `buffer`: it becomes part of a larger kernel that does.
void ScalarOutliner::replaceInKernel(Value value, Value buffer, Operation *kernel) {
  auto whole = dyn_cast<scf::ExecuteRegionOp>(kernel);
  if (!whole) {
    OpBuilder builder(kernel);
    whole = scf::ExecuteRegionOp::create(builder, kernel->getLoc(), TypeRange());
    whole->setAttr(kKernelAttrName, builder.getUnitAttr());
    kernel->removeAttr(kKernelAttrName);
    Block &body = whole.getRegion().emplaceBlock();
    kernel->moveBefore(&body, body.end());
    builder.setInsertionPointToEnd(&body);
    scf::YieldOp::create(builder, kernel->getLoc());
  }
  OpBuilder builder = OpBuilder::atBlockBegin(&whole.getRegion().front());
  Value loaded = memref::LoadOp::create(builder, value.getLoc(), buffer);
  value.replaceUsesWithIf(loaded, [&](OpOperand &use) { return whole->isAncestor(use.getOwner()); });
}

void ScalarOutliner::replaceOnHost(Value value, Value buffer, Operation *user) {
  OpBuilder builder(user);
  auto loaded = memref::LoadOp::create(builder, user->getLoc(), buffer);
  user->replaceUsesOfWith(value, loaded);
  if (isForHost(loaded))
    onHost.insert(loaded);
}

/// Stores `value`, a result in the run `region`, for the code outside that uses it.
void ScalarOutliner::pass(Value value, Operation *region) {
  SmallVector<Operation *> users;
  for (Operation *user : value.getUsers())
    if (!region->isAncestor(user) && !llvm::is_contained(users, user))
      users.push_back(user);
  if (users.empty())
    return;
  OpBuilder builder(region);
  Location loc = value.getLoc();
  Value buffer = memref::AllocOp::create(builder, loc, MemRefType::get({}, value.getType()));
  builder.setInsertionPoint(cast<scf::ExecuteRegionOp>(region).getRegion().front().getTerminator());
  memref::StoreOp::create(builder, loc, value, buffer);
  for (Operation *user : users) {
    if (!llvm::is_contained(value.getUsers(), user))
      continue; // a kernel with several of them
    Operation *kernel = nullptr;
    for (Operation *op = user; op && !isa<func::FuncOp>(op); op = op->getParentOp())
      if (isKernel(op))
        kernel = op;
    if (kernel)
      replaceInKernel(value, buffer, kernel);
    else
      replaceOnHost(value, buffer, user);
  }
}

/// Makes a kernel of the run.
void ScalarOutliner::close() {
  if (run.empty())
    return;
  OpBuilder builder(run.back());
  builder.setInsertionPointAfter(run.back());
  auto region = scf::ExecuteRegionOp::create(builder, run.front()->getLoc(), TypeRange());
  region->setAttr(kKernelAttrName, builder.getUnitAttr());
  region->setAttr(kComputesAttrName, builder.getStringAttr("scalars"));
  Block &body = region.getRegion().emplaceBlock();
  for (Operation *op : run)
    op->moveBefore(&body, body.end());
  builder.setInsertionPointToEnd(&body);
  scf::YieldOp::create(builder, region.getLoc());
  for (Operation *op : run)
    for (Value result : op->getResults())
      pass(result, region);
  run.clear();
}

void ScalarOutliner::outline(Block &block) {
  for (Operation &op : llvm::reverse(block))
    if (isForHost(&op))
      onHost.insert(&op);
  for (Operation *op = block.empty() ? nullptr : &block.front(); op; op = op->getNextNode()) {
    if (isForDevice(op)) {
      run.push_back(op);
      onDevice.insert(op->result_begin(), op->result_end());
      continue;
    }
    bool isPure = op->getNumRegions() == 0 && (isMemoryEffectFree(op) || isa<memref::AllocOp>(op));
    if (isPure && !usesRun(op))
      continue;
    close();
    if (op->getBlock() != &block) // it is a part of a larger kernel now
      op = op->getParentOp();
    else if (!isKernel(op))
      for (Region &region : op->getRegions())
        for (Block &inner : region)
          outline(inner);
  }
  close();
}

namespace {
struct OutlineScalarsPass : public fp8::impl::OutlineScalarsBase<OutlineScalarsPass> {
  void runOnOperation() override {
    if (!getOperation().isPublic())
      return;
    for (Block &block : getOperation().getBody())
      ScalarOutliner().outline(block);
  }
};
} // namespace
