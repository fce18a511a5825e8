// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds a contraction with any indexing maps as one kernel: sorts the dimensions into batch, M, N and
// K, and lets each task of the plan pack its rows, multiply, and run its part of the epilogue.

#include "PackedGemmSpace.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/ProductMarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

/// Elements of the second operand that one task packs; fewer in all are packed by one thread.
static constexpr int64_t kPackElements = 1 << 14;

static SmallVector<unsigned> positionsOf(AffineMap map, ArrayRef<unsigned> dims) {
  return llvm::map_to_vector(dims, [&](unsigned dim) { return *findDim(map, dim); });
}

static FailureOr<ContractionDims> sortDims(Location loc, ArrayRef<AffineMap> maps) {
  ContractionDims dims;
  for (unsigned dim : llvm::seq<unsigned>(maps[0].getNumDims())) {
    bool left = findDim(maps[0], dim).has_value();
    bool right = findDim(maps[1], dim).has_value();
    bool out = findDim(maps[2], dim).has_value();
    if (left + right + out < 2)
      return emitError(loc) << "contraction dimension d" << dim << " must be in two of lhs, rhs and output";
    auto &group = !out ? dims.k : left && right ? dims.batch : left ? dims.m : dims.n;
    group.push_back(dim);
  }
  for (auto *group : {&dims.batch, &dims.m, &dims.n}) // so that the sums lie in memory as the output does
    llvm::sort(*group, [&](unsigned x, unsigned y) { return *findDim(maps[2], x) < *findDim(maps[2], y); });
  return dims;
}

static LogicalResult verifyOperands(Location loc, Value lhs, Value rhs, ArrayRef<AffineMap> maps) {
  if (maps.size() != 3 || !llvm::all_of(maps, [](AffineMap map) {
        return map.isProjectedPermutation() && map.getNumSymbols() == 0;
      }))
    return emitError(loc, "a contraction needs three maps that are projected permutations");
  for (auto [operand, map] : llvm::zip_first(ValueRange{lhs, rhs}, maps)) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type || type.getRank() != map.getNumResults())
      return emitError(loc, "a contraction's operands are memrefs of its maps' ranks");
    auto element = dyn_cast<FloatType>(type.getElementType());
    if (!element || element.getWidth() > 32)
      return emitError(loc) << "contraction of " << type.getElementType()
                            << " has no lowering for the CPU: f64, f32, bf16, f16, f8E4M3FN and f8E5M2 have";
  }
  return success();
}

namespace {
/// Emits the kernel: packing, products and epilogues of all tasks.
class ProductBuilder : private ProductSpace {
public:
  ProductBuilder(Location loc, Value lhs, Value rhs, ArrayRef<AffineMap> maps, ContractionDims dims,
                 const PackedProductOptions &options)
      : ProductSpace(loc, std::move(dims), maps[2]), lhs(lhs), rhs(rhs), lhsMap(maps[0]), rhsMap(maps[1]),
        options(options) {}

  Value build(OpBuilder &b, EpilogueBuilder epilogue);

private:
  void findSizes(OpBuilder &b);
  void choose(OpBuilder &b, bool mayCutColumns);
  void allocate(OpBuilder &b);
  Value buildEmpty(OpBuilder &b, EpilogueBuilder epilogue);
  void packRows(OpBuilder &b, const Task &task);
  void packColumns(OpBuilder &b, ArrayRef<OpFoldResult> batch, OpFoldResult first, OpFoldResult count);
  void packAllColumns(OpBuilder &b);
  void multiply(OpBuilder &b, const Task &task);
  /// Views the sums [batch][M][N padded] in the shape of the output, or of a box of it.
  Value viewSums(OpBuilder &b);
  Value viewSums(OpBuilder &b, const OutputBox &box);
  /// Returns `count` panels of `panels` from `first` on, in slot `slot`.
  Value sliceOf(OpBuilder &b, Value panels, OpFoldResult slot, OpFoldResult first, OpFoldResult count);
  Value rowPanels(OpBuilder &b, const Task &task) {
    OpFoldResult count = ceilDivSize(b, loc, rowsOf(b, task), plan.tile.rows);
    return sliceOf(b, packedRows, task.slot, number(b, 0), count);
  }

