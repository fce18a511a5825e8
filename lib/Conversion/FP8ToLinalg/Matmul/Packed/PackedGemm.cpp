// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds a contraction with any indexing maps as one kernel: sorts the dimensions into batch, M, N and
// K, and lets each task of the plan pack its rows, multiply, and run its part of the epilogue.

#include "PackedGemmBuilder.h"
#include "fp8/Conversion/IndexFacts.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

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

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

void MatmulBuilder::findSizes(OpBuilder &b) {
  for (unsigned dim : llvm::seq<unsigned>(outMap.getNumDims())) {
    std::optional<unsigned> position = findDim(lhsMap, dim);
    sizes.push_back(position ? memref::getMixedSize(b, loc, lhs, *position)
                             : memref::getMixedSize(b, loc, rhs, *findDim(rhsMap, dim)));
  }
  if (options.atMost.empty())
    options.atMost = llvm::map_to_vector(sizes, findMost);
  // Dimensions of one index go first: the others are then next to each other, and blocks are cut along the
  // last.
  for (auto *group : {&dims.batch, &dims.m, &dims.n, &dims.k}) {
    SmallVector<unsigned> order;
    for (bool isOne : {true, false})
      llvm::copy_if(*group, std::back_inserter(order),
                    [&](unsigned dim) { return isOneInteger(sizes[dim]) == isOne; });
    *group = order;
  }
}

int64_t MatmulBuilder::mostSize(ArrayRef<unsigned> group) const {
  int64_t most = 1;
  for (unsigned dim : group) {
    int64_t size = getConstantIntValue(sizes[dim]).value_or(options.atMost[dim]);
    if (ShapedType::isDynamic(size))
      return size;
    most *= size;
  }
  return most;
}

int64_t MatmulBuilder::divisorOf(ArrayRef<unsigned> group) const {
  int64_t divisor = 1;
  for (unsigned dim : group)
    divisor *= findDivisor(sizes[dim]);
  return divisor;
}

void MatmulBuilder::choose(OpBuilder &b, bool mayCutColumns) {
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
  // A plan for the largest size is right for smaller ones: tasks have the sizes at run time.
  MatmulSizes known{mostSize(dims.batch), {}, mostSize(dims.n), mostSize(dims.k)};
  for (unsigned dim : dims.m)
    known.m.push_back(mostSize(dim));
  plan = choosePlan(known, together, mayCutColumns, options.onOneThread, scales.length, options.registers);
  left.rowDims = rowDims();
  right.rowDims = dims.n.size();
  for (Side *side : {&left, &right}) {
    side->operand = makePackable(b, loc, side->operand, side->rowDims);
    if (side->scales.source)
      side->scales = makePackable(b, loc, side->scales, side->rowDims);
  }
}

//===----------------------------------------------------------------------===//
// The parts of a task
//===----------------------------------------------------------------------===//

static void buildCopy(OpBuilder &b, Location loc, Value from, Value to) {
  AffineMap identity = b.getMultiDimIdentityMap(cast<MemRefType>(to.getType()).getRank());
  SmallVector<utils::IteratorType> iterators(identity.getNumDims(), utils::IteratorType::parallel);
  linalg::GenericOp::create(b, loc, from, to, ArrayRef{identity, identity}, iterators,
                            [](OpBuilder &inner, Location at, ValueRange values) {
                              linalg::YieldOp::create(inner, at, values[0]);
                            });
}

void MatmulBuilder::startSums(OpBuilder &b, const Task &part) {
  if (!options.start || options.start == options.result)
    return;
  OutputBox box = boxOf(b, part);
  SmallVector<OpFoldResult> strides(box.sizes.size(), number(b, 1));
  Value from = memref::SubViewOp::create(b, loc, options.start, box.offsets, box.sizes, strides);
  buildCopy(b, loc, from, viewSums(b, offsetOf(b, part), box.sizes));
}

void MatmulBuilder::multiply(OpBuilder &b, const Task &part) {
  OpFoldResult matmul = linearize(b, part.batch, dims.batch);
  Value columns = panelsOf(b, right, matmul, part.firstPanel, part.panels);
  OpFoldResult width = multiplySizes(b, loc, {part.panels, number(b, plan.tile.columns)});
  OpFoldResult shape[] = {rowsOf(b, part), width};
  OpFoldResult strides[] = {memref::getMixedSizes(b, loc, sums)[2], number(b, 1)};
  Value c =
      memref::ReinterpretCastOp::create(b, loc, sums, offsetOf(b, part), ArrayRef(shape), ArrayRef(strides));
  OpFoldResult summed = options.start ? addSizes(b, loc, segment.begin, number(b, 1)) : segment.begin;
  Value before = getValueOrCreateConstantIndexOp(b, loc, summed);
  OpFoldResult zero = number(b, 0), rowPanels = countRowPanels(b, part);
  Value rows = panelsOf(b, left, part.slot, zero, rowPanels);
  BlockPanels blocks;
  if (scales.ofBlocks)
    blocks = {scalePanelsOf(b, left, part.slot, zero, rowPanels),
              scalePanelsOf(b, right, matmul, part.firstPanel, part.panels), scales.length, scales.lhsFirst};
  auto call = buildGemm(b, loc, rows, columns, c, before, blocks, options, plan.tile);
  call->setAttr(kMatmulsAttrName, options.marks);
  if (options.result && !options.start)
    call->setAttr(kOverwritesSumsAttrName, b.getUnitAttr());
}

