// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers fp8.update_amax_history to one launch that reads and writes the history once. A block of 256 threads
// computes 32 columns: its 8 warps load a chunk of rows into shared memory, the first warp folds the chunk in
// the order of the rows with the recipe's code, then all of them write the rows one place further up.

#include "Kernel/KernelArguments.h"
#include "Lowering.h"
#include "fp8/Dialect/FP8/IR/ScalarBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

static constexpr int64_t kColumns = 32;   ///< of a block, one per lane of a warp
static constexpr int64_t kWarps = 8;      ///< rows that a block loads at once
static constexpr int64_t kMaxChunk = 128; ///< rows in shared memory

/// Returns a constant of the gpu.module that holds `values`: an equal one, or a new one.
static Value buildTable(KernelBuilder &b, DenseElementsAttr values) {
  auto module = b.getKernel()->getParentOfType<gpu::GPUModuleOp>();
  auto type = MemRefType::get(values.getType().getShape(), values.getElementType(),
                              MemRefLayoutAttrInterface(), b.getI64IntegerAttr(kGlobalSpace));
  for (auto global : module.getOps<memref::GlobalOp>())
    if (global.getConstant() && global.getInitialValue() == values && global.getType() == type)
      return memref::GetGlobalOp::create(b, type, global.getSymName());
  std::string name;
  for (unsigned i = 0; name.empty() || module.lookupSymbol(name); ++i)
    name = ("table_" + Twine(i)).str();
  OpBuilder outside = OpBuilder::atBlockBegin(module.getBody());
  memref::GlobalOp::create(outside, b.getLoc(), name, b.getStringAttr("private"), type, values,
                           /*constant=*/true,
                           /*alignment=*/IntegerAttr());
  return memref::GetGlobalOp::create(b, type, name);
}

namespace {

/// Memory of f32 with a stride of its rows and of its elements, in elements.
struct Buffer {
  Value start;
  int64_t rowStride, stride;
};

/// Writes the code of one update.
class HistoryKernel {
public:
  HistoryKernel(KernelBuilder &b, UpdateAmaxHistoryOp op);
  void build();

private:
  void buildTables();
  void collectCurrent();
  Value combineEntries(Value start, function_ref<Value(Expr entry, Value known)> combine);
  Value foldChunk(Expr firstRow, Value soFar);
  void finish(Value soFar);

  Value countRecorded(Value amax) { return recipe.buildRecorded(b, loc, amax); }
  /// The value to use for an amax that an earlier cast left in row 0.
  Value countStaged(Value amax) {
    Value isSome = s.compare(arith::CmpFPredicate::UNE, amax, s.real(0.0f));
    return countRecorded(s.select(isSome, amax, s.real(recipe.getNoAmax())));
  }
  Expr hasRun() {
    Value current = memref::LoadOp::create(b, currents, toIndex(lane));
    return b.expr(s.compare(arith::CmpFPredicate::UNE, current, s.real(recipe.getNoAmax())));
  }
  Value getAddress(const Buffer &buffer, Expr row, Expr element) {
    Expr position = widen(row) * buffer.rowStride + widen(element) * buffer.stride;
    return b.at(buffer.start, position * 4);
  }
  Value load(const Buffer &buffer, Expr row, Expr element) {
    return b.load(b.getF32Type(), getAddress(buffer, row, element)).getValue();
  }
  void store(Value value, const Buffer &buffer, Expr row, Expr element) {
    b.store(b.expr(value), getAddress(buffer, row, element));
  }
  Buffer getBuffer(unsigned argument, Value memref);
  Value toIndex(Expr value) { return arith::IndexCastUIOp::create(b, b.getIndexType(), value.getValue()); }

  KernelBuilder &b;
  UpdateAmaxHistoryOp op;
  RecipeAttrInterface recipe;
  Location loc;
  ScalarBuilder s;
  int64_t rows, columns, chunk;
  Buffer amaxes, scales, history;
  Expr lane = 0, warp = 0, column = 0;
  Value largest, firstEntry, entries; ///< tables: fp8_max per column, its entries among the amaxes
  Value currents, rowsOfChunk;        ///< shared memory
};

} // namespace

