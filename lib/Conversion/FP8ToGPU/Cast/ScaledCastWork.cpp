// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of a kernel of tiles, from the operation; its arguments and its launch.

#include "../Kernel/ColumnSums.h"
#include "../Kernel/KernelArguments.h"
#include "ScaledCastKernel.h"
#include "fp8/Analysis/Sites/SiteNames.h"
#include "fp8/Conversion/GenericCode.h"
#include "fp8/Conversion/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;

static Value multiply(OpBuilder &builder, Location loc, Value a, Value b) {
  return builder.createOrFold<arith::MulIOp>(loc, a, b);
}

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

/// Returns an operand, and its dimension, for each dynamic one of `sizes`.
static SmallVector<std::pair<Value, unsigned>, 0> findSizes(const ElementRegion &region,
                                                            ArrayRef<int64_t> sizes) {
  SmallVector<std::pair<Value, unsigned>, 0> found(sizes.size());
  auto read = [&](Value operand, AffineMap map) {
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        if (unsigned number = dim.getPosition(); ShapedType::isDynamic(sizes[number]) && !found[number].first)
          found[number] = {operand, position};
  };
  for (auto [operand, map] : llvm::zip(region.inputs, region.inputMaps()))
    read(operand, map);
  if (isa<QuantizeOp>(region.op))
    read(region.outs[0], AffineMap::getMultiDimIdentityMap(sizes.size(), region.op->getContext()));
  for (auto [operand, map] : llvm::zip(region.extras(), region.extraMaps()))
    read(operand, map);
  return found;
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
  TileWork work(op->getLoc(), TileSpace(sizes, batchDims, columnDims));
  if (ShapedType::isDynamic(work.space.columns))
    return leave(op, "the size of its last dimension is dynamic");
  work.sizes = findSizes(region, sizes);
  for (auto [size, source] : llvm::zip_equal(sizes, work.sizes))
    if (ShapedType::isDynamic(size) && !source.first)
      return leave(op, "none of its inputs and extra results has one of its dynamic sizes");
  if (!work.space.isCountable())
    return leave(op, kTooLarge);
  work.region = region;
  for (auto [memref, map] : llvm::zip_equal(region.inputs, region.inputMaps())) {
    std::optional<TileOperand> operand = TileOperand::create(memref, map, work.space);
    if (!operand)
      return leave(op, "an input has no strides");
    work.inputs.push_back(*operand);
  }
  for (auto [memref, map] : llvm::zip_equal(region.extras(), region.extraMaps())) {
    bool sums = region.sums(map);
    if (sums && hasModuleAttr(op, kProgramOrderAttrName))
      return leave(op, "its sums are in the order of the program");
    std::optional<TileOperand> operand = TileOperand::create(memref, map, work.space);
    bool keepsSeveral = llvm::count_if(map.getResults(), llvm::IsaPred<AffineDimExpr>) != 1;
    if (!operand || (sums && (keepsSeveral || !operand->hasAdjacentColumns(work.space))))
      return leave(op, "an extra result has no strides, or keeps several dimensions of a sum");
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

/// Builds the product of dimensions `first` to `last` - 1.
static Value buildSize(OpBuilder &builder, const TileWork &work, unsigned first, unsigned last) {
  Value count = constantIndex(builder, work.loc, 1);
  for (unsigned dim = first; dim < last; ++dim) {
    Value size;
    if (int64_t known = work.space.sizes[dim]; !ShapedType::isDynamic(known))
      size = constantIndex(builder, work.loc, known);
    else
      size = memref::DimOp::create(builder, work.loc, work.sizes[dim].first, work.sizes[dim].second);
    count = multiply(builder, work.loc, count, size);
  }
  return count;
}

Value TileWork::buildBatches(OpBuilder &builder) const {
  return buildSize(builder, *this, 0, space.batchDims);
}

Value TileWork::buildRows(OpBuilder &builder) const {
  return buildSize(builder, *this, space.batchDims, space.sizes.size() - space.columnDims);
}

/// Replaces the operands of sums by buffers of `parts` rows. Returns the sums and their buffers.
static SmallVector<std::pair<Value, Value>> allocatePartialSums(OpBuilder &builder, TileWork &work,
                                                                Value parts) {
  SmallVector<std::pair<Value, Value>> partial;
  std::optional<int64_t> known = getConstantIntValue(parts);
  if (known == 1)
    return partial; // the kernel writes the sums themselves
  auto type =
      MemRefType::get({known.value_or(ShapedType::kDynamic), work.space.columns}, builder.getF32Type());
  for (TileExtra &extra : work.extras) {
    if (!extra.isSum)
      continue;
    Value buffer = memref::AllocOp::create(builder, work.loc, type, known ? ValueRange() : parts);
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

/// Adds the strides of `operand` that only the call knows.
static void addStrides(OpBuilder &builder, KernelArguments &arguments, TileOperand &operand) {
  for (auto [number, dim] : llvm::enumerate(operand.dynamicDims)) {
    if (!operand.needsStride(number))
      continue;
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, operand.memref.getLoc(), operand.memref);
    operand.strideArguments[number] = arguments.addI64(metadata.getStrides()[dim]);
  }
}

/// Adds the sizes of the tensor and the strides of its operands that only the call knows.
static void addDynamicSizes(OpBuilder &builder, KernelArguments &arguments, TileWork &work) {
  TileSpace &space = work.space;
  if (ShapedType::isDynamic(space.batches))
    space.batchesArgument = arguments.addI32(work.buildBatches(builder));
  if (ShapedType::isDynamic(space.rows))
    space.rowsArgument = arguments.addI32(work.buildRows(builder));
  for (auto [dim, size] : llvm::enumerate(space.sizes))
    if (ShapedType::isDynamic(size) && !space.isOutermost(dim))
      space.sizeArguments[dim] = arguments.addI32(buildSize(builder, work, dim, dim + 1));
  for (TileOperand &input : work.inputs)
    addStrides(builder, arguments, input);
  for (TileExtra &extra : work.extras)
    if (!extra.isSum)
      addStrides(builder, arguments, extra.operand);
  for (std::optional<TileOperand> *operand : {&work.data, &work.columns})
    if (*operand)
      addStrides(builder, arguments, **operand);
  if (work.onlyMeasures)
    return;
  for (TileScaling &scaling : work.scalings) {
    for (std::optional<TileOperand> *operand : {&scaling.data, &scaling.transposed})
      if (*operand)
        addStrides(builder, arguments, **operand);
    for (TileOperand &scaleInv : scaling.scaleInv)
      addStrides(builder, arguments, scaleInv);
  }
}

/// Gives every operand the number of its argument.
static void addArguments(OpBuilder &builder, KernelArguments &arguments, TileWork &work) {
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
  addDynamicSizes(builder, arguments, work);
}

void fp8::launchWork(OpBuilder &builder, LoweringContext &context, TileWork &work, const WorkLaunch &shape,
                     function_ref<void(KernelBuilder &)> build) {
  Location loc = work.loc;
  std::string site = parseNameStack(loc).site;
  SmallVector<std::pair<Value, Value>> partialSums = allocatePartialSums(builder, work, shape.partsOfSums);
  KernelArguments arguments(builder, loc);
  addArguments(builder, arguments, work);
  KernelSpec spec;
  spec.name = shape.name.str() + "_" + site;
  spec.kind = "casts";
  spec.arguments = arguments.types;
  spec.threads = shape.threads;
  func::FuncOp kernel = context.kernels.build(loc, spec, build);
  gpu::LaunchFuncOp launch = launchKernel(builder, loc, kernel, shape.blocks, arguments.operands);
  markLaunch(launch, site);
  if (work.amax)
    context.amaxes.add(launch, work.amax.argument);
  if (work.onlyMeasures)
    for (const TileScaling &scaling : work.scalings)
      context.amaxes.add(launch, scaling.amaxes.argument);
  for (auto [sum, partial] : partialSums)
    launchSumOfRows(builder, context, loc, partial, sum);
}

Value fp8::countRowBlocks(OpBuilder &builder, const TileWork &work, int64_t rowsOfBlock) {
  Location loc = work.loc;
  Value one = constantIndex(builder, loc, 1), divisor = constantIndex(builder, loc, rowsOfBlock);
  auto atLeastOne = [&](Value count) { return builder.createOrFold<arith::MaxUIOp>(loc, count, one); };
  Value blocks = builder.createOrFold<arith::CeilDivUIOp>(loc, work.buildRows(builder), divisor);
  return multiply(builder, loc, atLeastOne(work.buildBatches(builder)), atLeastOne(blocks));
}

void fp8::launchTiles(OpBuilder &builder, LoweringContext &context, TileWork &work, StringRef name) {
  constexpr int64_t kThreads = 256;
  Value rowTiles = countRowBlocks(builder, work, kTile);
  Value tilesOfRow = constantIndex(builder, work.loc, work.space.countColumnTiles());
  launchWork(builder, context, work,
             {name, multiply(builder, work.loc, rowTiles, tilesOfRow), kThreads, rowTiles},
             [&](KernelBuilder &b) { buildTileKernel(b, work); });
}
