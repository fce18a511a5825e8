// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes several rows of a kernel at a time where a row has sums or extremes, as norms and softmaxes have:
// the additions of one sum wait for each other, those of several rows do not. All other code runs row by row,
// in a loop.

#include "fp8/Conversion/TakingLoop.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fp8 {
#define GEN_PASS_DEF_INTERLEAVEROWS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// A sum of f32 takes three or four clocks, and two start in each.
static constexpr int64_t kMostRows = 8;
/// Groups of rows that are left for threads.
static constexpr int64_t kLeastGroups = 16;

/// Returns whether `op` is a loop of the same length for each of the `rows` that does nothing but add to
/// elements of memory, or take their maximum or minimum.
static bool isChain(Operation *op, scf::ParallelOp rows) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop || loop.getNumResults() != 0)
    return false;
  for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    if (!getConstantIntValue(bound) && rows.getRegion().isAncestor(bound.getParentRegion()))
      return false;
  return llvm::all_of(loop.getBody()->without_terminator(), [&](Operation &inner) {
    auto store = dyn_cast<memref::StoreOp>(inner);
    return (store && !llvm::is_contained(store.getIndices(), loop.getInductionVar())) ||
           isa<memref::LoadOp, arith::AddFOp, arith::MaximumFOp, arith::MinimumFOp>(inner);
  });
}

/// Returns whether `op` can be repeated wherever its results are needed: views of memory and indices.
static bool isRepeatable(Operation *op) {
  return isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getResultTypes(), llvm::IsaPred<MemRefType, IndexType>);
}

namespace {

/// Rewrites a parallel loop over rows so that an iteration computes `count` of them. The body is cut into
/// runs of operations. A chain (see isChain) becomes one loop for all rows; any other run becomes a
/// loop over the rows.
class RowInterleaver {
public:
  RowInterleaver(RewriterBase &rewriter, scf::ParallelOp rows)
      : rewriter(rewriter), rows(rows), loc(rows.getLoc()), row(rows.getInductionVars().back()) {}

  void run();

private:
  using Run = SmallVector<Operation *>;

  SmallVector<Run> findRuns();
  bool findScalars(ArrayRef<Run> runs);
  int64_t chooseCount();
  static int64_t getStride(MemRefType type) {
    return llvm::alignTo(type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8), 64);
  }
  void expandBuffers();
  IRMapping startRow(Value index);
  Value find(Value value, Value index, IRMapping &mapping);
  void findOperands(Operation *op, Value index, IRMapping &mapping);
  void runInTurn(ArrayRef<Operation *> ops);
  void runTogether(scf::ForOp chain);

  RewriterBase &rewriter;
  scf::ParallelOp rows;
  Location loc;
  Value row;         ///< the index that differs between the rows of an iteration
  int64_t count = 0; ///< rows of an iteration
  SmallVector<memref::AllocaOp> allocas;
  llvm::DenseMap<Operation *, Value> buffers; ///< memory of an alloca for all rows
  llvm::MapVector<Value, Value> scalars;      ///< results that later runs need, with memory for all rows
};

} // namespace

/// Cuts the body into runs; empty where it holds something unknown or no chain.
SmallVector<RowInterleaver::Run> RowInterleaver::findRuns() {
  SmallVector<Run> runs;
  bool wasChain = true, hasChain = false;
  for (Operation &op : rows.getBody()->without_terminator()) {
    if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
      MemRefType type = alloca.getType();
      if (!type.hasStaticShape() || !type.getLayout().isIdentity() || !type.getElementType().isIntOrFloat())
        return {};
      allocas.push_back(alloca);
      continue;
    }
    if (isRepeatable(&op))
      continue;
    bool chain = isChain(&op, rows);
    if (chain || wasChain)
      runs.emplace_back();
    runs.back().push_back(&op);
    wasChain = chain;
    hasChain |= chain;
  }
  return hasChain ? runs : SmallVector<Run>();
}

/// Finds the results of a run that others need; false where one cannot be kept in memory.
bool RowInterleaver::findScalars(ArrayRef<Run> runs) {
  llvm::DenseMap<Operation *, const Run *> runOf;
  for (const Run &run : runs)
    for (Operation *op : run)
      runOf[op] = &run;
  for (const Run &run : runs)
    for (Operation *op : run)
      for (Value result : op->getResults()) {
        bool isNeeded = llvm::any_of(result.getUsers(), [&](Operation *user) {
          return runOf.lookup(rows.getBody()->findAncestorOpInBlock(*user)) != &run;
        });
        if (!isNeeded)
          continue;
        if (!result.getType().isIntOrIndexOrFloat())
          return false;
        scalars[result] = Value();
      }
  return true;
}

/// Returns how many rows an iteration can compute; 1 where it should stay as it is.
int64_t RowInterleaver::chooseCount() {
  std::optional<APInt> size;
  int64_t all = 1;
  for (auto [lower, upper, step] :
       llvm::zip_equal(rows.getLowerBound(), rows.getUpperBound(), rows.getStep())) {
    std::optional<int64_t> end = getConstantIntValue(upper);
    if (getConstantIntValue(lower) != 0 || !end || getConstantIntValue(step) != 1)
      return 1;
    all *= *end;
  }
  int64_t groups = isInTask(rows) ? 1 : kLeastGroups;
  int64_t bytes = 0, last = *getConstantIntValue(rows.getUpperBound().back());
  for (memref::AllocaOp alloca : allocas)
    bytes += getStride(alloca.getType());
  for (int64_t candidate = kMostRows; candidate > 1; --candidate)
    if (last % candidate == 0 && all / candidate >= groups &&
        bytes * candidate <= getTarget(rows).getMaxRowBytes())
      return candidate;
  return 1;
}

