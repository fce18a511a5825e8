// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the register tile and the tasks of a packed matmul from its sizes.

#include "PackedGemmDetail.h"

#include <numeric>

using namespace mlir;
using namespace fp8;

/// Matmuls of fewer multiply-adds run on one thread: starting another takes longer.
static constexpr int64_t kParallelWork = 1 << 21;
/// Multiply-adds of a task, if there are enough of them.
static constexpr int64_t kTaskWork = 1 << 20;
/// Tasks that occupy the cores of a machine evenly: as many as are useful, and as are worth cutting N.
static constexpr int64_t kManyTasks = 64, kEnoughTasks = 16;
/// So many times fewer tasks are better than tasks that share both operands.
static constexpr int64_t kFewerTasks = 4;
/// Elements of a panel of B that stay in the L2 cache between packing and multiplication.
static constexpr int64_t kCacheElements = 1 << 17;
/// Sums of a part of a task, which stay in the L2 cache from one block of K to the next, and until the
/// epilogue reads them.
static constexpr int64_t kPartElements = 1 << 16;
/// Indices of K that are packed at a time where there are many: panels that are longer would leave the caches
/// before they are multiplied.
static constexpr int64_t kSegment = 1024;
/// Rows of a block: few enough for their panels to stay in the L2 cache.
static constexpr int64_t kMostRows = 256;
/// More rows of a tile would not make the loads of B cheaper, and LLVM spills a sum of 14 rows of 2 vectors
/// with 32 registers, because it loads elements of A early.
static constexpr int64_t kMostTileRows = 13;

/// A register for each vector of B and one for the element of A; all others hold sums.
PackedGemmTile fp8::chooseTile(const VectorRegisters &registers, int64_t rows, int64_t columns) {
  auto isShort = [](int64_t size, int64_t most) { return !ShapedType::isDynamic(size) && size <= most; };
  if (registers.instruction ==
      MatrixInstruction::amx) // one or two tile registers of 16 x 16 in each direction
    return {isShort(rows, 16) ? 16 : 32, isShort(columns, 16) ? 16 : 32};
  bool isNarrow = isShort(columns, registers.lanes);
  int64_t vectors = isNarrow ? 1 : 2;
  int64_t most = std::clamp<int64_t>((registers.count - 1 - vectors) / vectors, 1, kMostTileRows);
  if (!ShapedType::isDynamic(rows) && rows > 0)
    most = llvm::divideCeil(rows, llvm::divideCeil(rows, most)); // panels of equal height
  return {most, vectors * registers.lanes};
}

/// Returns the product of `sizes`, at most 2^40; the largest number if one of them is dynamic.
static int64_t multiplyKnown(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) {
    if (ShapedType::isDynamic(size))
      return std::numeric_limits<int64_t>::max();
    product = std::min<int64_t>(product * std::min<int64_t>(size, 1 << 20), int64_t(1) << 40);
  }
  return product;
}

static int64_t orElse(int64_t size, int64_t otherwise) {
  return ShapedType::isDynamic(size) ? otherwise : std::max<int64_t>(size, 1);
}

/// Chooses `cut`, `inner` and `step` for blocks of about `wanted` rows, and their tile. If possible a block
/// is of whole tiles: the processor computes the rows that the last tile of a block lacks.
static void cutRows(MatmulPlan &plan, const MatmulSizes &matmul, unsigned rowDims, int64_t wanted,
                    const VectorRegisters &registers) {
  ArrayRef<int64_t> sizes = matmul.m;
  plan.cut = 0;
  plan.inner = plan.step = 1;
  if (sizes.empty()) {
    plan.tile = chooseTile(registers, 1, matmul.n);
    return;
  }
  plan.cut = sizes.size() - 1;
  while (plan.cut > 0 && sizes.size() - plan.cut < rowDims && !ShapedType::isDynamic(sizes[plan.cut]) &&
         2 * plan.inner * sizes[plan.cut] <= wanted)
    plan.inner *= std::max<int64_t>(sizes[plan.cut--], 1);
  int64_t size = orElse(sizes[plan.cut], wanted);
  int64_t blocks = llvm::divideCeil(size, std::max<int64_t>(wanted / plan.inner, 1));
  plan.step = llvm::divideCeil(size, blocks);
  plan.tile = chooseTile(registers, plan.step * plan.inner, matmul.n);
  if (plan.inner == 1 && blocks > 1)
    plan.step = llvm::alignTo(plan.step, plan.tile.rows);
}

