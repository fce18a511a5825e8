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
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace fp8;

/// Elements of a shared operand that one task packs; fewer in all are packed by one thread.
static constexpr int64_t kPackElements = 1 << 14;
/// Panels that are faster to pack together than alone, if that leaves so many tasks.
static constexpr int64_t kPackTogether = 4, kPackTasks = 8;

/// Rows of sums whose distance is a multiple of this many elements would meet in few sets of the caches.
static constexpr int64_t kSetElements = 1024, kLineElements = 16;

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
  /// The indices of K that are packed and multiplied at a time.
  struct Segment {
    OpFoldResult begin, length;
  };

  void findSizes(OpBuilder &b);
  void choose(OpBuilder &b, bool mayCutColumns);
  void allocate(OpBuilder &b);
  Value buildEmpty(OpBuilder &b, EpilogueBuilder epilogue);
  void buildSegments(OpBuilder &b, EpilogueBuilder epilogue);
  void buildTasks(OpBuilder &b, EpilogueBuilder epilogue, Value isLast);
  /// Emits a call that packs `operand`, which begins at `offsets` and has `rows` rows, for this segment.
  void pack(OpBuilder &b, const PackedOperand &operand, unsigned rowDims, ArrayRef<OpFoldResult> offsets,
            OpFoldResult rows, Value panels, OpFoldResult first = {});
  /// Packs the rows of `task`, `count` panels from `first` on.
  void packRows(OpBuilder &b, const Task &task, OpFoldResult first, OpFoldResult count);
  void packColumns(OpBuilder &b, ArrayRef<OpFoldResult> batch, OpFoldResult first, OpFoldResult count);
  void packAllColumns(OpBuilder &b);
  void packAllRows(OpBuilder &b);
  /// Returns how many panels of `width` elements one thread packs at least.
  int64_t panelsPerLoop(int64_t width);
  void multiply(OpBuilder &b, const Task &part);
  /// Returns the position of the first sum of `part` in `sums`.
  OpFoldResult offsetOf(OpBuilder &b, const Task &part);
  /// Views sums from `offset` on as a box of the output of size `shape`, or as the whole output.
  Value viewSums(OpBuilder &b, OpFoldResult offset, ArrayRef<OpFoldResult> shape);
  Value viewSums(OpBuilder &b);
  /// Returns `count` panels of `panels` from `first` on, in slot `slot`.
  Value sliceOf(OpBuilder &b, Value panels, OpFoldResult slot, OpFoldResult first, OpFoldResult count);
  /// Returns the number of elements of a panel along K for `length` indices of K.
  OpFoldResult inPanel(OpBuilder &b, OpFoldResult length) {
    return options.bf16Dots ? ceilDivSize(b, loc, length, 2) : length;
  }
  OpFoldResult countRowPanels(OpBuilder &b, const Task &task) {
    return ceilDivSize(b, loc, rowsOf(b, task), plan.tile.rows);
  }

  Value lhs, rhs;
  AffineMap lhsMap, rhsMap;
  PackedProductOptions options;
  PackedOperand left, right;
  Segment segment;
  Value packedRows;       ///< [task][panel][K][tile rows]
  Value packedColumns;    ///< [batch][panel][K][tile columns]
  Value sums;             ///< [batch][M][N padded], or [task][rows][columns of a part, padded]
  bool isPerTask = false; ///< whether a task keeps the sums of one part at a time
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

/// Returns the distance of rows of `columns` sums.
static int64_t padRow(int64_t columns) {
  return columns % kSetElements == 0 ? columns + kLineElements : columns;
}