/// A matmul without elements, or whose sums have no summands.
Value MatmulBuilder::buildEmpty(OpBuilder &b, EpilogueBuilder epilogue) {
  sums = allocateF32(b, loc, {sizeOf(b, dims.batch), sizeOf(b, dims.m), sizeOf(b, dims.n)});
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  linalg::FillOp::create(b, loc, zero, sums)->setAttr(kMatmulsAttrName, options.marks);
  Value view = viewSums(b);
  bool hasElements =
      llvm::none_of(cast<MemRefType>(view.getType()).getShape(), [](int64_t size) { return size == 0; });
  if (epilogue && hasElements && !options.start) { // what the sums begin with is in the output
    Task whole;
    whole.begin = number(b, 0);
    whole.count = cutSize(b);
    epilogue(b, loc, boxOf(b, whole), view);
  }
  return view;
}

bool MatmulBuilder::packsOwnColumns(OpBuilder &b) const {
  bool cutRows = plan.cut != 0 || getConstantIntValue(countBlocks(b)) != 1;
  return !cutRows && (!packsOwnRows() || knownSize(dims.batch) != 1);
}

/// `isLast`: whether no segment follows; null if there is one only.
void MatmulBuilder::buildTasks(OpBuilder &b, EpilogueBuilder epilogue, Value isLast) {
  bool ownRows = packsOwnRows(), ownColumns = packsOwnColumns(b);
  if (!ownColumns)
    packAllColumns(b);
  if (!ownRows)
    packAllRows(b);
  forEachTask(b, taken, [&](OpBuilder &body, const Task &each) {
    Task task = each;
    if (ownRows)
      task.slot = task.worker; // the panels of a worker stay in its caches from task to task
    if (ownColumns)
      packColumns(body, task.batch, task.firstPanel, task.panels);
    if (ownRows)
      packRows(body, task, number(body, 0), countRowPanels(body, task));
    auto runEpilogue = [&](OpBuilder &inner, const Task &part) {
      OutputBox box = boxOf(inner, part);
      epilogue(inner, loc, box, viewSums(inner, offsetOf(inner, part), box.sizes));
    };
    if (!isPerTask && !plan.segment)
      startSums(body, task);
    forEachPart(body, task, [&](OpBuilder &inner, const Task &part) {
      if (isPerTask)
        startSums(inner, part);
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

void MatmulBuilder::buildSegments(OpBuilder &b, EpilogueBuilder epilogue) {
  OpFoldResult depth = sizeOf(b, dims.k);
  segment = {number(b, 0), depth};
  if (!plan.segment)
    return buildTasks(b, epilogue, /*isLast=*/Value());
  if (options.start && options.start != options.result)
    buildCopy(b, loc, options.start, viewSums(b));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value end = getValueOrCreateConstantIndexOp(b, loc, depth);
  if (!getConstantIntValue(depth)) // sums without summands are zeros
    end = arith::MaxUIOp::create(b, loc, end, arith::ConstantIndexOp::create(b, loc, 1));
  Value step = arith::ConstantIndexOp::create(b, loc, plan.segment);
  auto loop = scf::ForOp::create(b, loc, zero, end, step);
  OpBuilder inside = OpBuilder::atBlockTerminator(loop.getBody());
  Value begin = loop.getInductionVar();
  segment = {begin, remainingSize(inside, loc, depth, begin, plan.segment)};
  Value next = arith::AddIOp::create(inside, loc, begin, step);
  buildTasks(inside, epilogue, arith::CmpIOp::create(inside, loc, arith::CmpIPredicate::sge, next, end));
}

Value MatmulBuilder::build(OpBuilder &b, EpilogueBuilder epilogue) {
  findSizes(b);
  if (llvm::any_of(sizes, [](OpFoldResult size) { return isZeroInteger(size); }))
    return buildEmpty(b, epilogue);
  choose(b, /*mayCutColumns=*/dims.n.size() == 1 || !epilogue);
  sums = viewResult(b);
  bool isResult = bool(sums);
  if (isResult)
    epilogue = nullptr;
  else
    options.result = Value();
  isPerTask = epilogue && dims.n.size() == 1 && !plan.segment;
  allocate(b);
  auto kernel = scf::ExecuteRegionOp::create(b, loc, TypeRange());
  kernel->setAttr(kKernelAttrName, b.getUnitAttr());
  OpBuilder inside = OpBuilder::atBlockEnd(&kernel.getRegion().emplaceBlock());
  buildSegments(inside, epilogue);
  scf::YieldOp::create(inside, loc);
  return epilogue || isResult ? Value() : viewSums(b);
}

FailureOr<Value> fp8::buildPackedMatmul(OpBuilder &builder, Location loc, Value lhs, Value rhs,
                                        ArrayRef<AffineMap> maps, const PackedMatmulOptions &options,
                                        EpilogueBuilder epilogue) {
  if (failed(verifyOperands(loc, lhs, rhs, maps)))
    return failure();
  FailureOr<ContractionDims> dims = sortDims(loc, maps);
  if (failed(dims))
    return failure();
  SmallVector<AffineMap> ordered(maps);
  PackedMatmulOptions orderedOptions = options;
  // The second operand provides the columns, which are contiguous in the sums as in the output.
  unsigned rank = maps[2].getNumResults();
  if (rank != 0 && llvm::is_contained(dims->m, maps[2].getDimPosition(rank - 1))) {
    std::swap(lhs, rhs);
    std::swap(ordered[0], ordered[1]);
    std::swap(dims->m, dims->n);
    std::swap(orderedOptions.scales.lhs, orderedOptions.scales.rhs);
    orderedOptions.scales.lhsFirst = !options.scales.lhsFirst;
  }
  return MatmulBuilder(loc, lhs, rhs, ordered, *dims, orderedOptions).build(builder, epilogue);
}
