// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clears amaxes: a launch for all that a block allocates.

#include "AmaxBuffers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

/// Launches a kernel that sets all elements at `memref`, of rank 0 or 1, to 0.
static void launchClear(OpBuilder &builder, KernelTable &kernels, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.hasStaticShape() && type.getNumElements() == 0)
    return;
  KernelSpec spec;
  spec.name = "clear_amax";
  spec.kind = "casts";
  spec.arguments = {LLVM::LLVMPointerType::get(builder.getContext()), builder.getI32Type()};
  func::FuncOp kernel = kernels.build(loc, spec, [](KernelBuilder &b) {
    Expr i = b.block(0) * 256 + b.thread();
    b.when(i < b.argument(1), [&] { b.store(b.real(0.0f), b.at(b.globalPointer(0), i * 4)); });
  });
  Value count = type.hasStaticShape() ? constantIndex(builder, loc, type.getNumElements())
                                      : memref::DimOp::create(builder, loc, memref, 0).getResult();
  Value blocks = builder.createOrFold<arith::CeilDivUIOp>(loc, count, constantIndex(builder, loc, 256));
  // A grid has a block.
  blocks = builder.createOrFold<arith::MaxUIOp>(loc, blocks, constantIndex(builder, loc, 1));
  Value size = builder.createOrFold<arith::IndexCastOp>(loc, builder.getI32Type(), count);
  launchKernel(builder, loc, kernel, blocks, {memref, size});
}

/// Returns whether the amax is an allocation for this launch alone, whose type its users do not depend on.
bool AmaxBuffers::canJoin(Use use) {
  auto alloc = use.getAmax().getDefiningOp<memref::AllocOp>();
  return alloc && alloc.getType().getRank() == 0 && alloc->getBlock() == use.launch->getBlock() &&
         alloc.getType().getLayout().isIdentity() &&
         llvm::count_if(uses, [&](Use other) { return other.getAmax() == use.getAmax(); }) == 1 &&
         llvm::all_of(alloc->getUsers(), llvm::IsaPred<gpu::LaunchFuncOp, memref::LoadOp>);
}

/// Replaces `allocs`, of one block, by the elements of a vector of zeros.
static void joinBuffers(ArrayRef<memref::AllocOp> allocs, KernelTable &kernels) {
  memref::AllocOp first =
      *llvm::min_element(allocs, [](memref::AllocOp a, memref::AllocOp b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(first);
  auto count = static_cast<int64_t>(allocs.size());
  Value vector = memref::AllocOp::create(
      builder, first.getLoc(), MemRefType::get({count}, builder.getF32Type()), first.getAlignmentAttr());
  launchClear(builder, kernels, first.getLoc(), vector);
  for (auto [i, alloc] : llvm::enumerate(allocs)) {
    auto type = MemRefType::get({}, builder.getF32Type(),
                                StridedLayoutAttr::get(builder.getContext(), i, ArrayRef<int64_t>()));
    OpFoldResult offset = builder.getIndexAttr(i), one = builder.getIndexAttr(1);
    Value element = memref::SubViewOp::create(builder, alloc->getLoc(), type, vector, offset, one, one);
    alloc->getResult(0).replaceAllUsesWith(element);
  }
  for (memref::AllocOp alloc : allocs)
    alloc.erase();
}

/// Returns the position of `amax` in the vector that it is an element of.
static std::pair<Value, int64_t> findElement(Value amax) {
  auto view = amax.getDefiningOp<memref::SubViewOp>();
  if (!view || view.getSourceType().getRank() != 1 || view.isDynamicOffset(0))
    return {amax, 0};
  return {view.getSource(), view.getStaticOffset(0)};
}

/// Returns the allocation of the vector that the amax of this launch alone is an element of; null if there is
/// none in the block of the launch.
Operation *AmaxBuffers::findVector(Use use) {
  auto element = findElement(use.getAmax());
  auto alloc = element.first.getDefiningOp<memref::AllocOp>();
  bool isAlone =
      llvm::count_if(uses, [&](Use other) { return findElement(other.getAmax()) == element; }) == 1;
  return element.first != use.getAmax() && alloc && alloc->getBlock() == use.launch->getBlock() &&
                 alloc.getType().hasStaticShape() && alloc.getType().getLayout().isIdentity() && isAlone
             ? alloc.getOperation()
             : nullptr;
}

void AmaxBuffers::clear(KernelTable &kernels) {
  llvm::SetVector<Operation *> vectors;
  llvm::MapVector<Block *, SmallVector<memref::AllocOp>> joined;
  for (Use use : uses) {
    if (Operation *vector = findVector(use)) {
      vectors.insert(vector);
    } else if (canJoin(use)) {
      joined[use.launch->getBlock()].push_back(use.getAmax().getDefiningOp<memref::AllocOp>());
    } else {
      OpBuilder builder(use.launch);
      launchClear(builder, kernels, use.launch.getLoc(), use.getAmax());
    }
  }
  for (Operation *vector : vectors) {
    OpBuilder builder(vector->getBlock(), std::next(vector->getIterator()));
    launchClear(builder, kernels, vector->getLoc(), vector->getResult(0));
  }
  for (auto &[block, allocs] : joined)
    joinBuffers(allocs, kernels);
}