void ProductBuilder::allocate(OpBuilder &b) {
  llvm::SaveAndRestore<SmallVector<OpFoldResult>> actual(sizes);
  for (auto [size, most] : llvm::zip(sizes, options.atMost))
    if (!ShapedType::isDynamic(most) && !getConstantIntValue(size))
      size = number(b, most);
  OpFoldResult slots = multiplySizes(b, loc, {sizeOf(b, dims.batch), sizeOf(b, outerRows()), countBlocks(b)});
  OpFoldResult depth = inPanel(b, plan.segment ? number(b, plan.segment) : sizeOf(b, dims.k));
  OpFoldResult panels = countPanels(b);
  OpFoldResult width = number(b, plan.tile.columns);
  int64_t blockPanels = llvm::divideCeil(plan.step * plan.inner, plan.tile.rows);
  packedRows = allocateF32(b, loc, {slots, number(b, blockPanels), depth, number(b, plan.tile.rows)});
  packedColumns = allocateF32(b, loc, {sizeOf(b, dims.batch), panels, depth, width});
  if (isPerTask) {
    OpFoldResult columns = number(b, padRow(plan.panelsPerPart * plan.tile.columns));
    sums = allocateF32(
        b, loc,
        {multiplySizes(b, loc, {slots, countColumnTasks(b)}), number(b, plan.step * plan.inner), columns});
    return;
  }
  OpFoldResult columns = multiplySizes(b, loc, {panels, width});
  if (std::optional<int64_t> known = getConstantIntValue(columns))
    columns = number(b, padRow(*known));
  sums = allocateF32(b, loc, {sizeOf(b, dims.batch), sizeOf(b, dims.m), columns});
}

Value ProductBuilder::sliceOf(OpBuilder &b, Value panels, OpFoldResult slot, OpFoldResult first,
                              OpFoldResult count) {
  SmallVector<OpFoldResult> shape = memref::getMixedSizes(b, loc, panels);
  OpFoldResult depth = shape[2], width = shape[3];
  OpFoldResult panelSize = multiplySizes(b, loc, {depth, width});
  OpFoldResult index = addSizes(b, loc, multiplySizes(b, loc, {slot, shape[1]}), first);
  OpFoldResult offset = multiplySizes(b, loc, {index, panelSize});
  return memref::ReinterpretCastOp::create(b, loc, panels, offset,
                                           ArrayRef<OpFoldResult>{count, inPanel(b, segment.length), width},
                                           ArrayRef<OpFoldResult>{panelSize, width, number(b, 1)});
}

