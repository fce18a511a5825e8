// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocates memory of dynamic size: results by the caller, temporaries on the heap or on the device.
// Allocations, assertions and launches can fail, so entry points with one of them return a status.

#include "../Memory.h"
#include "EntryPointHelpers.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fp8 {
#define GEN_PASS_DEF_ALLOCATEDYNAMIC
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns whether the entry point can fail at run time.
static bool canFail(func::FuncOp func) {
  return func.getNumResults() != 0 ||
         func.walk([](Operation *op) {
               auto alloc = dyn_cast<memref::AllocOp>(op);
               bool fails =
                   isa<cf::AssertOp, gpu::LaunchFuncOp, StartCollectiveOp, RankOp, RankCountOp>(op) ||
                   (alloc && !alloc.getType().hasStaticShape());
               return fails ? WalkResult::interrupt() : WalkResult::advance();
             })
             .wasInterrupted();
}

namespace {
/// Rewrites one entry point.
class Rewriter {
public:
  Rewriter(func::FuncOp func, Value frame)
      : func(func), frame(frame), builder(func.getContext()), converter(func.getContext()),
        pointer(LLVM::LLVMPointerType::get(func.getContext())), i64(builder.getI64Type()) {}

  LogicalResult run();

private:
  LogicalResult allocateResult(Value returned, unsigned result);
  void allocateTemporary(memref::AllocOp alloc);
  void freeTemporary(memref::DeallocOp dealloc);
  void replace(memref::AllocOp alloc, Value memory, ValueRange sizes, const Twine &failure);
  SmallVector<Value> getDynamicSizes(memref::AllocOp alloc);
  Value integer(Location loc, int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 64); }
  func::CallOp callHelper(Location loc, StringRef name, TypeRange results, ValueRange operands);

  func::FuncOp func;
  Value frame;
  OpBuilder builder;
  LLVMTypeConverter converter;
  Type pointer, i64;
};
} // namespace

/// Creates a call of a function that fp8-emit-entry-points will define.
func::CallOp Rewriter::callHelper(Location loc, StringRef name, TypeRange results, ValueRange operands) {
  auto module = func->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(name))
    func::createFnDecl(builder, module, name, builder.getFunctionType(operands.getTypes(), results),
                       /*setPrivate=*/true);
  return func::CallOp::create(builder, loc, name, results, operands);
}

SmallVector<Value> Rewriter::getDynamicSizes(memref::AllocOp alloc) {
  return llvm::map_to_vector(alloc.getDynamicSizes(), [&](Value size) -> Value {
    return arith::IndexCastOp::create(builder, alloc.getLoc(), i64, size);
  });
}

/// Replaces the allocation by memory of a helper; asserts that it is not NULL.
void Rewriter::replace(memref::AllocOp alloc, Value memory, ValueRange sizes, const Twine &failure) {
  Location loc = alloc.getLoc();
  Value null = LLVM::ZeroOp::create(builder, loc, pointer);
  Value given = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, memory, null);
  cf::AssertOp::create(builder, loc, given, failure.str());
  alloc.replaceAllUsesWith(buildMemRef(builder, loc, converter, alloc.getType(), memory, sizes));
  alloc.erase();
}

LogicalResult Rewriter::allocateResult(Value returned, unsigned result) {
  while (auto cast = returned.getDefiningOp<memref::CastOp>())
    returned = cast.getSource();
  auto alloc = returned.getDefiningOp<memref::AllocOp>();
  if (!alloc || alloc->getBlock() != &func.front())
    return func.emitError()
           << "result " << result << " of '" << func.getName()
           << "' is no allocation of its own: run fp8-drop-bound-results after bufferization";
  builder.setInsertionPoint(alloc);
  Location loc = alloc.getLoc();
  SmallVector<Value> sizes = getDynamicSizes(alloc);
  MemRefType type = alloc.getType();
  Value rank = integer(loc, type.getRank());
  Value shape = LLVM::AllocaOp::create(builder, loc, pointer, i64, rank);
  for (unsigned dim = 0, dynamic = 0; dim < type.getRank(); ++dim) {
    Value size = type.isDynamicDim(dim) ? sizes[dynamic++] : integer(loc, type.getDimSize(dim));
    Value place = LLVM::GEPOp::create(builder, loc, pointer, i64, shape, LLVM::GEPArg(dim));
    LLVM::StoreOp::create(builder, loc, size, place);
  }
  Value memory = callHelper(loc, kAllocateResultHelper, pointer, {frame, integer(loc, result), shape, rank})
                     .getResult(0);
  replace(alloc, memory, sizes, "no memory for result " + Twine(result));
  return success();
}

void Rewriter::allocateTemporary(memref::AllocOp alloc) {
  builder.setInsertionPoint(alloc);
  Location loc = alloc.getLoc();
  SmallVector<Value> sizes = getDynamicSizes(alloc);
  Value bytes = buildByteCount(builder, loc, alloc.getType(), sizes);
  Value memory = callHelper(loc, kAllocateHelper, pointer, {frame, bytes}).getResult(0);
  replace(alloc, memory, sizes, "out of memory for a temporary");
}

void Rewriter::freeTemporary(memref::DeallocOp dealloc) {
  builder.setInsertionPoint(dealloc);
  Location loc = dealloc.getLoc();
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, dealloc.getMemref());
  Value number = arith::IndexCastOp::create(builder, loc, i64, address);
  Value memory = LLVM::IntToPtrOp::create(builder, loc, pointer, number);
  callHelper(loc, kFreeHelper, TypeRange(), {frame, memory});
  dealloc.erase();
}

LogicalResult Rewriter::run() {
  Operation *terminator = func.front().getTerminator();
  NamedAttrList allocated;
  for (auto [index, returned] : llvm::enumerate(terminator->getOperands())) {
    auto result = func.getResultAttrOfType<IntegerAttr>(index, kResultAttrName);
    if (!result)
      return func.emitError() << "'" << func.getName()
                              << "' returns values: run fp8-bind-results before bufferization";
    Type type = getCallersType(returned.getType(), func.getResultAttrDict(index));
    allocated.set(std::to_string(result.getInt()), TypeAttr::get(type));
    if (failed(allocateResult(returned, result.getInt())))
      return failure();
  }
  func->setAttr(kAllocatedResultsAttrName, allocated.getDictionary(func.getContext()));
  func.walk([&](memref::AllocOp alloc) { allocateTemporary(alloc); });
  func.walk([&](memref::DeallocOp dealloc) { freeTemporary(dealloc); });
  builder.setInsertionPoint(terminator);
  Value good = arith::ConstantIntOp::create(builder, func.getLoc(), 0, 32);
  terminator->setOperands(good);
  (void)func.eraseResults(BitVector(func.getNumResults(), true));
  (void)func.insertResult(0, good.getType(), DictionaryAttr());
  return success();
}

namespace {
struct AllocateDynamicPass : public fp8::impl::AllocateDynamicBase<AllocateDynamicPass> {
  void runOnOperation() override {
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    SmallVector<func::FuncOp> entries;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func.isPublic() && !func.isExternal() && canFail(func))
        entries.push_back(func);
    for (func::FuncOp func : entries) {
      unsigned position = func.getNumArguments();
      (void)func.insertArgument(position, pointer, DictionaryAttr(), func.getLoc());
      if (failed(Rewriter(func, func.getArgument(position)).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
