// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues of matmuls, on the host: the arguments of the kernel, and the code around the launch.
// EpilogueCode.cpp has the code inside of kernels.

#include "Epilogue.h"
#include "../Kernel/ColumnSums.h"
#include "../Kernel/TileOperands.h"
#include "fp8/Conversion/FP8ToLinalg/MatmulEpilogue.h"
#include "fp8/Conversion/GenericCode.h"
#include "fp8/Conversion/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"
#include <numeric>

using namespace mlir;
using namespace fp8;

/// Returns whether kernels load and store elements of `type`.
static bool isLoadable(Type type) {
  return type.isF32() || type.isBF16() || type.isF16() ||
         (type.isSignlessInteger() &&
          llvm::is_contained({1u, 8u, 16u, 32u, 64u}, type.getIntOrFloatBitWidth()));
}

/// Returns whether a map reads or writes each operand dimension at one dimension of the result, or at 0.
static bool isSimple(AffineMap map) {
  return llvm::all_of(map.getResults(), [](AffineExpr expr) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    return isa<AffineDimExpr>(expr) || (constant && constant.getValue() == 0);
  });
}

/// Returns the epilogue of `op`, after copying into its region the constants that the region uses.
static ElementRegion getWithConstants(Operation *op) {
  ElementRegion epilogue = *ElementRegion::of(op);
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(*epilogue.region, captures);
  for (Value value : captures) {
    Operation *constant = value.getDefiningOp();
    if (!constant || !constant->hasTrait<OpTrait::ConstantLike>())
      continue;
    OpBuilder builder = OpBuilder::atBlockBegin(&epilogue.region->front());
    replaceAllUsesInRegionWith(value, builder.clone(*constant)->getResult(0), *epilogue.region);
  }
  return epilogue;
}

