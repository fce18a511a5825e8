// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Permutes dimensions of bytes with the kernel of casts, which moves two of them through shared memory: the
// last dimension of the source is the columns, the last one of the target the rows, all others are the batch.

#include "ByteTranspose.h"
#include "ScaledCastKernel.h"

using namespace mlir;
using namespace fp8;

/// Returns the parts of the kernel; nullopt if the size of the last dimension of `source` is dynamic.
static std::optional<TileWork> describe(Location loc, Value source, Value target,
                                        ArrayRef<int64_t> permutation) {
  auto type = cast<MemRefType>(source.getType());
  if (type.isDynamicDim(type.getRank() - 1))
    return std::nullopt;
  int64_t rank = type.getRank(), columns = rank - 1, rows = permutation.back();
  bool moves = rows != columns;
  // Dimension i of the tile space is dimension order[i] of the source.
  SmallVector<int64_t> order;
  for (int64_t dim = 0; dim < columns; ++dim)
    if (!moves || dim != rows)
      order.push_back(dim);
  if (moves)
    order.push_back(rows);
  order.push_back(columns);
  SmallVector<unsigned> places(rank), targetPlaces;
  SmallVector<int64_t> sizes;
  for (auto [place, dim] : llvm::enumerate(order)) {
    places[dim] = place;
    sizes.push_back(type.getDimSize(dim));
  }
  for (int64_t dim : permutation)
    targetPlaces.push_back(places[dim]);

  MLIRContext *context = source.getContext();
  TileWork work(loc, TileSpace(sizes, moves ? rank - 2 : 0));
  for (int64_t dim : order)
    work.sizes.push_back({source, dim});
  auto operand = [&](Value memref, ArrayRef<unsigned> places) {
    return TileOperand::create(memref, AffineMap::getPermutationMap(places, context), work.space);
  };
  std::optional<TileOperand> input = operand(source, places), output = operand(target, targetPlaces);
  if (!input || !output || (moves && !output->hasAdjacentRows(work.space)))
    return std::nullopt;
  work.inputs.push_back(*input);
  (moves ? work.columns : work.data) = output;
  return work;
}

bool fp8::canTransposeBytes(Value source, Value target, ArrayRef<int64_t> permutation) {
  return describe(source.getLoc(), source, target, permutation).has_value();
}

void fp8::launchByteTranspose(OpBuilder &builder, LoweringContext &context, Location loc, Value source,
                              Value target, ArrayRef<int64_t> permutation) {
  std::optional<TileWork> work = describe(loc, source, target, permutation);
  launchTiles(builder, context, *work, "transpose");
}
