// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the epilogue of a product inside its kernel, or as generic code after it.

#include "Epilogue.h"
#include "fp8/Conversion/FP8ToLinalg/ProductEpilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fp8;

/// Returns whether kernels load and store elements of `type`.
static bool isLoadable(Type type) {
  return type.isF32() || type.isBF16() || type.isF16() || type.isInteger(8) || type.isInteger(16) ||
         type.isInteger(32) || type.isInteger(64);
}

/// Returns whether a map reads or writes each operand dimension at one dimension of the result, or at 0.
static bool isSimple(AffineMap map) {
  return llvm::all_of(map.getResults(), [](AffineExpr expr) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    return isa<AffineDimExpr>(expr) || (constant && constant.getValue() == 0);
  });
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
  ProductResults results = *ProductResults::of(op);
  return !results.outScale || !results.accumulate;
}

bool Epilogue::canFuse() const {
  auto isLoadableMemRef = [](Value value) { return isLoadable(getElementTypeOrSelf(value)); };
  return !results.outScale && region.amaxes.empty() && llvm::none_of(region.extraMaps(), isSummed) &&
         llvm::all_of(region.maps, isSimple) && llvm::all_of(region.inputs, isLoadableMemRef) &&
         llvm::all_of(region.outs, isLoadableMemRef) && isScalarCode(*region.region);
}

//===----------------------------------------------------------------------===//
// On the host
//===----------------------------------------------------------------------===//

/// Allocates f32 sums in the shape of the result.
static Value allocateSums(OpBuilder &host, Location loc, Value out) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(memref::getMixedSizes(host, loc, out), dynamic, shape);
  return memref::AllocOp::create(host, loc, MemRefType::get(shape, host.getF32Type()), dynamic);
}

Epilogue::Epilogue(OpBuilder &host, const Product &product, KernelArguments &arguments)
    : product(product), region(*ElementRegion::of(product.op)), results(*ProductResults::of(product.op)),
      fused(canFuse()) {
  Location loc = product.op->getLoc();
  if (product.lhsScaleInv) {
    lhsScale = arguments.addPointer(product.lhsScaleInv);
    rhsScale = arguments.addPointer(product.rhsScaleInv);
  }
  for (auto [dim, size] : llvm::enumerate(memref::getMixedSizes(host, loc, product.out))) {
    sizes.push_back(cast<MemRefType>(product.out.getType()).getDimSize(dim));
    sizeArguments.push_back(arguments.addI32(getValueOrCreateConstantIndexOp(host, loc, size)));
  }
  AffineMap identity = host.getMultiDimIdentityMap(region.numDims);
  if (!fused) {
    sums = allocateSums(host, loc, product.out);
    addOperand(host, arguments, sums, identity);
    return;
  }
  addOperand(host, arguments, product.out, identity);
  for (auto [input, map] : llvm::zip_equal(region.inputs, region.inputMaps()))
    addOperand(host, arguments, input, map);
  for (auto [extra, map] : llvm::zip_equal(region.extras(), region.extraMaps()))
    addOperand(host, arguments, extra, map);
}

void Epilogue::addOperand(OpBuilder &host, KernelArguments &arguments, Value memref, AffineMap map) {
  Location loc = product.op->getLoc();
  Operand operand{cast<MemRefType>(memref.getType()), map, arguments.addPointer(memref), {}, {}, {}};
  int64_t bytes = operand.type.getElementTypeBitWidth() / 8;
  operand.strides.assign(region.numDims, 0);
  operand.strideArguments.resize(region.numDims);
  auto [strides, offset] = operand.type.getStridesAndOffset();
  SmallVector<Value> values;
  if (llvm::any_of(strides, ShapedType::isDynamic))
    values =
        llvm::to_vector_of<Value>(memref::ExtractStridedMetadataOp::create(host, loc, memref).getStrides());
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      continue;
    unsigned d = dim.getPosition();
    operand.strides[d] =
        ShapedType::isDynamic(strides[position]) ? ShapedType::kDynamic : strides[position] * bytes;
    if (operand.strides[d] == bytes)
      continue; // contiguous: no need for an argument
    Value factor = arith::ConstantIndexOp::create(host, loc, bytes);
    Value stride = ShapedType::isDynamic(strides[position])
                       ? values[position]
                       : arith::ConstantIndexOp::create(host, loc, strides[position]).getResult();
    operand.strideArguments[d] = arguments.addI64(host.createOrFold<arith::MulIOp>(loc, stride, factor));
  }
  operands.push_back(operand);
}

void Epilogue::finish(OpBuilder &host) const {
  if (!fused && failed(buildProductEpilogue(host, product.op, sums)))
    llvm_unreachable("isValid() is a precondition");
}

//===----------------------------------------------------------------------===//
// In the kernel
//===----------------------------------------------------------------------===//