/// Allocates memory for all rows. It is bytes, of which a row's part is a `memref.view` of the same type as
/// the `memref.alloca` for one row.
void RowInterleaver::expandBuffers() {
  rewriter.setInsertionPointToStart(rows.getBody());
  IntegerAttr alignment = rewriter.getI64IntegerAttr(getTarget(rows).getBufferAlignment());
  for (memref::AllocaOp alloca : allocas) {
    auto type = MemRefType::get({count * getStride(alloca.getType())}, rewriter.getI8Type());
    buffers[alloca] = memref::AllocaOp::create(rewriter, alloca.getLoc(), type, alignment);
  }
  for (auto &[value, memory] : scalars)
    memory = memref::AllocaOp::create(rewriter, value.getLoc(), MemRefType::get({count}, value.getType()),
                                      alignment);
}

/// Returns the mapping of values for the row with number `index` of the iteration.
IRMapping RowInterleaver::startRow(Value index) {
  IRMapping mapping;
  mapping.map(row, arith::AddIOp::create(rewriter, loc, row, index));
  return mapping;
}

/// Returns what `value` is in the row with number `index`.
Value RowInterleaver::find(Value value, Value index, IRMapping &mapping) {
  Operation *op = value.getDefiningOp();
  if (mapping.contains(value) || !op || op->getBlock() != rows.getBody())
    return mapping.lookupOrDefault(value);
  if (Value bytes = buffers.lookup(op)) {
    auto type = cast<MemRefType>(value.getType());
    Value stride = arith::ConstantIndexOp::create(rewriter, loc, getStride(type));
    Value shift = arith::MulIOp::create(rewriter, loc, index, stride);
    mapping.map(value,
                memref::ViewOp::create(rewriter, op->getLoc(), type, bytes, shift, ValueRange()).getResult());
  } else if (auto *scalar = scalars.find(value); scalar != scalars.end()) {
    mapping.map(value, memref::LoadOp::create(rewriter, op->getLoc(), scalar->second, index).getResult());
  } else {
    findOperands(op, index, mapping);
    rewriter.clone(*op, mapping);
  }
  return mapping.lookup(value);
}

/// Finds everything from the body that `op` and the operations in it need.
void RowInterleaver::findOperands(Operation *op, Value index, IRMapping &mapping) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      (void)find(operand, index, mapping);
  });
}

/// Creates a loop that runs `ops` for one row after the other.
void RowInterleaver::runInTurn(ArrayRef<Operation *> ops) {
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0),
        one = arith::ConstantIndexOp::create(rewriter, loc, 1),
        end = arith::ConstantIndexOp::create(rewriter, loc, count);
  auto loop = scf::ForOp::create(rewriter, loc, zero, end, one);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop.getBody()->getTerminator());
  Value index = loop.getInductionVar();
  IRMapping mapping = startRow(index);
  for (Operation *op : ops) {
    findOperands(op, index, mapping);
    rewriter.clone(*op, mapping);
    for (Value result : op->getResults())
      if (Value memory = scalars.lookup(result))
        memref::StoreOp::create(rewriter, loc, mapping.lookup(result), memory, index);
  }
}

/// Creates one loop that does `chain` for all rows.
void RowInterleaver::runTogether(scf::ForOp chain) {
  SmallVector<IRMapping> mappings;
  for (int64_t i = 0; i < count; ++i) {
    Value index = arith::ConstantIndexOp::create(rewriter, loc, i);
    findOperands(chain, index, mappings.emplace_back(startRow(index)));
  }
  auto joined = cast<scf::ForOp>(rewriter.clone(*chain, mappings.front()));
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(joined.getBody()->getTerminator());
  for (IRMapping &mapping : llvm::drop_begin(mappings)) {
    mapping.map(chain.getInductionVar(), joined.getInductionVar());
    for (Operation &op : chain.getBody()->without_terminator())
      rewriter.clone(op, mapping);
  }
}

void RowInterleaver::run() {
  SmallVector<Run> runs = findRuns();
  if (runs.empty() || rows.getNumResults() != 0 || !findScalars(runs))
    return;
  count = chooseCount();
  if (count == 1)
    return;
  SmallVector<Operation *> old =
      llvm::map_to_vector(rows.getBody()->without_terminator(), [](Operation &op) { return &op; });
  expandBuffers();
  rewriter.setInsertionPoint(rows.getBody()->getTerminator());
  for (const Run &run : runs)
    if (isChain(run.front(), rows))
      runTogether(cast<scf::ForOp>(run.front()));
    else
      runInTurn(run);
  for (Operation *op : llvm::reverse(old))
    rewriter.eraseOp(op);
  rewriter.setInsertionPoint(rows);
  rows.getStepMutable()[rows.getNumLoops() - 1].set(arith::ConstantIndexOp::create(rewriter, loc, count));
}

namespace {
struct InterleaveRowsPass : public fp8::impl::InterleaveRowsBase<InterleaveRowsPass> {
  void runOnOperation() override {
    SmallVector<scf::ParallelOp> kernels;
    getOperation().walk([&](scf::ParallelOp rows) { kernels.push_back(rows); });
    IRRewriter rewriter(&getContext());
    for (scf::ParallelOp rows : kernels)
      RowInterleaver(rewriter, rows).run();
  }
};
} // namespace