/// Returns whether the region is scalar code on its arguments alone, without FP8, which has casts of its own.
static bool isScalarCode(Region &region) {
  if (region.empty())
    return true;
  return !region
              .walk([&](Operation *op) {
                bool isOutside = llvm::any_of(op->getOperands(), [&](Value operand) {
                  return !region.isAncestor(operand.getParentRegion());
                });
                bool isFP8 = llvm::any_of(op->getResultTypes(), [](Type type) {
                  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
                });
                return isOutside || isFP8 ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

bool Epilogue::isValid(Operation *op) {
  MatmulResults results = *MatmulResults::of(op);
  return !results.outScale || !results.accumulate;
}

bool Epilogue::canFuse() const {
  bool inProgramOrder = hasModuleAttr(matmul.op, kProgramOrderAttrName);
  // A sum over all rows, of each column or of everything, in parts.
  auto isSumOfColumns = [&](AffineMap map) {
    if (inProgramOrder)
      return false;
    if (map.getNumResults() == 0)
      return true;
    auto isColumn = [&](unsigned position) {
      unsigned dim = cast<AffineDimExpr>(matmul.maps[2].getResult(position)).getPosition();
      return llvm::is_contained(matmul.dims.n, dim);
    };
    auto kept = llvm::seq<unsigned>(region.numDims - map.getNumResults(), region.numDims);
    return map.getNumResults() == matmul.dims.n.size() && llvm::all_of(kept, isColumn);
  };
  auto isLoadableMemRef = [](Value value) { return isLoadable(getElementTypeOrSelf(value)); };
  return llvm::all_of(region.extraMaps(),
                      [&](AffineMap map) { return !isSummed(map) || isSumOfColumns(map); }) &&
         llvm::all_of(region.maps, isSimple) && llvm::all_of(region.inputs, isLoadableMemRef) &&
         llvm::all_of(region.outs.drop_front(results.outScale ? 1 : 0), isLoadableMemRef) &&
         isScalarCode(*region.region);
}

/// Allocates an f32 buffer.
static Value allocateF32(OpBuilder &host, Location loc, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  return memref::AllocOp::create(host, loc, MemRefType::get(shape, host.getF32Type()), dynamic);
}

Epilogue::Epilogue(OpBuilder &host, const MatmulView &matmul, KernelArguments &arguments, Value sumParts)
    : matmul(matmul), region(getWithConstants(matmul.op)), results(*MatmulResults::of(matmul.op)),
      fused(canFuse()) {
  Location loc = matmul.op->getLoc();
  SmallVector<OpFoldResult> outSizes = memref::getMixedSizes(host, loc, matmul.out);
  for (auto [dim, size] : llvm::enumerate(outSizes)) {
    sizes.push_back(cast<MemRefType>(matmul.out.getType()).getDimSize(dim));
    sizeArguments.push_back(arguments.addI32(getValueOrCreateConstantIndexOp(host, loc, size)));
  }
  addScales(host, arguments);
  if (fused) {
    addFusedOperands(host, arguments, sumParts);
    prepareScalars(host, arguments);
    return;
  }
  remarkGeneric(matmul.op, "has an epilogue that stays generic code on the GPU",
                "its region or its operands are more than a matmul's kernel computes element by element");
  scaledSums = allocateF32(host, loc, outSizes);
  addOperand(host, arguments, scaledSums, host.getMultiDimIdentityMap(region.numDims));
}

void Epilogue::addFusedOperands(OpBuilder &host, KernelArguments &arguments, Value sumParts) {
  Location loc = matmul.op->getLoc();
  addOperand(host, arguments, matmul.out, host.getMultiDimIdentityMap(region.numDims));
  for (auto [input, map] : llvm::zip_equal(region.inputs, region.inputMaps()))
    addOperand(host, arguments, input, map);
  for (auto [i, extra, map] : llvm::enumerate(region.extras(), region.extraMaps()))
    if (!isSummed(map)) {
      storedExtras.push_back(i + 1);
      addOperand(host, arguments, extra, map);
    }
  for (auto [i, extra, map] : llvm::enumerate(region.extras(), region.extraMaps())) {
    if (!isSummed(map))
      continue;
    Value columns = matmul.buildSize(host, matmul.dims.n);
    if (!columnsArgument)
      columnsArgument = arguments.addI32(columns);
    Value parts = allocateF32(host, loc, {getAsOpFoldResult(sumParts), getAsOpFoldResult(columns)});
    sums.push_back({static_cast<unsigned>(i + 1), extra, map, parts, arguments.addPointer(parts)});
  }
}

/// Adds the scale of an FP8 result and the amaxes as arguments; writes scale_inv.
void Epilogue::prepareScalars(OpBuilder &host, KernelArguments &arguments) {
  Location loc = matmul.op->getLoc();
  if (results.outScale) {
    outScaleArgument = arguments.addPointer(results.outScale);
    Value scale = memref::LoadOp::create(host, loc, results.outScale);
    Value one = arith::ConstantOp::create(host, loc, host.getF32FloatAttr(1));
    memref::StoreOp::create(host, loc, arith::DivFOp::create(host, loc, one, scale), region.outs[1]);
  }
  for (Value amax : region.amaxOuts())
    amaxArguments.push_back(arguments.addPointer(amax));
}

void Epilogue::addOperand(OpBuilder &host, KernelArguments &arguments, Value memref, AffineMap map) {
  auto dims = llvm::map_to_vector(map.getResults(), [](AffineExpr expr) -> std::optional<unsigned> {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim ? std::optional(dim.getPosition()) : std::nullopt;
  });
  operands.push_back(makeOperand(host, arguments, memref, dims, SmallVector<int64_t>(dims.size(), 1)));
}

/// Makes the operand of a memref whose dimensions are those of the result in `dims`, nothing for others, and
/// in which `extents` neighbours along them are one.
Epilogue::Operand Epilogue::makeOperand(OpBuilder &host, KernelArguments &arguments, Value memref,
                                        ArrayRef<std::optional<unsigned>> dims,
                                        ArrayRef<int64_t> extents) const {
  Location loc = matmul.op->getLoc();
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  Operand operand{
      type.getElementType(), arguments.addPointer(memref), SmallVector<int64_t>(region.numDims, 0),
      SmallVector<std::optional<unsigned>>(region.numDims), SmallVector<int64_t>(region.numDims, 1)};
  auto [strides, offset] = type.getStridesAndOffset();
  SmallVector<Value> values;
  if (llvm::any_of(strides, ShapedType::isDynamic))
    values =
        llvm::to_vector_of<Value>(memref::ExtractStridedMetadataOp::create(host, loc, memref).getStrides());
  for (auto [position, dim] : llvm::enumerate(dims)) {
    if (!dim)
      continue;
    bool isDynamic = ShapedType::isDynamic(strides[position]);
    int64_t stride = isDynamic ? ShapedType::kDynamic : strides[position] * bytes;
    operand.strides[*dim] = stride;
    operand.extents[*dim] = extents[position];
    if (stride == bytes)
      continue; // contiguous: a constant
    auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(host, loc, value); };
    Value inBytes =
        isDynamic ? host.createOrFold<arith::MulIOp>(loc, values[position], index(bytes)) : index(stride);
    operand.strideArguments[*dim] = arguments.addI64(inBytes);
  }
  operand.run = findRun(operand, memref);
  return operand;
}

int64_t Epilogue::findRun(const Operand &operand, Value memref) const {
  unsigned bits = operand.element.getIntOrFloatBitWidth();
  if (matmul.dims.n.empty() || (bits != 8 && bits != 16 && bits != 32))
    return 1;
  AffineExpr last = getAffineDimExpr(matmul.dims.n.back(), memref.getContext());
  unsigned column = *matmul.maps[2].getResultPosition(last);
  int64_t bytes = bits / 8;
  if (operand.extents[column] != 1 || operand.strides[column] != bytes ||
      ShapedType::isDynamic(sizes[column]))
    return 1;
  // A power of two of up to 16 that divides the addresses of all rows, and their length.
  int64_t common = std::gcd(findBaseAlignment(memref), sizes[column] * bytes);
  for (auto [dim, stride] : llvm::enumerate(operand.strides)) {
    if (ShapedType::isDynamic(stride))
      return 1;
    if (dim != column)
      common = std::gcd(common, stride);
  }
  return common / bytes;
}

/// Adds up the parts of a sum: first those of each column, then, of a sum of everything, the columns.
void Epilogue::addParts(OpBuilder &host, const Sum &sum, LoweringContext &context) const {
  Location loc = matmul.op->getLoc();
  Value zero = arith::ConstantOp::create(host, loc, host.getF32FloatAttr(0));
  auto addRows = [&](Value in, Value out, ArrayRef<AffineMap> maps, ArrayRef<utils::IteratorType> iterators) {
    linalg::FillOp::create(host, loc, zero, out);
    linalg::GenericOp::create(host, loc, in, out, maps, iterators,
                              [](OpBuilder &b, Location loc, ValueRange args) {
                                Value sum = arith::AddFOp::create(b, loc, args[1], args[0]);
                                linalg::YieldOp::create(b, loc, sum);
                              });
  };
  constexpr auto parallel = utils::IteratorType::parallel, reduction = utils::IteratorType::reduction;
  bool ofAll = sum.map.getNumResults() == 0;
  SmallVector<OpFoldResult> columns;
  for (unsigned dim : matmul.dims.n)
    columns.push_back(matmul.getSize(host, dim));
  Value perColumn = ofAll ? allocateF32(host, loc, memref::getMixedSize(host, loc, sum.parts, 1)) : sum.out;
  if (ofAll)
    columns = {memref::getMixedSize(host, loc, sum.parts, 1)};
  auto addColumns = [&] {
    // Generic code for columns whose number is dynamic; the parts in the shape of the columns.
    SmallVector<OpFoldResult> shape{memref::getMixedSize(host, loc, sum.parts, 0)};
    llvm::append_range(shape, columns);
    SmallVector<OpFoldResult> strides(shape.size(), host.getIndexAttr(1));
    for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
      strides[i] = getAsOpFoldResult(
          host.createOrFold<arith::MulIOp>(loc, getValueOrCreateConstantIndexOp(host, loc, strides[i + 1]),
                                           getValueOrCreateConstantIndexOp(host, loc, shape[i + 1])));
    Value view =
        memref::ReinterpretCastOp::create(host, loc, sum.parts, host.getIndexAttr(0), shape, strides);
    unsigned rank = shape.size();
    AffineMap all = host.getMultiDimIdentityMap(rank);
    SmallVector<utils::IteratorType> iterators(rank, parallel);
    iterators[0] = reduction;
    addRows(view, perColumn, {all, all.dropResult(0)}, iterators);
  };
  // The number of parts may be known at run time alone.
  auto isDense = [](Value memref, unsigned firstStatic) {
    auto type = cast<MemRefType>(memref.getType());
    return ShapedType::isStaticShape(type.getShape().drop_front(firstStatic)) &&
           type.getLayout().isIdentity();
  };
  if (isDense(sum.parts, 1) && isDense(perColumn, 0))
    launchSumOfRows(host, context, loc, sum.parts, perColumn);
  else
    addColumns();
  if (ofAll)
    addRows(perColumn, sum.out, {host.getDimIdentityMap(), AffineMap::get(1, 0, host.getContext())},
            {reduction});
}

void Epilogue::finish(OpBuilder &host, gpu::LaunchFuncOp launch, LoweringContext &context) const {
  for (unsigned argument : amaxArguments)
    context.amaxes.add(launch, argument);
  for (const Sum &sum : sums)
    addParts(host, sum, context);
  if (!fused && failed(buildMatmulEpilogue(host, matmul.op, scaledSums)))
    llvm_unreachable("isValid() is a precondition");
}
