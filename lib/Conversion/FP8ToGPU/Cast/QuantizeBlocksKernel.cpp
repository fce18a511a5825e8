// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers fp8.quantize_blocks to kernels of tiles. One kernel casts blocks that lie within tiles, in every
// direction, and reads the tensor once. A kernel with warps for each row casts rows alone. Where blocks span
// a dimension that is longer than a tile in another way, as in row scaling of both operands of a matmul, a
// kernel before that one computes the amaxes of these blocks.

#include "CastLowering.h"
#include "ScaledCastKernel.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Blocks as parts of tiles
//===----------------------------------------------------------------------===//

/// Returns the length of blocks as runs of the index that counts through dimensions of these `sizes`, the
/// last one fastest; nullopt if blocks of these `extents` (0: the whole dimension) are no runs. A run of
/// everything may be longer, and is of dynamic length where a size is.
static std::optional<int64_t> joinExtents(ArrayRef<int64_t> sizes, ArrayRef<int64_t> extents) {
  int64_t run = 1;
  bool isWhole = true; // all dimensions so far
  for (size_t dim = sizes.size(); dim-- > 0;) {
    int64_t size = sizes[dim], extent = extents[dim] == 0 ? size : extents[dim];
    bool isOutermost = llvm::all_of(sizes.take_front(dim), [](int64_t outer) { return outer == 1; });
    if (size == 1)
      continue;
    if (!isWhole && extent != 1)
      return std::nullopt;
    if (!isWhole)
      continue;
    if (ShapedType::isDynamic(extent)) {
      run = ShapedType::kDynamic;
      continue;
    }
    if (ShapedType::isDynamic(run)) {
      if (extent != size || ShapedType::isDynamic(size))
        return std::nullopt;
      continue;
    }
    if (ShapedType::isDynamic(size)) {
      if (extent != 1 && !isOutermost)
        return std::nullopt;
      run *= extent;
      isWhole = false;
      continue;
    }
    if (extent >= size && (extents[dim] == 0 || !isOutermost)) {
      run *= size;
      continue;
    }
    if (extent < size && !isOutermost && size % extent != 0)
      return std::nullopt;
    run *= extent;
    isWhole = extent >= size;
  }
  return run;
}

namespace {
/// The part of a tile's rows, or columns, that is of one block.
struct Extent {
  int64_t inTile; ///< a power of two
  bool spans;     ///< whether the block goes on in other tiles, and has all rows or columns
};
} // namespace

/// Returns how blocks with runs of `run` of `size` rows, or columns, divide a tile; nullopt if they do not.
static std::optional<Extent> divideTile(int64_t run, int64_t size) {
  if (ShapedType::isDynamic(run)) // in one tile or several
    return Extent{kTile, true};
  if (!ShapedType::isDynamic(size) && run >= size)
    return Extent{kTile, size > kTile};
  if (run > kTile || !llvm::isPowerOf2_64(run))
    return std::nullopt;
  return Extent{run, false};
}

/// Returns the number of blocks in each dimension.
static SmallVector<int64_t> countBlocks(ArrayRef<int64_t> sizes, ArrayRef<int64_t> block) {
  SmallVector<int64_t> counts;
  for (auto [size, extent] : llvm::zip_equal(sizes, block))
    counts.push_back(extent == 0                   ? 1
                     : ShapedType::isDynamic(size) ? ShapedType::kDynamic
                                                   : static_cast<int64_t>(llvm::divideCeil(size, extent)));
  return counts;
}

/// Returns the blocks of these extents, in tiles of `space`.
static std::optional<TileScaling> describeBlocks(const TileSpace &space, ArrayRef<int64_t> block) {
  ArrayRef<int64_t> sizes = space.sizes;
  for (auto [size, extent] : llvm::zip(sizes.take_front(space.batchDims), block))
    if (size != 1 && extent != 1)
      return std::nullopt;
  std::optional<int64_t> rows = joinExtents(sizes.drop_front(space.batchDims).drop_back(space.columnDims),
                                            block.drop_front(space.batchDims).drop_back(space.columnDims)),
                         columns = joinExtents(sizes.take_back(space.columnDims),
                                               block.take_back(space.columnDims));
  if (!rows || !columns)
    return std::nullopt;
  std::optional<Extent> ofRows = divideTile(*rows, space.rows),
                        ofColumns = divideTile(*columns, space.columns);
  // A thread has 8 columns, and shared memory has room for 1024 blocks.
  if (!ofRows || !ofColumns || std::max(ofRows->inTile, ofColumns->inTile) < 16)
    return std::nullopt;
  TileScaling scaling(ofRows->inTile, ofColumns->inTile,
                      TileSpace(countBlocks(sizes, block), space.batchDims, space.columnDims));
  scaling.spansRows = ofRows->spans;
  scaling.spansColumns = ofColumns->spans;
  return scaling;
}

