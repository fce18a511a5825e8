// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of a kernel of tiles, from the operation; its arguments and its launch.

#include "ColumnSums.h"
#include "Product.h"
#include "TileKernel.h"
#include "fp8/Analysis/Sites/SiteNames.h"
#include "fp8/Conversion/GenericCode.h"
#include "fp8/Conversion/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;

IRMapping TileWork::capture(KernelBuilder &b) const {
  IRMapping captured;
  for (Value value : constants)
    captured.map(value, b.clone(*value.getDefiningOp())->getResult(0));
  for (auto [value, argument] : indices)
    captured.map(
        value,
        arith::IndexCastOp::create(b, b.getIndexType(), b.getKernel().getArgument(argument)).getResult());
  return captured;
}

/// Sorts the values that the region uses from outside. Returns false if there are others than constants and
/// indices of loops, such as scalars that are in the device's memory.
static bool findCaptures(TileWork &work) {
  if (work.region->isEmpty())
    return true;
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(*work.region->region, captures);
  for (Value value : captures) {
    Operation *op = value.getDefiningOp();
    if (op && op->hasTrait<OpTrait::ConstantLike>())
      work.constants.push_back(value);
    else if (value.getType().isIndex() && isa<BlockArgument>(value)) // of a loop of the host
      work.indices.push_back({value, 0});
    else
      return false;
  }
  return true;
}

void fp8::remarkGeneric(Operation *op, const Twine &reason) {
  remarkGeneric(op, "stays generic code on the GPU", reason);
}

static std::nullopt_t leave(Operation *op, const Twine &reason) {
  remarkGeneric(op, reason);
  return std::nullopt;
}

