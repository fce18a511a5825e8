// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scales of a matmul's operands as arguments of its kernel: one for the whole operand, or one for each
// row or block.

#include "Epilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

/// Adds the scales of an operand that has several; they are in the operand's dimensions.
Epilogue::Scales Epilogue::makeScales(OpBuilder &host, KernelArguments &arguments, bool isLhs) const {
  Location loc = matmul.op->getLoc();
  Value scaleInv = isLhs ? matmul.lhsScaleInv : matmul.rhsScaleInv;
  ArrayRef<int64_t> block = isLhs ? matmul.lhsBlock : matmul.rhsBlock;
  AffineMap map = matmul.maps[isLhs ? 0 : 1];
  SmallVector<std::optional<unsigned>> dims(block.size());
  std::optional<unsigned> alongK, alongGroups;
  for (auto [position, extent] : llvm::enumerate(block)) {
    if (extent == 0)
      continue;
    AffineExpr dim = map.getResult(position);
    dims[position] = matmul.maps[2].getResultPosition(dim);
    bool isGroup = matmul.groups && map.getDimPosition(position) == matmul.groups->dim;
    if (!dims[position])
      (isGroup ? alongGroups : alongK) = position;
  }
  Scales result{makeOperand(host, arguments, scaleInv, dims, block)};
  auto addStride = [&](std::optional<unsigned> position) -> std::optional<unsigned> {
    if (!position)
      return std::nullopt;
    auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(host, loc, value); };
    int64_t known = cast<MemRefType>(scaleInv.getType()).getStridesAndOffset().first[*position];
    Value stride = ShapedType::isDynamic(known)
                       ? memref::ExtractStridedMetadataOp::create(host, loc, scaleInv).getStrides()[*position]
                       : index(known);
    return arguments.addI64(host.createOrFold<arith::MulIOp>(loc, stride, index(4)));
  };
  result.kStride = addStride(alongK);
  result.groupStride = addStride(alongGroups);
  return result;
}

/// Adds the packed scales of an operand, of which each row has a word for each part of K.
Epilogue::Scales Epilogue::makePackedScales(OpBuilder &host, KernelArguments &arguments, bool isLhs) const {
  Location loc = matmul.op->getLoc();
  auto countBlocks = [&](ArrayRef<unsigned> group, int64_t size) {
    Value extent = arith::ConstantIndexOp::create(host, loc, size);
    return arguments.addI32(
        host.createOrFold<arith::CeilDivUIOp>(loc, matmul.buildSize(host, group), extent));
  };
  Value scaleInv = isLhs ? matmul.lhsScaleInv : matmul.rhsScaleInv;
  Scales result{makeOperand(host, arguments, scaleInv, {}, {})};
  result.packedParts = countBlocks(matmul.dims.k, kPart);
  bool isOfAllGroups = isLhs && matmul.groups; // the rows of all groups are in one matrix
  if (!isOfAllGroups)
    result.packedTiles = countBlocks(isLhs ? matmul.dims.m : matmul.dims.n, kPackedRows);
  return result;
}

void Epilogue::addScales(OpBuilder &host, KernelArguments &arguments) {
  if (!matmul.lhsScaleInv)
    return;
  for (bool isLhs : {true, false}) {
    unsigned side = isLhs ? 0 : 1;
    bool isWhole = (isLhs ? matmul.lhsBlock : matmul.rhsBlock).empty();
    if (matmul.scalesAlongK == ScalesAlongK::packed)
      scales[side] = makePackedScales(host, arguments, isLhs);
    else if (isWhole && matmul.scalesAlongK == ScalesAlongK::none)
      wholeScales[side] = arguments.addPointer(isLhs ? matmul.lhsScaleInv : matmul.rhsScaleInv);
    else // a kernel that scales along K takes one scale for the whole operand as one that never changes
      scales[side] = makeScales(host, arguments, isLhs);
  }
}
