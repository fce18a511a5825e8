// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// After bufferization every result of an entry point is in the memory of an argument, and is no
// longer returned, or has a dynamic shape, and is returned in memory of its own. Any other result
// is an error, because its memory would leak.

#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace fp8 {
#define GEN_PASS_DEF_DROPBOUNDRESULTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns whether the memory of `argument` holds result `index`.
static bool isDestinationOf(func::FuncOp func, unsigned argument, unsigned index) {
  for (StringRef name :
       {StringRef(kCarriedAttrName), StringRef(kReturnedAttrName), StringRef(kResultAttrName)})
    if (auto result = func.getArgAttrOfType<IntegerAttr>(argument, name))
      return result.getInt() == index;
  return false;
}

static bool hasDestination(func::FuncOp func, unsigned index) {
  return llvm::any_of(llvm::seq(func.getNumArguments()),
                      [&](unsigned argument) { return isDestinationOf(func, argument, index); });
}

static Value skipCasts(Value value) {
  while (auto cast = value.getDefiningOp<memref::CastOp>())
    value = cast.getSource();
  return value;
}

static LogicalResult verifyInDestination(func::FuncOp func, Value value, unsigned index) {
  auto argument = dyn_cast<BlockArgument>(skipCasts(value));
  if (argument && isDestinationOf(func, argument.getArgNumber(), index))
    return success();
  return func.emitError() << "result " << index << " of '" << func.getName()
                          << "' was not computed in its destination";
}

/// Returns `value` if it is an allocation in the function's own block that is no other result, else
/// a copy of it in such an allocation.
static Value asOwnAllocation(OpBuilder &builder, Value value, DenseSet<Value> &taken) {
  auto alloc = skipCasts(value).getDefiningOp<memref::AllocOp>();
  if (alloc && alloc->getBlock() == builder.getInsertionBlock() && taken.insert(alloc).second)
    return value;
  Location loc = value.getLoc();
  auto type = cast<MemRefType>(value.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(memref::DimOp::create(builder, loc, value, dim));
  Value copy = memref::AllocOp::create(builder, loc, MemRefType::get(type.getShape(), type.getElementType()),
                                       sizes, builder.getI64IntegerAttr(64));
  memref::CopyOp::create(builder, loc, value, copy);
  taken.insert(copy);
  return copy;
}

//===----------------------------------------------------------------------===//
// Copies of results that were saved for nothing
//===----------------------------------------------------------------------===//

/// Returns the buffer that `value` is a view of.
static Value findBuffer(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// Returns whether two buffers are known to share no memory: an allocation of this function, and an
/// argument or another allocation.
static bool areDistinct(Value a, Value b) {
  auto isOwn = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return value.getDefiningOp<memref::AllocOp>() ||
           (argument && isa<func::FuncOp>(argument.getOwner()->getParentOp()));
  };
  return a != b && isOwn(a) && isOwn(b);
}

/// Returns whether two values of one shape may share a part of their memory. Whole buffers share all or
/// nothing.
static bool mayOverlap(Value a, Value b) {
  auto isWhole = [](Value value) {
    return findBuffer(value) == value && cast<MemRefType>(value.getType()).getLayout().isIdentity();
  };
  return a != b && !areDistinct(findBuffer(a), findBuffer(b)) && !(isWhole(a) && isWhole(b));
}

/// Returns whether nothing between two operations of one block writes to `buffer`. Operations other
/// than copies and views count as writes.
static bool isUnchangedBetween(Value buffer, Operation *first, Operation *last) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode()) {
    if (!op)
      return false;
    auto copy = dyn_cast<memref::CopyOp>(op);
    if (copy ? !areDistinct(findBuffer(copy.getTarget()), buffer)
             : !isa<memref::AllocOp>(op) && !isMemoryEffectFree(op))
      return false;
  }
  return true;
}

/// fp8-bind-results saves a value before another result is written, as it cannot know where
/// bufferization puts it. If the value it was copied from is still there when the result is written,
/// the result is copied from that, or not at all where that is its own destination. A copy between places
/// of a buffer stays: they may overlap.
static void forwardSavedCopies(func::FuncOp func) {
  for (auto alloc : llvm::make_early_inc_range(func.front().getOps<memref::AllocOp>())) {
    if (!alloc.getResult().hasNUses(2))
      continue;
    memref::CopyOp save, write;
    for (Operation *user : alloc->getUsers())
      if (auto copy = dyn_cast<memref::CopyOp>(user))
        (copy.getTarget() == alloc.getResult() ? save : write) = copy;
    if (!save || !write || save->getBlock() != &func.front() || write->getBlock() != &func.front() ||
        !save->isBeforeInBlock(write) || !isUnchangedBetween(findBuffer(save.getSource()), save, write))
      continue;
    if (mayOverlap(save.getSource(), write.getTarget()))
      continue;
    if (save.getSource() != write.getTarget()) {
      OpBuilder builder(write);
      memref::CopyOp::create(builder, write.getLoc(), save.getSource(), write.getTarget());
    }
    write.erase();
    save.erase();
    alloc.erase();
  }
}

namespace {
struct DropBoundResultsPass : public fp8::impl::DropBoundResultsBase<DropBoundResultsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func.isPublic() || func.isExternal())
      return;
    Operation *terminator = func.front().getTerminator();
    OpBuilder builder(terminator);
    BitVector bound(func.getNumResults());
    SmallVector<Value> returned;
    DenseSet<Value> taken;
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      if (cast<MemRefType>(value.getType()).hasStaticShape() || hasDestination(func, index)) {
        if (failed(verifyInDestination(func, value, index)))
          return signalPassFailure();
        bound.set(index);
        continue;
      }
      func.setResultAttr(index, kResultAttrName, builder.getI32IntegerAttr(index));
      returned.push_back(asOwnAllocation(builder, value, taken));
    }
    terminator->setOperands(returned);
    (void)func.eraseResults(bound);
    forwardSavedCopies(func);
  }
};
} // namespace
