// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers fp8.quantize_blocks: one run over tiles for all directions whose blocks are small, and one for
// each direction whose blocks span a whole dimension, which reads the tensor again.

#include "CastLowering.h"
#include "TileCast.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

/// Returns whether a dimension is spanned by one block.
static bool isUnbounded(ArrayRef<int64_t> block) { return llvm::is_contained(block, 0); }

/// Computes the tensor into a buffer of its own.
static Value storeTensor(OpBuilder &builder, QuantizeBlocksOp op, ElementLoops &loops) {
  Type element = ElementRegion::of(op)->yield().getValue().getType();
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  for (Value size : loops.getSizes()) {
    std::optional<int64_t> known = getConstantIntValue(size);
    shape.push_back(known.value_or(ShapedType::kDynamic));
    if (!known)
      dynamic.push_back(size);
  }
  Value buffer = memref::AllocOp::create(builder, op.getLoc(), MemRefType::get(shape, element), dynamic);
  loops.run([&](OpBuilder &b, Location loc, Value value, ValueRange indices) {
    memref::StoreOp::create(b, loc, value, buffer, indices);
  });
  return buffer;
}

LogicalResult fp8::lowerQuantizeBlocks(OpBuilder &builder, QuantizeBlocksOp op) {
  ElementRegion region = *ElementRegion::of(op);
  Type element =
      region.isEmpty() ? getElementTypeOrSelf(region.inputs[0]) : region.yield().getValue().getType();
  if (element.isF64())
    return op.emitOpError("of f64 has no lowering yet");
  ElementLoops loops(builder, op);
  if (loops.getSizes().empty())
    return op.emitOpError("of a tensor of rank 0 has no blocks");
  bool manyThreads = getTarget(op).hasManyThreads();
  SmallVector<SmallVector<unsigned>> groups(1); // the bounded directions, then each of the others
  for (unsigned i = 0; i < op.getNumDirections(); ++i) {
    if (isUnbounded(op.getBlock(i)) || manyThreads)
      groups.push_back({i});
    else
      groups.front().push_back(i);
  }
  Value source = region.isEmpty() ? region.inputs[0] : Value();
  bool sums = llvm::any_of(region.extraMaps(), isSummed);
  if (!source &&
      (groups.size() > 1 || (sums && !TileCast(builder, op, loops, source, groups.front()).keepsOrder())))
    source = storeTensor(builder, op, loops);
  else if (!source)
    loops.clearSums();
  for (ArrayRef<unsigned> group : groups)
    if (!group.empty())
      TileCast(builder, op, loops, source, group).run();
  return success();
}