/// Returns whether all operands lie such that `inner` follows `outer` without a gap: then both dimensions are
/// one, and no index needs to be divided.
bool Epilogue::collapses(unsigned outer, unsigned inner) const {
  return !ShapedType::isDynamic(sizes[inner]) && llvm::all_of(operands, [&](const Operand &operand) {
    int64_t stride = operand.strides[inner];
    return !ShapedType::isDynamic(stride) && operand.strides[outer] == stride * sizes[inner];
  });
}

Epilogue::Position Epilogue::at(KernelBuilder &b, ArrayRef<unsigned> group, Expr index) const {
  Position position{SmallVector<Value>(region.numDims), SmallVector<Value>(operands.size())};
  bool hasIndices = !region.isEmpty() && fused && !region.body().getOps<IndexOp>().empty();
  SmallVector<unsigned> dims = llvm::map_to_vector(group, [&](unsigned dim) {
    return *product.maps[2].getResultPosition(getAffineDimExpr(dim, b.getContext()));
  });
  auto add = [&](unsigned dim, Expr value) {
    position.indices[dim] = value.getValue();
    for (auto [offset, operand] : llvm::zip_equal(position.offsets, operands)) {
      if (operand.strides[dim] == 0)
        continue;
      std::optional<unsigned> argument = operand.strideArguments[dim];
      Expr term = widen(value) * (argument ? b.argument(*argument) : b.number(operand.strides[dim], 64));
      offset = (offset ? b.expr(offset) + term : term).getValue();
    }
  };
  while (!dims.empty()) {
    unsigned dim = dims.pop_back_val();
    // The dimensions that are one with this one.
    Expr extent = b.argument(sizeArguments[dim]);
    unsigned outermost = dim;
    while (!hasIndices && !dims.empty() && collapses(dims.back(), outermost)) {
      outermost = dims.pop_back_val();
      extent = extent * b.argument(sizeArguments[outermost]);
    }
    if (dims.empty()) {
      add(dim, index);
      break;
    }
    add(dim, index % extent);
    index = index / extent;
  }
  return position;
}

void Epilogue::start(KernelBuilder &b, Expr batch) {
  if (lhsScale)
    scale = (b.load(b.getF32Type(), b.globalPointer(*lhsScale)) *
             b.load(b.getF32Type(), b.globalPointer(*rhsScale)))
                .getValue();
  batchPosition = at(b, product.dims.batch, batch);
  for (auto [operand, offset] : llvm::zip_equal(operands, batchPosition.offsets)) {
    operand.start = b.globalPointer(operand.argument);
    if (offset)
      operand.start = b.at(operand.start, b.expr(offset));
  }
}

Value Epilogue::pointerTo(KernelBuilder &b, const Operand &operand, const Position &row,
                          const Position &column) const {
  Value pointer = operand.start;
  unsigned number = &operand - operands.data();
  for (const Position *position : {&row, &column})
    if (Value offset = position->offsets[number])
      pointer = b.at(pointer, b.expr(offset));
  return pointer;
}

/// Widens any float up to 32 bits to f32.
static Value widenToF32(KernelBuilder &b, Value value) {
  return value.getType().isF32() ? value : arith::ExtFOp::create(b, b.getF32Type(), value).getResult();
}

void Epilogue::store(KernelBuilder &b, const Position &row, const Position &column, Expr sum) const {
  auto pointer = [&](unsigned number) { return pointerTo(b, operands[number], row, column); };
  auto elementType = [&](unsigned number) { return operands[number].type.getElementType(); };
  Value value = scale ? (b.expr(scale) * sum).getValue() : sum.getValue();
  if (!fused)
    return b.store(b.expr(value), pointer(0));
  if (results.accumulate) {
    Value c = b.load(elementType(0), pointer(0)).getValue();
    value = (b.expr(value) + b.expr(widenToF32(b, c))).getValue();
  }
  if (region.isEmpty()) {
    if (!elementType(0).isF32())
      value = arith::TruncFOp::create(b, elementType(0), value);
    return b.store(b.expr(value), pointer(0));
  }
  IRMapping mapping;
  Block &body = region.body();
  mapping.map(body.getArgument(0), value);
  unsigned numInputs = region.inputs.size();
  for (unsigned i = 0; i < numInputs; ++i)
    mapping.map(body.getArgument(region.firstArgument + i),
                b.load(elementType(1 + i), pointer(1 + i)).getValue());
  auto indexOf = [&](int64_t dim) -> Value {
    for (const Position *position : {&batchPosition, &row, &column})
      if (Value index = position->indices[dim])
        return arith::IndexCastOp::create(b, b.getIndexType(), index);
    return arith::ConstantIndexOp::create(b, 0);
  };
  cloneElementCode(b, region, mapping, indexOf);
  for (auto [i, yielded] : llvm::enumerate(region.yield()->getOperands()))
    b.store(b.expr(mapping.lookupOrDefault(yielded)), pointer(i == 0 ? 0 : numInputs + i));
}
