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
        options(options), scales(options.scales) {}

  Value build(OpBuilder &b, EpilogueBuilder epilogue);

private:
  /// A range of K.
  struct Segment {
    OpFoldResult begin, length;
  };

  /// An operand and its panels. `scales` is without source if there are no scales along K.
  struct Side {
    PackedOperand operand, scales;
    unsigned rowDims;  ///< the last dimensions of `outer` that rows of one call run through
    Value panels;      ///< [task or batch][panel][K][tile rows or columns]
    Value scalePanels; ///< [task or batch][panel][block of K][tile rows or columns]
  };

  void findSizes(OpBuilder &b);
  void choose(OpBuilder &b, bool mayCutColumns);
  void allocate(OpBuilder &b);
  Value buildEmpty(OpBuilder &b, EpilogueBuilder epilogue);
  void buildSegments(OpBuilder &b, EpilogueBuilder epilogue);
  void buildTasks(OpBuilder &b, EpilogueBuilder epilogue, Value isLast);
  /// Emits a call that packs the range `part` of `operand`, which begins at `offsets` and has `rows` rows.
  void pack(OpBuilder &b, const PackedOperand &operand, const Segment &part, unsigned rowDims,
            ArrayRef<OpFoldResult> offsets, OpFoldResult rows, Value panels,
            const PackedProductOptions &options, OpFoldResult first);
  /// Packs this segment of an operand and of its scales: `count` panels from `first` on.
  void packSide(OpBuilder &b, const Side &side, ArrayRef<OpFoldResult> offsets, OpFoldResult rows,
                OpFoldResult slot, OpFoldResult first, OpFoldResult count);
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
  /// Returns `count` panels of `panels` from `first` on, in slot `slot`, of `depth` elements along K.
  Value sliceOf(OpBuilder &b, Value panels, OpFoldResult slot, OpFoldResult first, OpFoldResult count,
                OpFoldResult depth);
  /// Returns such panels of this segment, of an operand or of its scales.
  Value panelsOf(OpBuilder &b, const Side &side, OpFoldResult slot, OpFoldResult first, OpFoldResult count) {
    return sliceOf(b, side.panels, slot, first, count, inPanel(b, segment.length));
  }
  Value scalePanelsOf(OpBuilder &b, const Side &side, OpFoldResult slot, OpFoldResult first,
                      OpFoldResult count) {
    return sliceOf(b, side.scalePanels, slot, first, count, inBlocks(b, segment.length));
  }
  /// Returns the number of elements of a panel along K for `length` indices of K.
  OpFoldResult inPanel(OpBuilder &b, OpFoldResult length) {
    return options.bf16Dots ? ceilDivSize(b, loc, length, 2) : length;
  }
  /// Returns the number of scales for `length` indices of K.
  OpFoldResult inBlocks(OpBuilder &b, OpFoldResult length) {
    return ceilDivSize(b, loc, length, scales.length);
  }
  OpFoldResult countRowPanels(OpBuilder &b, const Task &task) {
    return ceilDivSize(b, loc, rowsOf(b, task), plan.tile.rows);
  }

  Value lhs, rhs;
  AffineMap lhsMap, rhsMap;
  PackedProductOptions options;
  PanelScales scales;
  Side left, right;       ///< of rows and of columns
  Segment segment;        ///< what is packed and multiplied at a time
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
  auto describe = [&](Value source, AffineMap map, ArrayRef<unsigned> outer) -> PackedOperand {
    return {source, positionsOf(map, dims.batch), positionsOf(map, outer), positionsOf(map, dims.k)};
  };
  left.operand = describe(lhs, lhsMap, dims.m);
  right.operand = describe(rhs, rhsMap, dims.n);
  left.scales = describe(scales.lhs, lhsMap, dims.m);
  right.scales = describe(scales.rhs, rhsMap, dims.n);
  unsigned together = std::min<size_t>(dims.m.size(), 1);
  while (together < dims.m.size() &&
         hasOneStride(left.operand.type(), ArrayRef(left.operand.outer).take_back(together + 1)))
    ++together;
  ProductSizes known{knownSize(dims.batch), {}, knownSize(dims.n), knownSize(dims.k)};
  for (unsigned dim : dims.m)
    known.m.push_back(knownSize(dim));
  plan = choosePlan(known, together, mayCutColumns, scales.length, options.registers);
  left.rowDims = rowDims();
  right.rowDims = dims.n.size();
  for (Side *side : {&left, &right}) {
    side->operand = makePackable(b, loc, side->operand, side->rowDims);
    if (side->scales.source)
      side->scales = makePackable(b, loc, side->scales, side->rowDims);
  }
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
  OpFoldResult depth = plan.segment ? number(b, plan.segment) : sizeOf(b, dims.k);
  OpFoldResult panels = countPanels(b);
  OpFoldResult width = number(b, plan.tile.columns);
  auto allocateSide = [&](Side &side, OpFoldResult count, OpFoldResult panels, OpFoldResult width) {
    side.panels = allocateF32(b, loc, {count, panels, inPanel(b, depth), width});
    if (side.scales.source)
      side.scalePanels = allocateF32(b, loc, {count, panels, inBlocks(b, depth), width});
  };
  int64_t blockPanels = llvm::divideCeil(plan.step * plan.inner, plan.tile.rows);
  allocateSide(left, slots, number(b, blockPanels), number(b, plan.tile.rows));
  allocateSide(right, sizeOf(b, dims.batch), panels, width);
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