  Value lhs, rhs;
  AffineMap lhsMap, rhsMap;
  PackedProductOptions options;
  PackedOperand left, right;
  Value packedRows;    ///< [task][panel][K][tile rows]
  Value packedColumns; ///< [batch][panel][K][tile columns]
  Value sums;          ///< [batch][M][N padded]
};
} // namespace

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

void ProductBuilder::findSizes(OpBuilder &b) {
  for (unsigned dim : llvm::seq<unsigned>(outMap.getNumDims())) {
    std::optional<unsigned> position = findDim(lhsMap, dim);
    sizes.push_back(position ? memref::getMixedSize(b, loc, lhs, *position)
                             : memref::getMixedSize(b, loc, rhs, *findDim(rhsMap, dim)));
  }
}

void ProductBuilder::choose(OpBuilder &b, bool mayCutColumns) {
  left = {lhs, positionsOf(lhsMap, dims.batch), positionsOf(lhsMap, dims.m), positionsOf(lhsMap, dims.k)};
  right = {rhs, positionsOf(rhsMap, dims.batch), positionsOf(rhsMap, dims.n), positionsOf(rhsMap, dims.k)};
  unsigned together = std::min<size_t>(dims.m.size(), 1);
  while (together < dims.m.size() && hasOneStride(left.type(), ArrayRef(left.outer).take_back(together + 1)))
    ++together;
  ProductSizes known{knownSize(dims.batch), {}, knownSize(dims.n), knownSize(dims.k)};
  for (unsigned dim : dims.m)
    known.m.push_back(knownSize(dim));
  plan = choosePlan(known, together, mayCutColumns, options.registers);
  left = makePackable(b, loc, left, rowDims());
  right = makePackable(b, loc, right, dims.n.size());
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

static Value allocateF32(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  return memref::AllocOp::create(b, loc, MemRefType::get(shape, b.getF32Type()), dynamic,
                                 b.getI64IntegerAttr(64));
}

void ProductBuilder::allocate(OpBuilder &b) {
  OpFoldResult slots = multiplySizes(b, loc, {sizeOf(b, dims.batch), sizeOf(b, outerRows()), countBlocks(b)});
  OpFoldResult depth = sizeOf(b, dims.k);
  OpFoldResult panels = countPanels(b);
  OpFoldResult width = number(b, plan.tile.columns);
  int64_t blockPanels = llvm::divideCeil(plan.step * plan.inner, plan.tile.rows);
  packedRows = allocateF32(b, loc, {slots, number(b, blockPanels), depth, number(b, plan.tile.rows)});
  packedColumns = allocateF32(b, loc, {sizeOf(b, dims.batch), panels, depth, width});
  sums =
      allocateF32(b, loc, {sizeOf(b, dims.batch), sizeOf(b, dims.m), multiplySizes(b, loc, {panels, width})});
}

Value ProductBuilder::sliceOf(OpBuilder &b, Value panels, OpFoldResult slot, OpFoldResult first,
                              OpFoldResult count) {
  SmallVector<OpFoldResult> shape = memref::getMixedSizes(b, loc, panels);
  OpFoldResult depth = shape[2], width = shape[3];
  OpFoldResult panelSize = multiplySizes(b, loc, {depth, width});
  OpFoldResult index = addSizes(b, loc, multiplySizes(b, loc, {slot, shape[1]}), first);
  OpFoldResult offset = multiplySizes(b, loc, {index, panelSize});
  return memref::ReinterpretCastOp::create(b, loc, panels, offset,
                                           ArrayRef<OpFoldResult>{count, depth, width},
                                           ArrayRef<OpFoldResult>{panelSize, width, number(b, 1)});
}

Value ProductBuilder::viewSums(OpBuilder &b) {
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
  SmallVector<OpFoldResult> shape, strides;
  for (AffineExpr expr : outMap.getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    shape.push_back(sizes[dim]);
    strides.push_back(strideOf[dim]);
  }
  return memref::ReinterpretCastOp::create(b, loc, sums, number(b, 0), shape, strides);
}

Value ProductBuilder::viewSums(OpBuilder &b, const OutputBox &box) {
  Value whole = viewSums(b);
  if (box.sizes == memref::getMixedSizes(b, loc, whole))
    return whole;
  SmallVector<OpFoldResult> strides(box.sizes.size(), number(b, 1));
  return memref::SubViewOp::create(b, loc, whole, box.offsets, box.sizes, strides);
}

//===----------------------------------------------------------------------===//
// The parts of a task
//===----------------------------------------------------------------------===//

void ProductBuilder::packRows(OpBuilder &b, const Task &task) {
  SmallVector<OpFoldResult> offsets(left.type().getRank(), number(b, 0));
  for (auto [position, index] : llvm::zip_equal(left.batch, task.batch))
    offsets[position] = index;
  for (auto [position, index] : llvm::zip(left.outer, task.outer))
    offsets[position] = index;
  if (!left.outer.empty())
    offsets[left.outer[plan.cut]] = task.begin;
  OperandMatrix matrix = viewAsMatrix(b, loc, left, rowDims(), offsets, rowsOf(b, task));
  buildPack(b, loc, matrix, rowPanels(b, task), options.registers);
}

void ProductBuilder::packColumns(OpBuilder &b, ArrayRef<OpFoldResult> batch, OpFoldResult first,
                                 OpFoldResult count) {
  SmallVector<OpFoldResult> offsets(right.type().getRank(), number(b, 0));
  for (auto [position, index] : llvm::zip_equal(right.batch, batch))
    offsets[position] = index;
  OperandMatrix matrix = viewAsMatrix(b, loc, right, dims.n.size(), offsets, sizeOf(b, dims.n));
  Value panels = sliceOf(b, packedColumns, linearize(b, batch, dims.batch), first, count);
  buildPack(b, loc, matrix, panels, options.registers, first);
}

/// Packs the second operand of all products, if several tasks read the same.
void ProductBuilder::packAllColumns(OpBuilder &b) {
  SmallVector<OpFoldResult> counts;
  for (unsigned dim : dims.batch)
    counts.push_back(sizes[dim]);
  int64_t depth = knownSize(dims.k);
  int64_t panelElements =
      plan.tile.columns * (ShapedType::isDynamic(depth) ? 256 : std::max<int64_t>(depth, 1));
  int64_t perLoop = std::max<int64_t>(kPackElements / panelElements, 1);
  OpFoldResult panels = countPanels(b);
  counts.push_back(ceilDivSize(b, loc, panels, perLoop));
  buildLoops(b, counts, [&](OpBuilder &inside, ArrayRef<OpFoldResult> indices) {
    OpFoldResult first = multiplySizes(inside, loc, {indices.back(), number(inside, perLoop)});
    packColumns(inside, indices.drop_back(), first, remainingSize(inside, loc, panels, first, perLoop));
  });
}

void ProductBuilder::multiply(OpBuilder &b, const Task &task) {
  OpFoldResult product = linearize(b, task.batch, dims.batch);
  Value columns = sliceOf(b, packedColumns, product, task.firstPanel, task.panels);
  SmallVector<OpFoldResult> shape = memref::getMixedSizes(b, loc, sums);
  OpFoldResult width = number(b, plan.tile.columns);
  OpFoldResult outer = linearize(b, task.outer, outerRows());
  OpFoldResult cut = addSizes(b, loc, multiplySizes(b, loc, {outer, cutSize(b)}), task.begin);
  OpFoldResult row = addSizes(b, loc, multiplySizes(b, loc, {product, shape[1]}),
                              multiplySizes(b, loc, {cut, number(b, plan.inner)}));
  OpFoldResult offset = addSizes(b, loc, multiplySizes(b, loc, {row, shape[2]}),
                                 multiplySizes(b, loc, {task.firstPanel, width}));
  Value c = memref::ReinterpretCastOp::create(
      b, loc, sums, offset,
      ArrayRef<OpFoldResult>{rowsOf(b, task), multiplySizes(b, loc, {task.panels, width})},
      ArrayRef<OpFoldResult>{shape[2], number(b, 1)});
  buildGemm(b, loc, rowPanels(b, task), columns, c, options.split, plan.tile)
      ->setAttr(kProductsAttrName, options.marks);
}

/// A product without elements, or whose sums have no summands.
Value ProductBuilder::buildEmpty(OpBuilder &b, EpilogueBuilder epilogue) {
  sums = allocateF32(b, loc, {sizeOf(b, dims.batch), sizeOf(b, dims.m), sizeOf(b, dims.n)});
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  linalg::FillOp::create(b, loc, zero, sums)->setAttr(kProductsAttrName, options.marks);
  Value view = viewSums(b);
  bool hasElements =
      llvm::none_of(cast<MemRefType>(view.getType()).getShape(), [](int64_t size) { return size == 0; });
  if (epilogue && hasElements)
    epilogue(b, loc, boxOf(b, {{}, {}, number(b, 0), cutSize(b), {}, {}, {}}), view);
  return view;
}

Value ProductBuilder::build(OpBuilder &b, EpilogueBuilder epilogue) {
  findSizes(b);
  if (llvm::any_of(sizes, [](OpFoldResult size) { return isZeroInteger(size); }))
    return buildEmpty(b, epilogue);
  choose(b, /*mayCutColumns=*/dims.n.size() == 1 || !epilogue);
  allocate(b);
  auto kernel = scf::ExecuteRegionOp::create(b, loc, TypeRange());
  kernel->setAttr(kKernelAttrName, b.getUnitAttr());
  OpBuilder inside = OpBuilder::atBlockEnd(&kernel.getRegion().emplaceBlock());
  // A task packs what no other task reads.
  bool cutColumns = plan.panelsPerTask != 0;
  bool cutRows = plan.cut != 0 || getConstantIntValue(countBlocks(b)) != 1;
  bool ownRows = !cutColumns, ownColumns = !cutRows && (cutColumns || knownSize(dims.batch) != 1);
  if (!ownColumns)
    packAllColumns(inside);
  if (!ownRows)
    forEachTask(inside, false, [&](OpBuilder &body, const Task &task) { packRows(body, task); });
  forEachTask(inside, cutColumns, [&](OpBuilder &body, const Task &task) {
    if (ownColumns)
      packColumns(body, task.batch, task.firstPanel, task.panels);
    if (ownRows)
      packRows(body, task);
    multiply(body, task);
    if (!epilogue)
      return;
    OutputBox box = boxOf(body, task);
    epilogue(body, loc, box, viewSums(body, box));
  });
  scf::YieldOp::create(inside, loc);
  return epilogue ? Value() : viewSums(b);
}

FailureOr<Value> fp8::buildPackedProduct(OpBuilder &builder, Location loc, Value lhs, Value rhs,
                                         ArrayRef<AffineMap> maps, const PackedProductOptions &options,
                                         EpilogueBuilder epilogue) {
  if (failed(verifyOperands(loc, lhs, rhs, maps)))
    return failure();
  FailureOr<ContractionDims> dims = sortDims(loc, maps);
  if (failed(dims))
    return failure();
  SmallVector<AffineMap> ordered(maps);
  // The second operand provides the columns, which are contiguous in the sums as in the output.
  unsigned rank = maps[2].getNumResults();
  if (rank != 0 && llvm::is_contained(dims->m, maps[2].getDimPosition(rank - 1))) {
    std::swap(lhs, rhs);
    std::swap(ordered[0], ordered[1]);
    std::swap(dims->m, dims->n);
  }
  return ProductBuilder(loc, lhs, rhs, ordered, *dims, options).build(builder, epilogue);
}
