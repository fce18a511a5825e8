// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The buffers of a packed matmul, and what its tasks pack into them: panels of the operands, and of their
// scales along K.

#include "PackedGemmBuilder.h"
#include "fp8/Conversion/TakingLoop.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace fp8;

/// Elements of a shared operand that one task packs; fewer in all are packed by one thread.
static constexpr int64_t kPackElements = 1 << 14;
/// Panels that are faster to pack together than alone, if that leaves so many tasks.
static constexpr int64_t kPackTogether = 4, kPackTasks = 8;

/// Rows of sums whose distance is a multiple of this many elements would meet in few sets of the caches.
static constexpr int64_t kSetElements = 1024, kLineElements = 16;

/// Sums that are stored this often are faster in a buffer of their own than in the result, whose lines and
/// pages are far apart; also where they begin with the result's elements.
static constexpr int64_t kMostResumed = 4;

Value fp8::allocateF32(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  return memref::AllocOp::create(b, loc, MemRefType::get(shape, b.getF32Type()), dynamic,
                                 b.getI64IntegerAttr(64));
}

/// Returns the distance of rows of `columns` sums.
static int64_t padRow(int64_t columns) {
  return columns % kSetElements == 0 ? columns + kLineElements : columns;
}

void MatmulBuilder::allocate(OpBuilder &b) {
  llvm::SaveAndRestore<SmallVector<OpFoldResult>> actual(sizes);
  for (auto [size, most] : llvm::zip(sizes, options.atMost))
    if (!ShapedType::isDynamic(most) && !getConstantIntValue(size))
      size = number(b, most);
  OpFoldResult workers = countWorkers(b);
  if (!isOneInteger(workers))
    taken = allocateTaken(b, loc);
  OpFoldResult depth = plan.segment ? number(b, plan.segment) : sizeOf(b, dims.k);
  OpFoldResult panels = countPanels(b);
  OpFoldResult width = number(b, plan.tile.columns);
  auto allocateSide = [&](Side &side, OpFoldResult count, OpFoldResult panels, OpFoldResult width) {
    side.panels = allocateF32(b, loc, {count, panels, inPanel(b, depth), width});
    if (side.scales.source)
      side.scalePanels = allocateF32(b, loc, {count, panels, inBlocks(b, depth), width});
  };
  int64_t blockPanels = llvm::divideCeil(plan.step * plan.inner, plan.tile.rows);
  allocateSide(left, packsOwnRows() ? workers : countRowBlocks(b), number(b, blockPanels),
               number(b, plan.tile.rows));
  allocateSide(right, sizeOf(b, dims.batch), panels, width);
  if (sums) // the result
    return;
  if (isPerTask) {
    OpFoldResult columns = number(b, padRow(plan.panelsPerPart * plan.tile.columns));
    sums = allocateF32(b, loc, {workers, number(b, plan.step * plan.inner), columns});
    return;
  }
  OpFoldResult columns = multiplySizes(b, loc, {panels, width});
  if (std::optional<int64_t> known = getConstantIntValue(columns))
    columns = number(b, padRow(*known));
  sums = allocateF32(b, loc, {sizeOf(b, dims.batch), sizeOf(b, dims.m), columns});
}

/// Returns the distance of the rows at positions `m` of `type`, which have contiguous columns at positions
/// `n`; nullopt if it is not known, or the memory has other gaps.
static std::optional<int64_t> findRowStride(MemRefType type, ArrayRef<unsigned> m, ArrayRef<unsigned> n) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (m.empty() || n.empty() || failed(type.getStridesAndOffset(strides, offset)) || strides[n.back()] != 1 ||
      ShapedType::isDynamic(strides[m.back()]) || !hasOneStride(type, m) || !hasOneStride(type, n))
    return std::nullopt;
  return strides[m.back()];
}

SmallVector<unsigned> MatmulBuilder::positionsInResult(ArrayRef<unsigned> group) const {
  SmallVector<unsigned> positions;
  for (unsigned dim : group)
    if (!isOneInteger(sizes[dim]))
      positions.push_back(*findDim(outMap, dim));
  return positions;
}

Value MatmulBuilder::viewResult(OpBuilder &b) {
  if (!options.result)
    return Value();
  std::optional<int64_t> depth = getConstantIntValue(inPanel(b, sizeOf(b, dims.k)));
  if (divisorOf(dims.n) % plan.tile.columns || !depth ||
      *depth > (options.start ? kMostResumed : 1) * mostInBlock(plan.tile))
    return Value();
  SmallVector<unsigned> order = positionsInResult(dims.batch), m = positionsInResult(dims.m),
                        n = positionsInResult(dims.n);
  llvm::append_range(order, m);
  llvm::append_range(order, n);
  if (!llvm::is_sorted(order))
    return Value();
  auto type = cast<MemRefType>(options.result.getType());
  OpFoldResult batch = sizeOf(b, dims.batch), rows = sizeOf(b, dims.m), width = sizeOf(b, dims.n);
  OpFoldResult offset = number(b, 0);
  if (!type.getLayout().isIdentity()) {
    std::optional<int64_t> stride = findRowStride(type, m, n);
    if (!stride || !isOneInteger(batch))
      return Value();
    width = number(b, *stride);
    offset = memref::ExtractStridedMetadataOp::create(b, loc, options.result).getConstifiedMixedOffset();
  }
  firstSum = offset;
  OpFoldResult shape[] = {batch, rows, width};
  OpFoldResult strides[] = {multiplySizes(b, loc, {rows, width}), width, number(b, 1)};
  return memref::ReinterpretCastOp::create(b, loc, options.result, offset, ArrayRef(shape),
                                           ArrayRef(strides));
}

