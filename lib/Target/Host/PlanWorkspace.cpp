// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Static memory planning: the temporary buffers of an entry point get fixed offsets in one
// workspace, and buffers whose lifetimes do not overlap share memory. Buffers of dynamic size stay
// allocations, which are freed after their last use.

#include "Memory.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Target/Host/HostCode.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"

namespace fp8 {
#define GEN_PASS_DEF_PLANWORKSPACE
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
/// One temporary buffer: its size, its lifetime (numbers of operations in the entry point's body),
/// and its offset in the workspace.
struct Buffer {
  memref::AllocOp alloc;
  size_t order = 0; // position in the program
  uint64_t bytes = 0;
  unsigned first = 0, last = 0;
  uint64_t offset = 0;

  bool meets(const Buffer &other) const { return first <= other.last && other.first <= last; }
};
} // namespace

/// Widens the buffer's lifetime to every use of its memory.
static void extendLifetime(Buffer &buffer, const BufferViewFlowAnalysis &views, Block &body,
                           const DenseMap<Operation *, unsigned> &positions) {
  for (Value alias : views.resolve(buffer.alloc.getResult()))
    for (Operation *user : alias.getUsers())
      if (Operation *outermost = body.findAncestorOpInBlock(*user)) {
        unsigned position = positions.lookup(outermost);
        buffer.first = std::min(buffer.first, position);
        buffer.last = std::max(buffer.last, position);
      }
}

/// Returns whether a loop around the allocation passes its memory from one iteration to the next: at a
/// fixed offset an iteration would overwrite the buffer of the previous one.
static bool isCarriedByLoop(memref::AllocOp alloc, const BufferViewFlowAnalysis &views) {
  for (Operation *parent = alloc->getParentOp(); !isa<func::FuncOp>(parent); parent = parent->getParentOp()) {
    auto loop = dyn_cast<LoopLikeOpInterface>(parent);
    if (!loop)
      continue;
    for (Value alias : views.resolve(alloc.getResult()))
      if (auto argument = dyn_cast<BlockArgument>(alias))
        if (argument.getOwner()->getParentOp() == parent)
          return true;
  }
  return false;
}

/// More bytes than a processor or a GPU can address.
static constexpr double kMostBytes = 0x1p47;

/// Returns the bytes of a buffer of static shape; a number of elements may be more than 64 bits hold.
static double estimateBytes(MemRefType type) {
  double bytes = getElementBytes(type.getElementType());
  for (int64_t size : type.getShape())
    bytes *= double(size);
  return bytes;
}

/// Emits an error for a buffer that cannot be planned: one whose element size is unknown, that no memory
/// holds, or of which several threads or iterations need one each.
static LogicalResult verifyAlloc(memref::AllocOp alloc, const BufferViewFlowAnalysis &views) {
  MemRefType type = alloc.getType();
  if (getElementBytes(type.getElementType()) == 0)
    return alloc.emitError("temporary ")
           << type << " has elements that are neither numbers nor complex numbers, which is not supported";
  if (type.hasStaticShape() && estimateBytes(type) > kMostBytes)
    return alloc.emitError("temporary ") << type << " is larger than any memory";
  if (alloc->getParentOfType<scf::ParallelOp>() || alloc->getParentOfType<scf::ForallOp>())
    return alloc.emitError("temporary ")
           << type << " inside of a parallel loop, where every thread needs its own, is not supported yet";
  if (isCarriedByLoop(alloc, views))
    return alloc.emitError("temporary ") << type << " is handed from one loop iteration to the next";
  return success();
}

static bool isReturned(memref::AllocOp alloc, const BufferViewFlowAnalysis &views) {
  return llvm::any_of(views.resolve(alloc.getResult()), [](Value alias) {
    return llvm::any_of(alias.getUsers(), llvm::IsaPred<func::ReturnOp>);
  });
}

/// Frees a buffer of dynamic size after its last use, if all uses are in its block. Any other buffer
/// is freed at the end of the call.
static void freeAfterLastUse(memref::AllocOp alloc, const BufferViewFlowAnalysis &views) {
  Block *block = alloc->getBlock();
  Operation *last = alloc;
  for (Value alias : views.resolve(alloc.getResult()))
    for (Operation *user : alias.getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      if (!ancestor || ancestor == block->getTerminator())
        return;
      if (last->isBeforeInBlock(ancestor))
        last = ancestor;
    }
  OpBuilder builder(alloc.getContext());
  builder.setInsertionPointAfter(last);
  memref::DeallocOp::create(builder, alloc.getLoc(), alloc);
}

