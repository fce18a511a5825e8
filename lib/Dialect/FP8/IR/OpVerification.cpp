// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks and interface methods that the operations share.

#include "OpVerification.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

LogicalResult fp8::detail::verifyDestinationStyle(DestinationStyleOpInterface op) {
  bool tensors = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>);
  bool buffers = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>);
  if (tensors && buffers)
    return op->emitOpError("mixes tensors and memrefs; all operands must be of one kind");
  size_t wanted = tensors ? op.getNumDpsInits() : 0;
  if (op->getNumResults() != wanted)
    return op->emitOpError() << "has " << op->getNumResults() << " results, expected " << wanted
                             << (tensors ? ", one per tensor in outs"
                                         : ": memrefs in outs are written in place");
  return success();
}

bool fp8::detail::sizesMatch(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

bool fp8::detail::shapesMatch(ShapedType a, ShapedType b) {
  return a.getRank() == b.getRank() && llvm::all_of(llvm::zip(a.getShape(), b.getShape()), [](auto sizes) {
           return sizesMatch(std::get<0>(sizes), std::get<1>(sizes));
         });
}

SmallVector<int64_t> fp8::detail::getScaleShape(ShapedType data, std::optional<ArrayRef<int64_t>> block) {
  SmallVector<int64_t> shape;
  if (!block)
    return shape;
  for (auto [size, extent] : llvm::zip(data.getShape(), *block)) {
    if (extent == 0)
      shape.push_back(1);
    else
      shape.push_back(ShapedType::isDynamic(size) ? size : llvm::divideCeil(size, extent));
  }
  return shape;
}

LogicalResult fp8::detail::verifyScale(Operation *op, StringRef name, ShapedType scale, ShapedType data,
                                       std::optional<ArrayRef<int64_t>> block) {
  if (block && static_cast<int64_t>(block->size()) != data.getRank())
    return op->emitOpError() << "block has " << block->size() << " entries for a tensor of rank "
                             << data.getRank();
  if (block && llvm::any_of(*block, [](int64_t extent) { return extent < 0; }))
    return op->emitOpError("block extents must be positive, or 0 for a whole dimension");
  SmallVector<int64_t> wanted = getScaleShape(data, block);
  bool fits = scale.getRank() == static_cast<int64_t>(wanted.size()) &&
              llvm::all_of(llvm::zip(scale.getShape(), wanted),
                           [](auto sizes) { return sizesMatch(std::get<0>(sizes), std::get<1>(sizes)); });
  if (fits)
    return success();
  InFlightDiagnostic diag = op->emitOpError() << name << " has shape [";
  llvm::interleaveComma(scale.getShape(), diag);
  diag << "], expected [";
  llvm::interleaveComma(wanted, diag);
  return diag << "]" << (block ? ", one entry per block" : ", one scale for the whole tensor");
}

LogicalResult fp8::detail::verifyMatmulScale(Operation *op, bool isLhs, Type scaleType, Type dataType,
                                             std::optional<ArrayRef<int64_t>> block, AffineMap map,
                                             const ContractionDims &dims) {
  StringRef name = isLhs ? "the scale_inv of the first operand" : "the scale_inv of the second operand";
  auto data = cast<ShapedType>(dataType), scale = cast<ShapedType>(scaleType);
  bool isPacked = isa<Float8E8M0FNUType>(scale.getElementType()) && scale.getRank() == 1 && block;
  // A vector has scales of rank 1 also where they are not packed: no number of them is one of packed scales.
  if (isPacked && data.getRank() == 1 && block->size() == 1 &&
      shapesMatch(scale, scale.clone(getScaleShape(data, block))))
    return success();
  if (!isPacked || block->size() != size_t(data.getRank()))
    return verifyScale(op, name, scale, data, block);
  if (!data.hasStaticShape())
    return success();
  int64_t batches = 1, rows = 1, columns = 1;
  for (auto [position, size, extent] : llvm::enumerate(data.getShape(), *block)) {
    unsigned dim = map.getDimPosition(position);
    if (llvm::is_contained(dims.k, dim))
      columns *= extent == 0 ? 1 : llvm::divideCeil(size, extent);
    else
      (llvm::is_contained(dims.batch, dim) ? batches : rows) *= size;
  }
  int64_t wanted = batches * llvm::divideCeil(rows, 128) * llvm::divideCeil(columns, 4) * 512;
  if (sizesMatch(scale.getDimSize(0), wanted))
    return success();
  return op->emitOpError() << name << " is packed and has " << scale.getDimSize(0) << " entries, expected "
                           << wanted << ": 512 for each tile of 128 x 4";
}

LogicalResult fp8::detail::verifyPlainInput(Operation *op, ValueRange inputs, std::optional<ArrayAttr> maps) {
  if (inputs.size() != 1 || maps || op->getAttr("rows"))
    return op->emitOpError("without a producer region there is one input and no indexing_maps or rows");
  return verifyCastType(op, "the input is of", getElementTypeOrSelf(inputs[0]));
}

LogicalResult fp8::detail::verifyCastType(Operation *op, StringRef what, Type type) {
  if (type.isF64() || type.isF32() || type.isBF16() || type.isF16() ||
      isa<Float8E4M3FNType, Float8E5M2Type>(type))
    return success();
  return op->emitOpError() << what << " " << type << ", expected f64, f32, bf16, f16, f8E4M3FN or f8E5M2";
}

LogicalResult fp8::detail::verifyRandom(Operation *op, Value random, std::optional<int64_t> stream) {
  if (bool(random) != stream.has_value())
    return op->emitOpError("needs `random` and `stream` together");
  if (!random)
    return success();
  auto type = cast<ShapedType>(random.getType());
  if (type.getRank() != 1 || (type.getDimSize(0) != 2 && type.getDimSize(0) != 3))
    return op->emitOpError()
           << "random " << random.getType()
           << " must hold seed and step, and the number of the first element where that is not 0";
  if (*stream < 0 || *stream > int64_t(UINT32_MAX))
    return op->emitOpError() << "stream " << *stream << " must be from 0 to 2^32 - 1";
  return success();
}

YieldOp fp8::detail::getYield(Block &body) {
  return body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
}

SmallVector<OpFoldResult> fp8::getBlockCounts(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes,
                                              ArrayRef<int64_t> block) {
  SmallVector<OpFoldResult> counts;
  for (auto [size, extent] : llvm::zip_equal(sizes, block)) {
    if (extent == 1) {
      counts.push_back(size);
    } else if (extent == 0) {
      counts.push_back(builder.getIndexAttr(1));
    } else if (std::optional<int64_t> known = getConstantIntValue(size)) {
      counts.push_back(builder.getIndexAttr(llvm::divideCeil(*known, extent)));
    } else {
      Value extentValue = arith::ConstantIndexOp::create(builder, loc, extent);
      counts.push_back(arith::CeilDivUIOp::create(builder, loc, cast<Value>(size), extentValue).getResult());
    }
  }
  return counts;
}

void fp8::detail::addEffects(DestinationStyleOpInterface op,
                             SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects,
                             function_ref<bool(OpOperand &)> readsInit) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isInit = op.isDpsInit(&operand);
    if (!isInit || readsInit(operand))
      effects.emplace_back(MemoryEffects::Read::get(), &operand, 0, /*effectOnFullRegion=*/true,
                           SideEffects::DefaultResource::get());
    if (isInit)
      effects.emplace_back(MemoryEffects::Write::get(), &operand, 0, /*effectOnFullRegion=*/true,
                           SideEffects::DefaultResource::get());
  }
}

LogicalResult fp8::detail::reifyShapesOfInits(DestinationStyleOpInterface op, OpBuilder &builder,
                                              ReifiedRankedShapedTypeDims &shapes) {
  for (OpResult result : op->getOpResults())
    shapes.push_back(tensor::getMixedSizes(builder, op.getLoc(), op.getTiedOpOperand(result)->get()));
  return success();
}