/// The arguments of the kernel, in this order.
static SmallVector<Value> listOperands(UpdateAmaxHistoryOp op) {
  return {op.getAmaxes(), op.getScale(), op.getHistory()};
}

HistoryKernel::HistoryKernel(KernelBuilder &b, UpdateAmaxHistoryOp op)
    : b(b), op(op), recipe(op.getRecipe()), loc(op.getLoc()), s(b, loc) {
  auto type = cast<MemRefType>(op.getHistory().getType());
  rows = type.getDimSize(0);
  columns = type.getDimSize(1);
  chunk = std::clamp<int64_t>(llvm::alignTo(rows - 1, kWarps), kWarps, kMaxChunk);
  amaxes = getBuffer(0, op.getAmaxes());
  scales = getBuffer(1, op.getScale());
  history = getBuffer(2, op.getHistory());
  lane = b.lane();
  warp = b.warp();
  column = b.block(0) * kColumns + lane;
  buildTables();
  currents = b.staticShared(MemRefType::get({kColumns}, b.getF32Type()));
  rowsOfChunk = b.staticShared(MemRefType::get({kMaxChunk, kColumns}, b.getF32Type()));
}

Buffer HistoryKernel::getBuffer(unsigned argument, Value memref) {
  auto [strides, offset] = cast<MemRefType>(memref.getType()).getStridesAndOffset();
  return {b.globalPointer(argument), strides.size() == 2 ? strides[0] : 0, strides.back()};
}

/// The tables have a place for every lane of the last block: its columns beyond the last one have no entry.
void HistoryKernel::buildTables() {
  int64_t places = llvm::alignTo(columns, kColumns);
  SmallVector<float> maxima(places, 1.0f);
  SmallVector<SmallVector<int32_t>> byColumn(places);
  for (auto [i, column, format] : llvm::enumerate(op.getColumns(), op.getFormats())) {
    maxima[column] = getFP8Max(cast<FloatType>(cast<TypeAttr>(format).getValue()));
    byColumn[column].push_back(i);
  }
  SmallVector<int32_t> first = {0}, all;
  for (ArrayRef<int32_t> list : byColumn) {
    llvm::append_range(all, list);
    first.push_back(all.size());
  }
  if (all.empty())
    all.push_back(0);
  auto table = [&](auto values, Type type) {
    auto shape = RankedTensorType::get({static_cast<int64_t>(values.size())}, type);
    return buildTable(b, DenseElementsAttr::get(shape, ArrayRef(values)));
  };
  largest = table(maxima, b.getF32Type());
  firstEntry = table(first, b.getI32Type());
  entries = table(all, b.getI32Type());
}

void HistoryKernel::build() {
  b.when(warp == 0, [&] { collectCurrent(); });
  b.barrier();
  Value current = memref::LoadOp::create(b, currents, toIndex(lane));
  Value soFar = recipe.buildAmaxStart(b, loc, current);
  if (rows > 1) {
    int64_t chunks = llvm::divideCeil(rows - 1, chunk);
    soFar =
        b.loop(b.number(0), b.number(chunks), soFar, [&](Expr i, ValueRange carried) -> SmallVector<Value> {
          return {foldChunk(i * chunk + 1, carried[0])};
        })[0];
  }
  if (recipe.readsHistory())
    soFar = recipe.buildAmaxEnd(b, loc, soFar, current);
  b.when((warp == 0) & hasRun() & (column < columns), [&] { finish(soFar); });
}

/// Runs `combine` for every amax of the thread's column, in order.
Value HistoryKernel::combineEntries(Value start, function_ref<Value(Expr, Value)> combine) {
  Expr first = b.expr(memref::LoadOp::create(b, firstEntry, toIndex(column)));
  Expr end = b.expr(memref::LoadOp::create(b, firstEntry, toIndex(column + 1)));
  return b.loop(first, end, start, [&](Expr i, ValueRange carried) -> SmallVector<Value> {
    Expr entry = b.expr(memref::LoadOp::create(b, entries, toIndex(i)));
    return {combine(entry, carried[0])};
  })[0];
}