Value MatmulBuilder::sliceOf(OpBuilder &b, Value panels, OpFoldResult slot, OpFoldResult first,
                             OpFoldResult count, OpFoldResult depth) {
  SmallVector<OpFoldResult> shape = memref::getMixedSizes(b, loc, panels);
  OpFoldResult width = shape[3];
  OpFoldResult panelSize = multiplySizes(b, loc, {shape[2], width});
  OpFoldResult index = addSizes(b, loc, multiplySizes(b, loc, {slot, shape[1]}), first);
  OpFoldResult offset = multiplySizes(b, loc, {index, panelSize});
  return memref::ReinterpretCastOp::create(b, loc, panels, offset,
                                           ArrayRef<OpFoldResult>{count, depth, width},
                                           ArrayRef<OpFoldResult>{panelSize, width, number(b, 1)});
}

Value MatmulBuilder::viewSums(OpBuilder &b, OpFoldResult offset, ArrayRef<OpFoldResult> shape) {
  SmallVector<OpFoldResult> padded = memref::getMixedSizes(b, loc, sums);
  SmallVector<OpFoldResult> strideOf(sizes.size(), number(b, 1));
  auto assign = [&](ArrayRef<unsigned> group, OpFoldResult innermost) {
    for (unsigned dim : llvm::reverse(group)) {
      strideOf[dim] = innermost;
      innermost = multiplySizes(b, loc, {innermost, sizes[dim]});
    }
  };
  assign(dims.n, number(b, 1));
  assign(dims.m, padded[2]);
  assign(dims.batch, multiplySizes(b, loc, {padded[1], padded[2]}));
  SmallVector<OpFoldResult> strides = llvm::map_to_vector(outMap.getResults(), [&](AffineExpr expr) {
    return strideOf[cast<AffineDimExpr>(expr).getPosition()];
  });
  return memref::ReinterpretCastOp::create(b, loc, sums, offset, shape, strides);
}

Value MatmulBuilder::viewSums(OpBuilder &b) {
  SmallVector<OpFoldResult> shape = llvm::map_to_vector(
      outMap.getResults(), [&](AffineExpr expr) { return sizes[cast<AffineDimExpr>(expr).getPosition()]; });
  return viewSums(b, firstSum ? firstSum : OpFoldResult(number(b, 0)), shape);
}