/// Adds what `direction` writes to `scaling`. Returns false if kernels of tiles cannot write it.
static bool addDirection(TileScaling &scaling, QuantizeBlocksOp op, unsigned direction,
                         const TileSpace &space) {
  SmallVector<unsigned> order(op.getTransposition(direction));
  if (order.empty())
    order = llvm::to_vector(llvm::seq<unsigned>(space.sizes.size()));
  AffineMap map = AffineMap::getPermutationMap(order, op.getContext());
  std::optional<TileOperand> data = TileOperand::create(op.getDataOut(direction), map, space),
                             scaleInv =
                                 TileOperand::create(op.getScaleInvOut(direction), map, scaling.counts);
  if (!data || !scaleInv || !scaleInv->strides)
    return false;
  bool isTransposed = !data->hasAdjacentColumns(space);
  std::optional<TileOperand> &place = isTransposed ? scaling.transposed : scaling.data;
  if (place || (isTransposed && !data->hasAdjacentRows(space)))
    return false;
  place = data;
  scaling.scaleInv.push_back(*scaleInv);
  return true;
}

/// Returns the blocks of all directions, equal ones once; nullopt if they do not fit tiles of `space`.
static std::optional<SmallVector<TileScaling, 0>> describeScalings(QuantizeBlocksOp op,
                                                                   const TileSpace &space) {
  SmallVector<TileScaling, 0> scalings;
  SmallVector<ArrayRef<int64_t>> blocks;
  for (unsigned direction = 0; direction < op.getNumDirections(); ++direction) {
    ArrayRef<int64_t> block = op.getBlock(direction);
    size_t known = llvm::find(blocks, block) - blocks.begin();
    if (known == blocks.size()) {
      std::optional<TileScaling> scaling = describeBlocks(space, block);
      if (!scaling)
        return std::nullopt;
      blocks.push_back(block);
      scalings.push_back(*scaling);
    }
    if (!addDirection(scalings[known], op, direction, space))
      return std::nullopt;
  }
  return scalings;
}

/// Returns the parts of the kernel, for the first choice of batch, rows and columns that all blocks fit.
static std::optional<TileWork> describe(QuantizeBlocksOp op) {
  SmallVector<int64_t> sizes = ElementRegion::of(op)->getShape();
  unsigned rank = sizes.size();
  if (rank != 0 && ShapedType::isDynamic(sizes.back())) {
    remarkGeneric(op, "the size of its last dimension is dynamic");
    return std::nullopt;
  }
  for (unsigned columnDims = 1; columnDims <= rank; ++columnDims)
    for (unsigned batchDims = 0; batchDims + columnDims <= rank; ++batchDims) {
      TileSpace space(sizes, batchDims, columnDims);
      if (ShapedType::isDynamic(space.columns))
        continue;
      std::optional<SmallVector<TileScaling, 0>> scalings = describeScalings(op, space);
      if (!scalings || space.batches == 0)
        continue;
      std::optional<TileWork> work = TileWork::create(op, batchDims, columnDims);
      if (work) {
        work->blocks = op;
        work->scalings = *scalings;
      }
      return work;
    }
  remarkGeneric(op,
                "its blocks are no parts of tiles of 128 x 128, or the layout of its data has no strides");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Returns the number of blocks, or one where there are no elements.
static Value countBlocksOf(OpBuilder &builder, const TileWork &work, const TileScaling &scaling) {
  Location loc = work.loc;
  ArrayRef<int64_t> sizes = scaling.counts.sizes;
  if (ShapedType::isStaticShape(sizes))
    return constantIndex(builder, loc, ShapedType::getNumElements(sizes));
  auto multiply = [&](Value count, int64_t known) {
    return builder.createOrFold<arith::MulIOp>(loc, count, constantIndex(builder, loc, known));
  };
  Value rows = ShapedType::isDynamic(scaling.counts.rows)
                   ? countRowBlocks(builder, work, scaling.rows)
                   : multiply(work.buildBatches(builder), scaling.counts.rows);
  return multiply(rows, scaling.counts.columns);
}

/// Computes the amaxes of blocks that span tiles. The kernel of the casts computes the extra results: it
/// reads the inputs again, in whose memory an extra result may be, as the new value of a weight is.
static void launchMeasure(OpBuilder &builder, LoweringContext &context, const TileWork &work) {
  TileWork measure = work;
  measure.onlyMeasures = true;
  measure.extras.clear();
  llvm::erase_if(measure.scalings, [](const TileScaling &scaling) { return !scaling.isSpanning(); });
  launchTiles(builder, context, measure, "amax_blocks");
}

bool fp8::lowerQuantizeBlocks(OpBuilder &builder, QuantizeBlocksOp op, LoweringContext &context) {
  // A user's functions may be any code, which generic kernels can hold.
  if (op.getRows() || !op.getRecipe().getFunctions().empty() || !canUseTiles(op))
    return false;
  std::optional<TileWork> work = describe(op);
  if (!work)
    return false;
  if (canCastRows(*work)) {
    launchBlockRows(builder, context, *work);
    return true;
  }
  for (TileScaling &scaling : work->scalings) {
    if (!scaling.isSpanning())
      continue;
    Value count = countBlocksOf(builder, *work, scaling);
    std::optional<int64_t> known = getConstantIntValue(count);
    auto type = MemRefType::get({known.value_or(ShapedType::kDynamic)}, builder.getF32Type());
    scaling.amaxes.memref = memref::AllocOp::create(builder, op.getLoc(), type, known ? ValueRange() : count);
  }
  if (llvm::any_of(work->scalings, [](const TileScaling &scaling) { return scaling.isSpanning(); }))
    launchMeasure(builder, context, *work);
  launchTiles(builder, context, *work, "quantize_blocks");
  return true;
}