/// Returns the number of tasks, 1 for each dynamic size.
static int64_t countTasks(const MatmulPlan &plan, const MatmulSizes &sizes) {
  int64_t tasks = orElse(sizes.batch, 1);
  for (auto [position, size] : llvm::enumerate(sizes.m))
    if (position < plan.cut)
      tasks *= orElse(size, 1);
    else if (position == plan.cut)
      tasks *= llvm::divideCeil(orElse(size, 1), plan.step);
  return tasks;
}

/// Returns the panels of each of `parts` parts, 0 if that is all of them.
static int64_t cutPanels(int64_t panels, int64_t parts) {
  int64_t perTask = llvm::divideCeil(panels, parts);
  return perTask < panels ? perTask : 0;
}

/// Chooses the parts of a task, of about equal size.
static void cutParts(MatmulPlan &plan, int64_t columns) {
  int64_t most = std::max<int64_t>(kPartElements / (plan.step * plan.inner * plan.tile.columns), 1);
  plan.panelsPerPart = most;
  if (ShapedType::isDynamic(columns))
    return;
  int64_t panels = plan.panelsPerTask ? plan.panelsPerTask : llvm::divideCeil(columns, plan.tile.columns);
  plan.panelsPerPart = llvm::divideCeil(panels, llvm::divideCeil(panels, most));
}

/// Cuts rows, or columns if these make more tasks: a task then packs its part of one operand, which stays
/// in its cache, and the tasks share the other operand. Cuts both only if neither makes enough tasks.
static MatmulPlan chooseTasks(const MatmulSizes &sizes, unsigned rowDims, bool mayCutColumns,
                              bool onOneThread, const VectorRegisters &registers) {
  MatmulPlan plan;
  int64_t rows = multiplyKnown(sizes.m);
  int64_t work = multiplyKnown({sizes.batch, multiplyKnown(sizes.m), sizes.n, sizes.k});
  if (llvm::any_of(sizes.m, ShapedType::isDynamic))
    work = std::numeric_limits<int64_t>::max();
  plan.isParallel = work >= kParallelWork && !onOneThread;
  int64_t tasks = std::clamp<int64_t>(work / kTaskWork, 1, kManyTasks);
  int64_t perMatmul = llvm::divideCeil(tasks, orElse(sizes.batch, 1));
  int64_t wanted = kMostRows;
  if (plan.isParallel)
    wanted = std::clamp<int64_t>(rows / perMatmul, kLeastRows, kMostRows);
  cutRows(plan, sizes, rowDims, wanted, registers);

  int64_t enough = std::min(tasks, kEnoughTasks), byRows = countTasks(plan, sizes);
  if (!plan.isParallel || !mayCutColumns || byRows >= enough || ShapedType::isDynamic(sizes.n))
    return plan;
  MatmulPlan byColumns = plan;
  cutRows(byColumns, sizes, rowDims, kMostRows, registers);
  int64_t panels = llvm::divideCeil(orElse(sizes.n, 1), plan.tile.columns);
  bool isWhole =
      llvm::none_of(sizes.m, ShapedType::isDynamic) && countTasks(byColumns, sizes) == orElse(sizes.batch, 1);
  bool fits = !ShapedType::isDynamic(sizes.k) && sizes.k * plan.tile.columns <= kCacheElements;
  if (isWhole && fits && panels > byRows && panels * kFewerTasks >= enough) {
    byColumns.panelsPerTask = std::max<int64_t>(panels / enough, 1);
    return byColumns;
  }
  if (byRows * kFewerTasks < enough)
    plan.panelsPerTask = cutPanels(panels, llvm::divideCeil(enough, byRows));
  return plan;
}

MatmulPlan fp8::choosePlan(const MatmulSizes &sizes, unsigned rowDims, bool mayCutColumns, bool onOneThread,
                           int64_t scaleLength, const VectorRegisters &registers) {
  MatmulPlan plan = chooseTasks(sizes, rowDims, mayCutColumns, onOneThread, registers);
  cutParts(plan, sizes.n);
  if (ShapedType::isDynamic(sizes.k) || sizes.k < 2 * kSegment)
    return plan;
  int64_t block = scaleLength ? std::lcm(scaleLength, kSplitLength) : kSplitLength;
  int64_t segment = llvm::alignTo(llvm::divideCeil(sizes.k, sizes.k / kSegment), block);
  plan.segment = segment < sizes.k ? segment : 0;
  return plan;
}
