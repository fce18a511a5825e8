// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outlines every kernel into a function, and equal kernels into the same function, so that equal
// layers of a model are compiled once. A view of a buffer, such as a slot of the state, is passed as
// the buffer and an offset: in the view's type, the offset would make every layer's kernels different.

#include "KernelNames.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Target/Host/HostCode.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace fp8 {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns whether `op` is a loop that is one kernel: nothing in it is a kernel of its own, allocates
/// memory or can fail, and its results are scalars.
static bool isLeafLoop(Operation *op) {
  if (!isa<scf::ForOp, scf::ParallelOp>(op) ||
      !llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); }))
    return false;
  return !op->walk([&](Operation *inner) {
              bool blocks = isa<linalg::LinalgOp, func::CallOp, memref::AllocOp, memref::CopyOp, scf::WhileOp,
                                cf::AssertOp, gpu::LaunchFuncOp, StartCollectiveOp, WaitCollectiveOp>(inner);
              return blocks ? WalkResult::interrupt() : WalkResult::advance();
            }).wasInterrupted();
}

static bool isKernel(Operation *op) {
  return isa<linalg::LinalgOp, memref::CopyOp>(op) || op->hasAttr(kKernelAttrName) || isLeafLoop(op);
}

static void collectKernels(Region &region, SmallVectorImpl<Operation *> &kernels) {
  for (Operation &op : region.getOps()) {
    if (isKernel(&op)) {
      kernels.push_back(&op);
      continue;
    }
    for (Region &nested : op.getRegions())
      collectKernels(nested, kernels);
  }
}

/// Returns the buffer that `value` is a view of if that is separate memory: an allocation, a global
/// or an argument of the entry point. Returns null if it may be one of several.
static Value findOwnMemory(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  if (Operation *op = value.getDefiningOp())
    return isa<memref::AllocOp, memref::GetGlobalOp>(op) ? value : Value();
  Operation *owner = cast<BlockArgument>(value).getOwner()->getParentOp();
  return isa<func::FuncOp>(owner) ? value : Value();
}

namespace {
/// The values from outside that a kernel uses.
struct Captures {
  SmallVector<Value> arguments;
  SmallVector<Operation *> constants; // cloned into the kernel
  SmallVector<bool> noAlias;          // per argument
};

class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module), symbols(module) {}

  void outline(Operation *kernel);

private:
  func::FuncOp build(Operation *kernel, Captures &captures);
  ModuleOp module;
  SymbolTable symbols;
  llvm::StringMap<func::FuncOp> byText;
};
} // namespace

static Captures findCaptures(Operation *kernel) {
  llvm::SetVector<Value> values;
  values.insert_range(kernel->getOperands());
  getUsedValuesDefinedAbove(kernel->getRegions(), values);
  Captures captures;
  for (Value value : values) {
    Operation *op = value.getDefiningOp();
    if (op && op->hasTrait<OpTrait::ConstantLike>())
      captures.constants.push_back(op);
    else
      captures.arguments.push_back(value);
  }
  llvm::DenseMap<Value, unsigned> uses;
  bool known = true;
  for (Value value : captures.arguments) {
    if (!isa<MemRefType>(value.getType()))
      continue;
    Value memory = findOwnMemory(value);
    known &= bool(memory);
    ++uses[memory];
  }
  for (Value value : captures.arguments)
    captures.noAlias.push_back(known && isa<MemRefType>(value.getType()) &&
                               uses.lookup(findOwnMemory(value)) == 1);
  return captures;
}

/// Returns `type` with an unknown offset.
static MemRefType forgetOffset(MemRefType type) {
  auto [strides, offset] = type.getStridesAndOffset();
  auto layout = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout, type.getMemorySpace());
}

/// Returns whether sizes and strides of `type` are known, and an offset other than 0 is to be passed.
static bool hasOffsetToPass(MemRefType type) {
  int64_t offset;
  SmallVector<int64_t> strides;
  return type.hasStaticShape() && succeeded(type.getStridesAndOffset(strides, offset)) && offset != 0 &&
         ShapedType::isStaticShape(strides) && !llvm::is_contained(strides, 0);
}

/// Collects the views of `buffer` whose offsets follow from its offset. Returns false if an operation
/// other than a view ties the type of another value to that of `buffer`.
static bool collectViews(Value buffer, SmallVectorImpl<Value> &views) {
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (isa<memref::SubViewOp, memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(user)) {
      Value view = user->getResult(0);
      views.push_back(view);
      return isa<MemRefType>(view.getType()) && collectViews(view, views);
    }
    return isa<linalg::LinalgOp, memref::LoadOp, memref::StoreOp, memref::CopyOp, vector::TransferReadOp,
               vector::TransferWriteOp>(user);
  });
}

/// Changes the argument `index` of `func` from a view to the buffer and an offset, which becomes the
/// last argument. Returns false, with `func` unchanged, if it must stay a view.
static bool passOffset(func::FuncOp func, unsigned index) {
  BlockArgument argument = func.getArgument(index);
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type || !hasOffsetToPass(type))
    return false;
  auto [strides, offset] = type.getStridesAndOffset();
  SmallVector<Value> views;
  if (!ShapedType::isDynamic(offset) && !collectViews(argument, views))
    return false;
  OpBuilder builder(func.getBody());
  unsigned last = func.getNumArguments();
  (void)func.insertArgument(last, builder.getIndexType(), {}, func.getLoc());
  auto view = memref::ReinterpretCastOp::create(builder, func.getLoc(), forgetOffset(type), argument,
                                                OpFoldResult(func.getArgument(last)),
                                                getAsIndexOpFoldResult(builder.getContext(), type.getShape()),
                                                getAsIndexOpFoldResult(builder.getContext(), strides));
  argument.replaceAllUsesExcept(view, view);
  argument.setType(
      MemRefType::get({}, type.getElementType(), MemRefLayoutAttrInterface(), type.getMemorySpace()));
  func.setType(builder.getFunctionType(func.getBody().getArgumentTypes(), func.getResultTypes()));
  for (Value derived : views)
    derived.setType(forgetOffset(cast<MemRefType>(derived.getType())));
  return true;
}