void ProductBuilder::pack(OpBuilder &b, const PackedOperand &operand, const Segment &part, unsigned rowDims,
                          ArrayRef<OpFoldResult> offsets, OpFoldResult rows, Value panels,
                          const PackedProductOptions &options, OpFoldResult first) {
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
  buildPack(b, loc, matrix, panels, options, first);
}

void ProductBuilder::packSide(OpBuilder &b, const Side &side, ArrayRef<OpFoldResult> offsets,
                              OpFoldResult rows, OpFoldResult slot, OpFoldResult first, OpFoldResult count) {
  Value panels = panelsOf(b, side, slot, first, count);
  pack(b, side.operand, segment, side.rowDims, offsets, rows, panels, options, first);
  if (!side.scales.source)
    return;
  Segment blocks{inBlocks(b, segment.begin), inBlocks(b, segment.length)};
  PackedProductOptions plain = options;
  plain.bf16Dots = false;
  Value ofPanels = scalePanelsOf(b, side, slot, first, count);
  pack(b, side.scales, blocks, side.rowDims, offsets, rows, ofPanels, plain, first);
  if (!scales.ofBlocks)
    buildScalePanels(b, loc, panels, ofPanels, scales.length, options.registers);
}

void ProductBuilder::packRows(OpBuilder &b, const Task &task, OpFoldResult first, OpFoldResult count) {
  SmallVector<OpFoldResult> offsets(left.operand.type().getRank(), number(b, 0));
  for (auto [position, index] : llvm::zip_equal(left.operand.batch, task.batch))
    offsets[position] = index;
  for (auto [position, index] : llvm::zip(left.operand.outer, task.outer))
    offsets[position] = index;
  if (!left.operand.outer.empty())
    offsets[left.operand.outer[plan.cut]] = task.begin;
  packSide(b, left, offsets, rowsOf(b, task), task.slot, first, count);
}

void ProductBuilder::packColumns(OpBuilder &b, ArrayRef<OpFoldResult> batch, OpFoldResult first,
                                 OpFoldResult count) {
  SmallVector<OpFoldResult> offsets(right.operand.type().getRank(), number(b, 0));
  for (auto [position, index] : llvm::zip_equal(right.operand.batch, batch))
    offsets[position] = index;
  packSide(b, right, offsets, sizeOf(b, dims.n), linearize(b, batch, dims.batch), first, count);
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
  Value columns = panelsOf(b, right, product, part.firstPanel, part.panels);
  OpFoldResult width = multiplySizes(b, loc, {part.panels, number(b, plan.tile.columns)});
  OpFoldResult shape[] = {rowsOf(b, part), width};
  OpFoldResult strides[] = {memref::getMixedSizes(b, loc, sums)[2], number(b, 1)};
  Value c =
      memref::ReinterpretCastOp::create(b, loc, sums, offsetOf(b, part), ArrayRef(shape), ArrayRef(strides));
  Value before = getValueOrCreateConstantIndexOp(b, loc, segment.begin);
  OpFoldResult zero = number(b, 0), rowPanels = countRowPanels(b, part);
  Value rows = panelsOf(b, left, part.slot, zero, rowPanels);
  BlockPanels blocks;
  if (scales.ofBlocks)
    blocks = {scalePanelsOf(b, left, part.slot, zero, rowPanels),
              scalePanelsOf(b, right, product, part.firstPanel, part.panels), scales.length, scales.lhsFirst};
  buildGemm(b, loc, rows, columns, c, before, blocks, options, plan.tile)
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
  PackedProductOptions orderedOptions = options;
  // The second operand provides the columns, which are contiguous in the sums as in the output.
  unsigned rank = maps[2].getNumResults();
  if (rank != 0 && llvm::is_contained(dims->m, maps[2].getDimPosition(rank - 1))) {
    std::swap(lhs, rhs);
    std::swap(ordered[0], ordered[1]);
    std::swap(dims->m, dims->n);
    std::swap(orderedOptions.scales.lhs, orderedOptions.scales.rhs);
    orderedOptions.scales.lhsFirst = !options.scales.lhsFirst;
  }
  return ProductBuilder(loc, lhs, rhs, ordered, *dims, orderedOptions).build(builder, epilogue);
}