OpFoldResult MatmulBuilder::offsetOf(OpBuilder &b, const Task &part) {
  SmallVector<OpFoldResult> shape = memref::getMixedSizes(b, loc, sums);
  if (isPerTask)
    return multiplySizes(b, loc, {part.worker, shape[1], shape[2]});
  OpFoldResult outer = linearize(b, part.outer, outerRows());
  OpFoldResult cut = addSizes(b, loc, multiplySizes(b, loc, {outer, cutSize(b)}), part.begin);
  OpFoldResult before = multiplySizes(b, loc, {linearize(b, part.batch, dims.batch), shape[1]});
  OpFoldResult row = addSizes(b, loc, before, multiplySizes(b, loc, {cut, number(b, plan.inner)}));
  OpFoldResult offset = addSizes(b, loc, multiplySizes(b, loc, {row, shape[2]}),
                                 multiplySizes(b, loc, {part.firstPanel, number(b, plan.tile.columns)}));
  return firstSum ? addSizes(b, loc, firstSum, offset) : offset;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void MatmulBuilder::pack(OpBuilder &b, const PackedOperand &operand, const Segment &part, unsigned rowDims,
                         ArrayRef<OpFoldResult> offsets, OpFoldResult rows,
                         function_ref<void(const OperandMatrix &)> build) {
  OperandMatrix matrix = viewAsMatrix(b, loc, operand, rowDims, offsets, rows);
  if (plan.segment) {
    OpFoldResult begin[] = {number(b, 0), part.begin}, shape[] = {rows, part.length};
    OpFoldResult strides[] = {number(b, 1), number(b, 1)};
    if (!matrix.alongK) {
      std::swap(begin[0], begin[1]);
      std::swap(shape[0], shape[1]);
    }
    matrix.view =
        memref::SubViewOp::create(b, loc, matrix.view, ArrayRef(begin), ArrayRef(shape), ArrayRef(strides));
  }
  build(matrix);
}

void MatmulBuilder::packSide(OpBuilder &b, const Side &side, ArrayRef<OpFoldResult> offsets,
                             OpFoldResult rows, OpFoldResult slot, OpFoldResult first, OpFoldResult count) {
  Value panels = panelsOf(b, side, slot, first, count);
  pack(b, side.operand, segment, side.rowDims, offsets, rows, [&](const OperandMatrix &matrix) {
    if (options.hasTiles() && &side == &left)
      buildTilePack(b, loc, matrix, panels, first);
    else
      buildPack(b, loc, matrix, panels, options, first);
  });
  if (!side.scales.source)
    return;
  Segment blocks{inBlocks(b, segment.begin), inBlocks(b, segment.length)};
  PackedMatmulOptions plain = options;
  plain.registers = options.registers.withMultiplyAdds();
  Value ofPanels = scalePanelsOf(b, side, slot, first, count);
  pack(b, side.scales, blocks, side.rowDims, offsets, rows,
       [&](const OperandMatrix &matrix) { buildPack(b, loc, matrix, ofPanels, plain, first); });
  if (scales.ofBlocks)
    return;
  if (options.hasTiles() && &side == &left)
    buildScaleTilePanels(b, loc, panels, ofPanels, scales.length);
  else
    buildScalePanels(b, loc, panels, ofPanels, scales.length, options);
}

void MatmulBuilder::packRows(OpBuilder &b, const Task &task, OpFoldResult first, OpFoldResult count) {
  SmallVector<OpFoldResult> offsets(left.operand.type().getRank(), number(b, 0));
  for (auto [position, index] : llvm::zip_equal(left.operand.batch, task.batch))
    offsets[position] = index;
  for (auto [position, index] : llvm::zip(left.operand.outer, task.outer))
    offsets[position] = index;
  if (!left.operand.outer.empty())
    offsets[left.operand.outer[plan.cut]] = task.begin;
  packSide(b, left, offsets, rowsOf(b, task), task.slot, first, count);
}

void MatmulBuilder::packColumns(OpBuilder &b, ArrayRef<OpFoldResult> batch, OpFoldResult first,
                                OpFoldResult count) {
  SmallVector<OpFoldResult> offsets(right.operand.type().getRank(), number(b, 0));
  for (auto [position, index] : llvm::zip_equal(right.operand.batch, batch))
    offsets[position] = index;
  packSide(b, right, offsets, sizeOf(b, dims.n), linearize(b, batch, dims.batch), first, count);
}

int64_t MatmulBuilder::panelsPerLoop(int64_t width) {
  int64_t depth = plan.segment ? plan.segment : knownSize(dims.k);
  int64_t panelElements = width * (ShapedType::isDynamic(depth) ? 256 : std::max<int64_t>(depth, 1));
  return std::max<int64_t>(kPackElements / panelElements, 1);
}

/// Packs the first operand of all matmuls, if several tasks read the same.
void MatmulBuilder::packAllRows(OpBuilder &b) {
  bool cutRows = plan.cut != 0 || getConstantIntValue(countBlocks(b)) != 1;
  if (cutRows) {
    forEachRowBlock(b, [&](OpBuilder &body, const Task &task) {
      packRows(body, task, number(body, 0), countRowPanels(body, task));
    });
    return;
  }
  Task whole;
  whole.begin = number(b, 0);
  whole.count = cutSize(b);
  OpFoldResult panels = countRowPanels(b, whole);
  int64_t perLoop = panelsPerLoop(plan.tile.rows);
  SmallVector<OpFoldResult> counts =
      llvm::map_to_vector(dims.batch, [&](unsigned dim) { return sizes[dim]; });
  counts.push_back(ceilDivSize(b, loc, panels, perLoop));
  buildLoops(b, counts, [&](OpBuilder &inside, ArrayRef<OpFoldResult> indices) {
    Task task = whole;
    llvm::append_range(task.batch, indices.drop_back());
    task.slot = linearize(inside, task.batch, dims.batch);
    OpFoldResult first = multiplySizes(inside, loc, {indices.back(), number(inside, perLoop)});
    packRows(inside, task, first, remainingSize(inside, loc, panels, first, perLoop));
  });
}

/// Packs the second operand of all matmuls, if several tasks read the same.
void MatmulBuilder::packAllColumns(OpBuilder &b) {
  SmallVector<OpFoldResult> counts;
  for (unsigned dim : dims.batch)
    counts.push_back(sizes[dim]);
  int64_t columns = knownSize(dims.n), perLoop = panelsPerLoop(plan.tile.columns);
  if (!ShapedType::isDynamic(columns))
    perLoop =
        std::max(perLoop, std::clamp<int64_t>(columns / plan.tile.columns / kPackTasks, 1, kPackTogether));
  OpFoldResult panels = countPanels(b);
  counts.push_back(ceilDivSize(b, loc, panels, perLoop));
  buildLoops(b, counts, [&](OpBuilder &inside, ArrayRef<OpFoldResult> indices) {
    OpFoldResult first = multiplySizes(inside, loc, {indices.back(), number(inside, perLoop)});
    packColumns(inside, indices.drop_back(), first, remainingSize(inside, loc, panels, first, perLoop));
  });
}
