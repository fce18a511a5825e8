// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Joins independent launches of one kernel on different buffers: one launch with a row of the grid for each
// of them, and a table of their operands. A launch of a small kernel costs more than its work.

#include "LaunchOrder.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Dialect/FP8/IR/Chips.h"
#include "fp8/Dialect/FP8/IR/KernelCost.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

namespace fp8 {
#define GEN_PASS_DEF_BATCHLAUNCHES
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Kernels may have this many bytes of parameters on every chip.
static constexpr unsigned kParameterBytes = 4096;
static constexpr unsigned kSlotBytes = 8;

/// Returns whether a slot of a table holds what a kernel takes as an argument of this type. A slot holds the
/// address of a buffer's first element.
static bool fitsSlot(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return isa<LLVM::LLVMPointerType>(type) || type.isIntOrIndexOrFloat();
  int64_t offset;
  SmallVector<int64_t> strides;
  return succeeded(memref.getStridesAndOffset(strides, offset)) && offset == 0;
}

/// Returns whether the blocks of `kernel` are told apart by their position along x alone, and its operands
/// fit into a table: a pointer or a number each.
static bool isBatchable(func::FuncOp kernel) {
  if (!kernel->hasAttr(kBarePointersAttrName) || kernel->hasAttr(kClusterAttrName))
    return false;
  for (unsigned index : llvm::seq(kernel.getNumArguments()))
    if (!fitsSlot(kernel.getArgumentTypes()[index]) || kernel.getArgAttr(index, kTensorMapAttrName))
      return false;
  return !kernel
              .walk([](Operation *op) {
                bool readsGrid = isa<NVVM::BlockIdYOp, NVVM::BlockIdZOp, NVVM::GridDimXOp, NVVM::GridDimYOp,
                                     NVVM::GridDimZOp>(op);
                return readsGrid ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Loads operand number `argument` of the table's row at `row`.
static Value loadOperand(OpBuilder &b, Location loc, Type type, Value row, unsigned argument) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value slot = LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), row, LLVM::GEPArg(argument));
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, LLVM::LoadOp::create(b, loc, b.getI64Type(), slot));
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return LLVM::LoadOp::create(b, loc, type, slot);
  LLVMTypeConverter converter(b.getContext());
  Value address = LLVM::LoadOp::create(b, loc, pointer, slot);
  Value descriptor = MemRefDescriptor::fromStaticShape(b, loc, converter, memref, address);
  return UnrealizedConversionCastOp::create(b, loc, memref, descriptor).getResult(0);
}

/// Builds the kernel that takes a table of `count` rows of operands of `kernel`.
static func::FuncOp buildBatched(func::FuncOp kernel, unsigned count) {
  OpBuilder b(kernel);
  b.setInsertionPointAfter(kernel);
  Location loc = kernel.getLoc();
  unsigned slots = kernel.getNumArguments();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  std::string name = (kernel.getName() + "_batch_" + Twine(count)).str();
  auto batched = func::FuncOp::create(b, loc, name, b.getFunctionType({pointer}, {}));
  for (NamedAttribute attribute : kernel->getDiscardableAttrs())
    batched->setAttr(attribute.getName(), attribute.getValue());
  batched.setArgAttr(0, kOperandTableAttrName, b.getI32IntegerAttr(slots * count));
  b.setInsertionPointToStart(batched.addEntryBlock());
  Value number = NVVM::BlockIdYOp::create(b, loc, b.getI32Type());
  auto rowType = LLVM::LLVMArrayType::get(b.getI64Type(), slots);
  Value row = LLVM::GEPOp::create(b, loc, pointer, rowType, batched.getArgument(0),
                                  ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(number)});
  IRMapping mapping;
  for (BlockArgument argument : kernel.getArguments())
    mapping.map(argument, loadOperand(b, loc, argument.getType(), row, argument.getArgNumber()));
  for (Operation &op : kernel.getBody().front())
    b.clone(op, mapping);
  return batched;
}

namespace {
class Batcher {
public:
  explicit Batcher(ModuleOp module)
      : module(module), symbols(module.lookupSymbol(kKernelModuleName)),
        chip(dyn_cast<ChipAttr>(getTarget(module))) {}

  void run(Block &block);

private:
  bool isSmall(gpu::LaunchFuncOp launch) const;
  /// Returns a key that is equal for launches that can be joined; null for a launch that cannot be.
  Attribute getKey(gpu::LaunchFuncOp launch);
  void join(ArrayRef<gpu::LaunchFuncOp> launches);

  ModuleOp module;
  SymbolTable symbols;
  ChipAttr chip;
  llvm::DenseMap<Attribute, bool> batchable;
};
} // namespace