Value ProductBuilder::viewSums(OpBuilder &b, OpFoldResult offset, ArrayRef<OpFoldResult> shape) {
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

Value ProductBuilder::viewSums(OpBuilder &b) {
  SmallVector<OpFoldResult> shape = llvm::map_to_vector(
      outMap.getResults(), [&](AffineExpr expr) { return sizes[cast<AffineDimExpr>(expr).getPosition()]; });
  return viewSums(b, number(b, 0), shape);
}

//===----------------------------------------------------------------------===//
// The parts of a task
//===----------------------------------------------------------------------===//

void ProductBuilder::pack(OpBuilder &b, const PackedOperand &operand, unsigned rowDims,
                          ArrayRef<OpFoldResult> offsets, OpFoldResult rows, Value panels,
                          OpFoldResult first) {
  OperandMatrix matrix = viewAsMatrix(b, loc, operand, rowDims, offsets, rows);
  if (plan.segment) {
    OpFoldResult begin[] = {number(b, 0), segment.begin}, shape[] = {rows, segment.length};
    OpFoldResult strides[] = {number(b, 1), number(b, 1)};
    if (!matrix.alongK) {
      std::swap(begin[0], begin[1]);
      std::swap(shape[0], shape[1]);
    }
    matrix.view =
        memref::SubViewOp::create(b, loc, matrix.view, ArrayRef(begin), ArrayRef(shape), ArrayRef(strides));
  }
  buildPack(b, loc, matrix, panels, options, first);
}

void ProductBuilder::packRows(OpBuilder &b, const Task &task, OpFoldResult first, OpFoldResult count) {
  SmallVector<OpFoldResult> offsets(left.type().getRank(), number(b, 0));
  for (auto [position, index] : llvm::zip_equal(left.batch, task.batch))
    offsets[position] = index;
  for (auto [position, index] : llvm::zip(left.outer, task.outer))
    offsets[position] = index;
  if (!left.outer.empty())
    offsets[left.outer[plan.cut]] = task.begin;
  Value panels = sliceOf(b, packedRows, task.slot, first, count);
  pack(b, left, rowDims(), offsets, rowsOf(b, task), panels, first);
}

void ProductBuilder::packColumns(OpBuilder &b, ArrayRef<OpFoldResult> batch, OpFoldResult first,
                                 OpFoldResult count) {
  SmallVector<OpFoldResult> offsets(right.type().getRank(), number(b, 0));
  for (auto [position, index] : llvm::zip_equal(right.batch, batch))
    offsets[position] = index;
  Value panels = sliceOf(b, packedColumns, linearize(b, batch, dims.batch), first, count);
  pack(b, right, dims.n.size(), offsets, sizeOf(b, dims.n), panels, first);
}

int64_t ProductBuilder::panelsPerLoop(int64_t width) {
  int64_t depth = plan.segment ? plan.segment : knownSize(dims.k);
  int64_t panelElements = width * (ShapedType::isDynamic(depth) ? 256 : std::max<int64_t>(depth, 1));
  return std::max<int64_t>(kPackElements / panelElements, 1);
}

/// Packs the first operand of all products, if several tasks read the same.
void ProductBuilder::packAllRows(OpBuilder &b) {
  bool cutRows = plan.cut != 0 || getConstantIntValue(countBlocks(b)) != 1;
  if (cutRows) {
    forEachTask(b, false, [&](OpBuilder &body, const Task &task) {
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

/// Packs the second operand of all products, if several tasks read the same.
void ProductBuilder::packAllColumns(OpBuilder &b) {
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

OpFoldResult ProductBuilder::offsetOf(OpBuilder &b, const Task &part) {
  SmallVector<OpFoldResult> shape = memref::getMixedSizes(b, loc, sums);
  if (isPerTask)
    return multiplySizes(b, loc, {part.number, shape[1], shape[2]});
  OpFoldResult outer = linearize(b, part.outer, outerRows());
  OpFoldResult cut = addSizes(b, loc, multiplySizes(b, loc, {outer, cutSize(b)}), part.begin);
  OpFoldResult product = multiplySizes(b, loc, {linearize(b, part.batch, dims.batch), shape[1]});
  OpFoldResult row = addSizes(b, loc, product, multiplySizes(b, loc, {cut, number(b, plan.inner)}));
  return addSizes(b, loc, multiplySizes(b, loc, {row, shape[2]}),
                  multiplySizes(b, loc, {part.firstPanel, number(b, plan.tile.columns)}));
}

void ProductBuilder::multiply(OpBuilder &b, const Task &part) {
  OpFoldResult product = linearize(b, part.batch, dims.batch);
  Value columns = sliceOf(b, packedColumns, product, part.firstPanel, part.panels);
  OpFoldResult width = multiplySizes(b, loc, {part.panels, number(b, plan.tile.columns)});
  OpFoldResult shape[] = {rowsOf(b, part), width};
  OpFoldResult strides[] = {memref::getMixedSizes(b, loc, sums)[2], number(b, 1)};
  Value c =
      memref::ReinterpretCastOp::create(b, loc, sums, offsetOf(b, part), ArrayRef(shape), ArrayRef(strides));
  Value before = getValueOrCreateConstantIndexOp(b, loc, segment.begin);
  Value rows = sliceOf(b, packedRows, part.slot, number(b, 0), countRowPanels(b, part));
  buildGemm(b, loc, rows, columns, c, before, options, plan.tile)->setAttr(kProductsAttrName, options.marks);
}

/// A product without elements, or whose sums have no summands.
Value ProductBuilder::buildEmpty(OpBuilder &b, EpilogueBuilder epilogue) {
  sums = allocateF32(b, loc, {sizeOf(b, dims.batch), sizeOf(b, dims.m), sizeOf(b, dims.n)});
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  linalg::FillOp::create(b, loc, zero, sums)->setAttr(kProductsAttrName, options.marks);
  Value view = viewSums(b);
  bool hasElements =
      llvm::none_of(cast<MemRefType>(view.getType()).getShape(), [](int64_t size) { return size == 0; });
  if (epilogue && hasElements) {
    Task whole;
    whole.begin = number(b, 0);
    whole.count = cutSize(b);
    epilogue(b, loc, boxOf(b, whole), view);
  }
  return view;
}

/// `isLast`: whether no segment follows; null if there is one only.
void ProductBuilder::buildTasks(OpBuilder &b, EpilogueBuilder epilogue, Value isLast) {
  // A task packs what no other task reads.
  bool cutColumns = plan.panelsPerTask != 0;
  bool cutRows = plan.cut != 0 || getConstantIntValue(countBlocks(b)) != 1;
  bool ownRows = !cutColumns, ownColumns = !cutRows && (cutColumns || knownSize(dims.batch) != 1);
  if (!ownColumns)
    packAllColumns(b);
  if (!ownRows)
    packAllRows(b);
  forEachTask(b, cutColumns, [&](OpBuilder &body, const Task &task) {
    if (ownColumns)
      packColumns(body, task.batch, task.firstPanel, task.panels);
    if (ownRows)
      packRows(body, task, number(body, 0), countRowPanels(body, task));
    auto runEpilogue = [&](OpBuilder &inner, const Task &part) {
      OutputBox box = boxOf(inner, part);
      epilogue(inner, loc, box, viewSums(inner, offsetOf(inner, part), box.sizes));
    };
    forEachPart(body, task, [&](OpBuilder &inner, const Task &part) {
      multiply(inner, part);
      if (isPerTask)
        runEpilogue(inner, part);
    });
    if (!epilogue || isPerTask)
      return;
    if (!isLast)
      return runEpilogue(body, task);
    auto last = scf::IfOp::create(body, loc, isLast, /*withElseRegion=*/false);
    OpBuilder then = OpBuilder::atBlockTerminator(last.thenBlock());
    runEpilogue(then, task);
  });
}

void ProductBuilder::buildSegments(OpBuilder &b, EpilogueBuilder epilogue) {
  OpFoldResult depth = sizeOf(b, dims.k);
  segment = {number(b, 0), depth};
  if (!plan.segment)
    return buildTasks(b, epilogue, /*isLast=*/Value());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value end = getValueOrCreateConstantIndexOp(b, loc, depth);
  Value step = arith::ConstantIndexOp::create(b, loc, plan.segment);
  auto loop = scf::ForOp::create(b, loc, zero, end, step);
  OpBuilder inside = OpBuilder::atBlockTerminator(loop.getBody());
  Value begin = loop.getInductionVar();
  segment = {begin, remainingSize(inside, loc, depth, begin, plan.segment)};
  Value next = arith::AddIOp::create(inside, loc, begin, step);
  buildTasks(inside, epilogue, arith::CmpIOp::create(inside, loc, arith::CmpIPredicate::sge, next, end));
}

Value ProductBuilder::build(OpBuilder &b, EpilogueBuilder epilogue) {
  findSizes(b);
  if (llvm::any_of(sizes, [](OpFoldResult size) { return isZeroInteger(size); }))
    return buildEmpty(b, epilogue);
  choose(b, /*mayCutColumns=*/dims.n.size() == 1 || !epilogue);
  isPerTask = epilogue && dims.n.size() == 1 && !plan.segment;
  allocate(b);
  auto kernel = scf::ExecuteRegionOp::create(b, loc, TypeRange());
  kernel->setAttr(kKernelAttrName, b.getUnitAttr());
  OpBuilder inside = OpBuilder::atBlockEnd(&kernel.getRegion().emplaceBlock());
  buildSegments(inside, epilogue);
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