/// Writes the current amax of the thread's column to shared memory, as fp8-expand-scaling computes it.
void HistoryKernel::collectCurrent() {
  Value recorded = combineEntries(s.real(recipe.getNoAmax()), [&](Expr entry, Value known) -> Value {
    return arith::MaximumFOp::create(b, known, load(amaxes, b.number(0), entry));
  });
  Value current = combineEntries(recorded, [&](Expr, Value known) -> Value {
    Value staged = countStaged(load(history, b.number(0), column));
    return arith::MaximumFOp::create(b, staged, countRecorded(known));
  });
  memref::StoreOp::create(b, current, currents, toIndex(lane));
}

/// Loads a chunk of rows, folds it into `soFar`, and moves its rows up by one.
Value HistoryKernel::foldChunk(Expr firstRow, Value soFar) {
  // Rows and columns beyond the history read as the last ones.
  for (int64_t i = 0; i < chunk; i += kWarps) {
    Value value = load(history, atMost(firstRow + warp + i, rows - 1), atMost(column, columns - 1));
    memref::StoreOp::create(b, value, rowsOfChunk, ValueRange{toIndex(warp + i), toIndex(lane)});
  }
  b.barrier();
  if (recipe.readsHistory()) {
    // Warps other than the first have nothing to fold.
    Expr count = select(warp == 0, atMost(b.number(rows) - firstRow, chunk), 0);
    soFar = b.loop(b.number(0), count, soFar, [&](Expr i, ValueRange carried) -> SmallVector<Value> {
      Value past = memref::LoadOp::create(b, rowsOfChunk, ValueRange{toIndex(i), toIndex(lane)});
      return {recipe.buildAmaxStep(b, loc, carried[0], recipe.buildPast(b, loc, past))};
    })[0];
  }
  b.when(hasRun() & (column < columns), [&] {
    for (int64_t i = 0; i < chunk; i += kWarps) {
      Expr row = firstRow + warp + i;
      b.when((row < rows) & (row > 1), [&] {
        Value value = memref::LoadOp::create(b, rowsOfChunk, ValueRange{toIndex(warp + i), toIndex(lane)});
        store(value, history, row - 1, column);
      });
    }
  });
  b.barrier();
  return soFar;
}

/// Writes the scale, the newest row, and the empty row 0.
void HistoryKernel::finish(Value amax) {
  Value current = memref::LoadOp::create(b, currents, toIndex(lane));
  Value fp8Max = memref::LoadOp::create(b, largest, toIndex(column));
  ScaleInputs inputs{amax, fp8Max, load(scales, b.number(0), column), FloatType()};
  store(recipe.buildScale(b, loc, op, inputs), scales, b.number(0), column);
  if (rows > 1)
    store(recipe.buildHistoryEntry(b, loc, current, amax), history, b.number(rows - 1), column);
  store(s.real(0.0f), history, b.number(0), column);
}

bool fp8::lowerUpdateAmaxHistory(OpBuilder &builder, UpdateAmaxHistoryOp op, LoweringContext &context) {
  RecipeAttrInterface recipe = op.getRecipe();
  auto isStatic = [](Value value) {
    auto type = cast<MemRefType>(value.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    return type.hasStaticShape() && succeeded(type.getStridesAndOffset(strides, offset)) &&
           ShapedType::isStaticShape(strides);
  };
  // A user's functions may be any code, which generic kernels can hold.
  if (recipe.readsWholeColumn() || !recipe.getFunctions().empty() ||
      !llvm::all_of(listOperands(op), isStatic))
    return false;
  Location loc = op.getLoc();
  KernelArguments arguments(builder, loc);
  for (Value operand : listOperands(op))
    arguments.addPointer(operand);
  KernelSpec spec;
  spec.name = "update_amax_history";
  spec.kind = "history";
  spec.arguments = arguments.types;
  spec.threads = kColumns * kWarps;
  func::FuncOp kernel =
      context.kernels.build(loc, spec, [&](KernelBuilder &b) { HistoryKernel(b, op).build(); });
  int64_t columns = cast<MemRefType>(op.getHistory().getType()).getDimSize(1);
  Value blocks = arith::ConstantIndexOp::create(builder, loc, llvm::divideCeil(columns, kColumns));
  launchKernel(builder, loc, kernel, blocks, arguments.operands);
  return true;
}