/// Returns whether the device can run all blocks of `launch` at the same time: a larger one takes longer than
/// it takes to launch it.
bool Batcher::isSmall(gpu::LaunchFuncOp launch) const {
  std::optional<int64_t> blocks = getConstantIntValue(launch.getGridSizeX());
  std::optional<int64_t> threads = getConstantIntValue(launch.getBlockSizeX());
  const Chip &device = chip ? fp8::getChip(chip) : listChips().front();
  return blocks && threads && *blocks * *threads <= device.multiprocessors * device.threads;
}

Attribute Batcher::getKey(gpu::LaunchFuncOp launch) {
  auto kernel = symbols.lookup<func::FuncOp>(launch.getKernelName());
  if (!kernel || !isSmall(launch) || launch->hasAttr(kMatmulsAttrName))
    return {};
  auto [entry, isNew] = batchable.try_emplace(launch.getKernelAttr(), false);
  if (isNew)
    entry->second = isBatchable(kernel);
  if (!entry->second)
    return {};
  return ArrayAttr::get(launch.getContext(), {launch.getKernelAttr(),
                                              IntegerAttr::get(IndexType::get(launch.getContext()),
                                                               *getConstantIntValue(launch.getGridSizeX()))});
}

/// Replaces `launches`, which are next to each other, by one.
void Batcher::join(ArrayRef<gpu::LaunchFuncOp> launches) {
  gpu::LaunchFuncOp first = launches.front();
  auto kernel = symbols.lookup<func::FuncOp>(first.getKernelName());
  unsigned count = launches.size();
  std::string name = (kernel.getName() + "_batch_" + Twine(count)).str();
  auto batched = symbols.lookup<func::FuncOp>(name);
  if (!batched)
    symbols.insert(batched = buildBatched(kernel, count), std::next(kernel->getIterator()));
  OpBuilder builder(launches.back());
  Location loc = first.getLoc();
  SmallVector<Value> operands;
  SmallVector<Attribute> sites;
  KernelCost cost{0, 0, 0};
  for (gpu::LaunchFuncOp launch : launches) {
    cost = cost + getKernelCost(launch);
    llvm::append_range(operands, launch.getKernelOperands());
    if (Attribute site = launch->getAttr(kKernelSiteAttrName); site && !llvm::is_contained(sites, site))
      sites.push_back(site);
  }
  auto symbol = SymbolRefAttr::get(builder.getStringAttr(kKernelModuleName),
                                   FlatSymbolRefAttr::get(batched.getSymNameAttr()));
  Value rows = arith::ConstantIndexOp::create(builder, loc, count);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto launch = gpu::LaunchFuncOp::create(builder, loc, symbol, {first.getGridSizeX(), rows, one},
                                          {first.getBlockSizeX(), one, one}, Value(), operands);
  if (!sites.empty())
    launch->setAttr(kKernelSiteAttrName, sites.size() == 1 ? sites.front() : builder.getArrayAttr(sites));
  if (first->hasAttr(kKernelCostAttrName))
    setKernelCost(launch, cost);
  for (gpu::LaunchFuncOp old : launches)
    old.erase();
}

/// Orders the launches of `block` so that those that can be joined follow each other, and joins them.
void Batcher::run(Block &block) {
  for (Operation &op : block)
    if (!isa<gpu::LaunchFuncOp>(op))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          run(inner);
  for (SmallVector<gpu::LaunchFuncOp> &group :
       groupLaunches(block, symbols, [&](gpu::LaunchFuncOp launch) { return getKey(launch); })) {
    size_t most = kParameterBytes / kSlotBytes / std::max<size_t>(1, group.front().getNumKernelOperands());
    for (ArrayRef<gpu::LaunchFuncOp> rest = group; rest.size() > 1 && most > 1;) {
      size_t count = std::min(rest.size(), most);
      join(rest.take_front(count));
      rest = rest.drop_front(count);
    }
  }
}

namespace {
struct BatchLaunchesPass : public fp8::impl::BatchLaunchesBase<BatchLaunchesPass> {
  void runOnOperation() override {
    if (!getOperation().lookupSymbol(kKernelModuleName))
      return;
    Batcher batcher(getOperation());
    for (auto entry : getOperation().getOps<func::FuncOp>())
      for (Block &block : entry.getBody())
        batcher.run(block);
    eraseUnusedKernels();
  }

  /// Erases kernels that only ran in batches.
  void eraseUnusedKernels() {
    llvm::DenseSet<Attribute> used;
    getOperation().walk([&](gpu::LaunchFuncOp launch) { used.insert(launch.getKernelName()); });
    auto kernels = getOperation().lookupSymbol<gpu::GPUModuleOp>(kKernelModuleName);
    for (auto kernel : llvm::make_early_inc_range(kernels.getOps<func::FuncOp>()))
      if (kernel->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()) &&
          !used.contains(kernel.getSymNameAttr()))
        kernel.erase();
  }
};
} // namespace