static FailureOr<SmallVector<Buffer>> collectBuffers(func::FuncOp func) {
  Block &body = func.front();
  DenseMap<Operation *, unsigned> positions;
  for (auto [index, op] : llvm::enumerate(body))
    positions[&op] = index;
  BufferViewFlowAnalysis views(func);
  SmallVector<Buffer> buffers;
  SmallVector<memref::AllocOp> allocs;
  func.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  for (memref::AllocOp alloc : allocs) {
    if (failed(verifyAlloc(alloc, views)))
      return failure();
    MemRefType type = alloc.getType();
    if (isReturned(alloc, views))
      continue;
    if (!type.hasStaticShape()) {
      freeAfterLastUse(alloc, views);
      continue;
    }
    Buffer buffer;
    buffer.alloc = alloc;
    buffer.order = buffers.size();
    buffer.bytes = type.getNumElements() * getElementBytes(type.getElementType());
    buffer.first = buffer.last = positions.lookup(body.findAncestorOpInBlock(*alloc));
    extendLifetime(buffer, views, body, positions);
    buffers.push_back(buffer);
  }
  return buffers;
}

/// Returns the place of a buffer in an order: largest first, which is best as a rule, or longest lifetime
/// first, which leaves fewer gaps between the buffers that a step keeps from forward to backward.
static auto getKey(const Buffer &buffer, bool byLifetime) {
  uint64_t lifetime = byLifetime ? buffer.last - buffer.first : 0;
  return std::make_tuple(~lifetime, ~buffer.bytes, buffer.order);
}

/// First fit: each buffer gets the lowest offset at which no buffer that is live at the same time is, or no
/// other buffer without `reuse`. Returns the size of the workspace.
static uint64_t placeInOrder(MutableArrayRef<Buffer> buffers, uint64_t alignment, bool reuse,
                             bool byLifetime) {
  llvm::sort(buffers,
             [&](const Buffer &a, const Buffer &b) { return getKey(a, byLifetime) < getKey(b, byLifetime); });
  uint64_t total = 0;
  SmallVector<const Buffer *> placed; // sorted by offset
  for (Buffer &buffer : buffers) {
    uint64_t offset = 0;
    for (const Buffer *other : placed) {
      if (reuse && !other->meets(buffer))
        continue;
      if (offset + buffer.bytes <= other->offset)
        break;
      offset = std::max(offset, llvm::alignTo(other->offset + other->bytes, alignment));
    }
    buffer.offset = offset;
    auto *place = llvm::upper_bound(
        placed, offset, [](uint64_t value, const Buffer *other) { return value < other->offset; });
    placed.insert(place, &buffer);
    total = std::max(total, offset + buffer.bytes);
  }
  return llvm::alignTo(total, alignment);
}

/// Places buffers in the order that needs the smaller workspace. Returns its size.
static uint64_t placeBuffers(MutableArrayRef<Buffer> buffers, uint64_t alignment, bool reuse) {
  uint64_t byLifetime = placeInOrder(buffers, alignment, reuse, /*byLifetime=*/true);
  uint64_t bySize = placeInOrder(buffers, alignment, reuse, /*byLifetime=*/false);
  return bySize <= byLifetime ? bySize : placeInOrder(buffers, alignment, reuse, /*byLifetime=*/true);
}

/// Replaces the allocation by other memory and drops its deallocation.
static void replaceAlloc(memref::AllocOp alloc, Value memory) {
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    if (isa<memref::DeallocOp>(user))
      user->erase();
  alloc.getResult().replaceAllUsesWith(memory);
  alloc.erase();
}

/// Appends the workspace argument and replaces every allocation by a view of it, except for buffers
/// without elements, because upstream cannot lower views of these.
static void useWorkspace(func::FuncOp func, ArrayRef<Buffer> buffers, uint64_t total) {
  OpBuilder builder(func.getContext());
  Value workspace;
  if (total != 0) {
    unsigned position = func.getNumArguments();
    auto type = MemRefType::get({static_cast<int64_t>(total)}, builder.getI8Type());
    (void)func.insertArgument(position, type, {}, func.getLoc());
    workspace = func.getArgument(position);
  }
  for (const Buffer &buffer : buffers) {
    memref::AllocOp alloc = buffer.alloc;
    builder.setInsertionPoint(alloc);
    Location loc = alloc.getLoc();
    if (buffer.bytes == 0) {
      replaceAlloc(alloc, memref::AllocaOp::create(builder, loc, alloc.getType()));
      continue;
    }
    Value offset = arith::ConstantIndexOp::create(builder, loc, buffer.offset);
    replaceAlloc(alloc,
                 memref::ViewOp::create(builder, loc, alloc.getType(), workspace, offset, ValueRange()));
  }
}

namespace {
struct PlanWorkspacePass : public fp8::impl::PlanWorkspaceBase<PlanWorkspacePass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func.isPublic() || func.isExternal())
      return;
    FailureOr<SmallVector<Buffer>> buffers = collectBuffers(func);
    if (failed(buffers))
      return signalPassFailure();
    uint64_t total = placeBuffers(*buffers, fp8::getTarget(func).getBufferAlignment(), reuse);
    if (total > kMostBytes) {
      func.emitError("the temporaries of this function are larger than any memory");
      return signalPassFailure();
    }
    useWorkspace(func, *buffers, total);
    func->setAttr(kWorkspaceBytesAttrName, OpBuilder(func).getI64IntegerAttr(total));
  }
};
} // namespace