/// Changes the argument `index` of `func` from bf16 to its bits, and `given` alike. x86 without instructions
/// for bf16 passes it as f32, and the way back is a function of the C compiler's library.
static void passBits(func::FuncOp func, unsigned index, Value &given, OpBuilder &caller) {
  BlockArgument argument = func.getArgument(index);
  if (!argument.getType().isBF16())
    return;
  OpBuilder builder(func.getBody());
  argument.setType(builder.getI16Type());
  auto value = arith::BitcastOp::create(builder, func.getLoc(), builder.getBF16Type(), argument);
  argument.replaceAllUsesExcept(value, value);
  func.setType(builder.getFunctionType(func.getBody().getArgumentTypes(), func.getResultTypes()));
  given = arith::BitcastOp::create(caller, func.getLoc(), builder.getI16Type(), given);
}

/// Clones the kernel into a new function and changes the captures to the arguments of its call.
func::FuncOp Outliner::build(Operation *kernel, Captures &captures) {
  OpBuilder builder(kernel);
  SmallVector<Value> &arguments = captures.arguments;
  auto func = func::FuncOp::create(kernel->getLoc(), "kernel",
                                   builder.getFunctionType(TypeRange(arguments), kernel->getResultTypes()));
  func.setPrivate();
  IRMapping mapping;
  auto body = OpBuilder::atBlockBegin(func.addEntryBlock());
  mapping.map(arguments, func.getArguments());
  for (Operation *constant : captures.constants)
    body.clone(*constant, mapping);
  Operation *clone = body.clone(*kernel, mapping);
  func::ReturnOp::create(body, kernel->getLoc(), clone->getResults());

  for (unsigned i = 0, e = arguments.size(); i < e; ++i) {
    passBits(func, i, arguments[i], builder);
    if (!passOffset(func, i))
      continue;
    auto parts = memref::ExtractStridedMetadataOp::create(builder, kernel->getLoc(), arguments[i]);
    arguments[i] = parts.getBaseBuffer();
    arguments.push_back(parts.getOffset());
  }
  bool pointers = canPassPointers(func.getArgumentTypes());
  if (pointers)
    func->setAttr(kBarePointersAttrName, builder.getUnitAttr());
  bool hasThreads = fp8::getTarget(kernel).hasManyThreads();
  for (auto [index, noAlias] : llvm::enumerate(captures.noAlias))
    if (noAlias && pointers)
      func.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    else if (noAlias && hasThreads) // the argument becomes a descriptor
      func.setArgAttr(index, kOwnMemoryAttrName, builder.getUnitAttr());
  return func;
}

/// Removes the marks of matmuls in `kernel` and returns them for the call: equal kernels compute
/// matmuls of several sites.
static ArrayAttr takeMatmulMarks(Operation *kernel) {
  SmallVector<Attribute> matmuls;
  kernel->walk([&](Operation *op) {
    if (auto marks = dyn_cast_or_null<ArrayAttr>(op->removeAttr(kMatmulsAttrName)))
      llvm::append_range(matmuls, marks);
  });
  return matmuls.empty() ? ArrayAttr() : ArrayAttr::get(kernel->getContext(), matmuls);
}

void Outliner::outline(Operation *kernel) {
  KernelName name = nameKernel(kernel);
  kernel->walk([](Operation *op) { op->removeAttr(kComputesAttrName); });
  ArrayAttr matmuls = takeMatmulMarks(kernel);
  Captures captures = findCaptures(kernel);
  func::FuncOp func = build(kernel, captures);
  // Printing omits locations and numbers values in order, so equal text means equal code.
  std::string text;
  llvm::raw_string_ostream stream(text);
  func->print(stream, OpPrintingFlags().useLocalScope().assumeVerified());
  auto [entry, isNew] = byText.try_emplace(text, func);
  if (isNew) {
    func.setName(makeUnique(name.getSymbol(), [&](StringRef taken) { return symbols.lookup(taken); }));
    func->setAttr(kKernelKindAttrName, StringAttr::get(func.getContext(), name.kind));
    symbols.insert(func);
  } else {
    func.erase();
  }
  OpBuilder builder(kernel);
  auto call = func::CallOp::create(builder, kernel->getLoc(), entry->second, captures.arguments);
  if (matmuls)
    call->setAttr(kMatmulsAttrName, matmuls);
  if (!name.site.empty())
    call->setAttr(kKernelSiteAttrName, builder.getStringAttr(name.site));
  kernel->replaceAllUsesWith(call.getResults());
  kernel->erase();
}

namespace {
struct OutlineKernelsPass : public fp8::impl::OutlineKernelsBase<OutlineKernelsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> kernels;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func.isPublic())
        collectKernels(func.getBody(), kernels);
    for (Operation *kernel : kernels)
      if (auto structured = dyn_cast<linalg::LinalgOp>(kernel);
          structured && !structured.hasPureBufferSemantics()) {
        kernel->emitError("expected to be bufferized before it is outlined");
        return signalPassFailure();
      }
    Outliner outliner(getOperation());
    for (Operation *kernel : kernels)
      outliner.outline(kernel);
  }
};
} // namespace