std::optional<TileWork> TileWork::create(Operation *op, unsigned batchDims, unsigned columnDims) {
  ElementRegion region = *ElementRegion::of(op);
  SmallVector<int64_t> sizes = region.getShape();
  if (!ShapedType::isStaticShape(sizes))
    return leave(op, "its tensor is of dynamic shape");
  TileWork work(op->getLoc(), TileSpace(sizes, batchDims, columnDims));
  if (!work.space.isCountable())
    return leave(op, kTooLarge);
  work.region = region;
  for (auto [memref, map] : llvm::zip_equal(region.inputs, region.inputMaps())) {
    std::optional<TileOperand> operand = TileOperand::create(memref, map, work.space);
    if (!operand)
      return leave(op, "an input is of dynamic strides");
    work.inputs.push_back(*operand);
  }
  for (auto [memref, map] : llvm::zip_equal(region.extras(), region.extraMaps())) {
    bool sums = region.sums(map);
    if (sums && hasModuleAttr(op, kProgramOrderAttrName))
      return leave(op, "its sums are in the order of the program");
    std::optional<TileOperand> operand = TileOperand::create(memref, map, work.space);
    bool keepsSeveral = llvm::count_if(map.getResults(), llvm::IsaPred<AffineDimExpr>) != 1;
    if (!operand || (sums && (keepsSeveral || !operand->hasAdjacentColumns(work.space))))
      return leave(op, "an extra result is of dynamic strides, or keeps several dimensions of a sum");
    work.extras.push_back({*operand, sums});
  }
  if (!findCaptures(work))
    return leave(op, "its producer uses a scalar from outside");
  if (!region.amaxes.empty())
    work.amax.memref = region.amaxOuts()[0];
  if (auto quantize = dyn_cast<QuantizeOp>(op); quantize && quantize.getRandom()) {
    work.random.memref = quantize.getRandom();
    work.stream = *quantize.getStream();
  }
  if (auto blocks = dyn_cast<QuantizeBlocksOp>(op); blocks && blocks.getRandom()) {
    work.random.memref = blocks.getRandom();
    work.stream = *blocks.getStream();
  }
  return work;
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

/// Replaces the operands of sums by buffers of `parts` rows. Returns the sums and their buffers.
static SmallVector<std::pair<Value, Value>> allocatePartialSums(OpBuilder &builder, TileWork &work,
                                                                int64_t parts) {
  SmallVector<std::pair<Value, Value>> partial;
  if (parts == 1)
    return partial; // the kernel writes the sums themselves
  auto type = MemRefType::get({parts, work.space.columns}, builder.getF32Type());
  for (TileExtra &extra : work.extras) {
    if (!extra.isSum)
      continue;
    Value buffer = memref::AllocOp::create(builder, work.loc, type);
    partial.push_back({extra.operand.memref, buffer});
    extra.operand.memref = buffer;
  }
  return partial;
}

/// Adds the operands of `scaling` that a kernel uses which computes amaxes only, or all but those.
static void addScaling(TileScaling &scaling, bool onlyMeasures, KernelArguments &arguments) {
  if (scaling.amaxes)
    scaling.amaxes.argument = arguments.addPointer(scaling.amaxes.memref);
  if (onlyMeasures)
    return;
  for (std::optional<TileOperand> *operand : {&scaling.data, &scaling.transposed})
    if (*operand)
      (*operand)->argument = arguments.addPointer((*operand)->memref);
  for (TileOperand &scaleInv : scaling.scaleInv)
    scaleInv.argument = arguments.addPointer(scaleInv.memref);
}

/// Gives every operand the number of its argument.
static void addArguments(KernelArguments &arguments, TileWork &work) {
  auto addOperand = [&](TileOperand &operand) { operand.argument = arguments.addPointer(operand.memref); };
  llvm::for_each(work.inputs, addOperand);
  for (TileExtra &extra : work.extras)
    addOperand(extra.operand);
  for (std::optional<TileOperand> *operand : {&work.data, &work.columns})
    if (*operand)
      addOperand(**operand);
  for (TileScalar *scalar : {&work.scale, &work.scaleInv, &work.amax})
    if (*scalar)
      scalar->argument = arguments.addPointer(scalar->memref);
  if (work.random && !work.onlyMeasures)
    work.random.argument = arguments.addPointer(work.random.memref);
  for (TileScaling &scaling : work.scalings)
    addScaling(scaling, work.onlyMeasures, arguments);
  for (auto &[value, argument] : work.indices)
    argument = arguments.addI64(value);
}

void fp8::launchWork(OpBuilder &builder, LoweringContext &context, TileWork &work, const WorkLaunch &shape,
                     function_ref<void(KernelBuilder &)> build) {
  Location loc = work.loc;
  std::string site = parseNameStack(loc).site;
  SmallVector<std::pair<Value, Value>> partialSums = allocatePartialSums(builder, work, shape.partsOfSums);
  KernelArguments arguments(builder, loc);
  addArguments(arguments, work);
  KernelSpec spec;
  spec.name = shape.name.str() + "_" + site;
  spec.kind = "casts";
  spec.arguments = arguments.types;
  spec.threads = shape.threads;
  func::FuncOp kernel = context.kernels.build(loc, spec, build);
  Value grid = arith::ConstantIndexOp::create(builder, loc, shape.blocks);
  gpu::LaunchFuncOp launch = launchKernel(builder, loc, kernel, grid, arguments.operands);
  markLaunch(launch, site);
  if (work.amax)
    context.amaxes.add(launch, work.amax.argument);
  if (work.onlyMeasures)
    for (const TileScaling &scaling : work.scalings)
      context.amaxes.add(launch, scaling.amaxes.argument);
  for (auto [sum, partial] : partialSums)
    launchSumOfRows(builder, context, loc, partial, sum);
}

void fp8::launchTiles(OpBuilder &builder, LoweringContext &context, TileWork &work, StringRef name) {
  constexpr int64_t kThreads = 256;
  launchWork(builder, context, work, {name, work.space.countTiles(), kThreads, work.space.countRowTiles()},
             [&](KernelBuilder &b) { buildTileKernel(b, work); });
}
