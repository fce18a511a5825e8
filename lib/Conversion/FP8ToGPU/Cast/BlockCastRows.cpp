// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel of casts with a scale per row alone: one to eight warps take a row, keep its elements in
// registers until they know its amax, and cast them.

#include "BlockCastKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

/// The largest number of chunks of a row that a thread keeps.
static constexpr int64_t kMaxChunks = 8;

/// Returns the number of threads that take a row: as many as have four chunks each.
static int64_t countThreadsOfRow(const TileSpace &space) {
  int64_t chunks = llvm::divideCeil(space.columns, kChunk);
  return std::clamp<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(chunks, 4)), 32, kTileThreads);
}

bool fp8::canCastRows(const TileWork &work) {
  const TileSpace &space = work.space;
  if (work.scalings.size() != 1 || space.batches != 1 || space.isEmpty())
    return false;
  const TileScaling &scaling = work.scalings[0];
  return (scaling.rows == 1 || space.rows == 1) && scaling.spansColumns && scaling.data &&
         !scaling.transposed &&
         llvm::none_of(work.extras, [](const TileExtra &extra) { return extra.isSum; }) &&
         space.columns <= kTileThreads * kMaxChunks * kChunk;
}

namespace {

class BlockRows : private BlockKernel {
public:
  BlockRows(KernelBuilder &b, const TileWork &work)
      : BlockKernel(b, work), threads(countThreadsOfRow(space)),
        row(b.block(0) * (kTileThreads / threads) + thread / threads) {}
  void build();

private:
  std::optional<Expr> enterChunk(int64_t i);
  SmallVector<Value> measureChunk(Expr &amax);
  Expr combine(Expr amax);
  void castChunk(ArrayRef<Value> held, Expr scale);

  int64_t threads; ///< of a row
  Expr row;
};

} // namespace

/// Goes to chunk number `i` of the thread. Returns whether it is in the tensor; nullopt if all are.
std::optional<Expr> BlockRows::enterChunk(int64_t i) {
  firstColumn = (thread % threads + i * threads) * kChunk;
  std::optional<Expr> live;
  if (!space.hasMultipleOfRows(kTileThreads / threads))
    live = row < rows;
  if ((i + 1) * threads * kChunk > space.columns)
    live = both(live, firstColumn < space.columns);
  return live;
}

/// Computes a chunk and returns its elements; raises `amax` to theirs.
SmallVector<Value> BlockRows::measureChunk(Expr &amax) {
  SmallVector<Chunk> yielded = runRegion(row, loadRow(row));
  if (!work.extras.empty())
    storeExtras(row, yielded, {});
  for (auto [j, value] : llvm::enumerate(widenChunk(yielded[0]))) {
    Expr magnitude = abs(b.expr(value));
    std::optional<Expr> live = isColumn(firstColumn + j);
    amax = larger(amax, live ? select(*live, magnitude, 0) : magnitude);
  }
  return hold(yielded[0]);
}

/// Returns the largest amax of the threads of a row.
Expr BlockRows::combine(Expr amax) {
  for (int64_t bit = 16; bit > 0; bit /= 2)
    amax = larger(amax, b.fromLane(amax, bit));
  int64_t warps = threads / 32;
  if (warps == 1)
    return amax;
  Value shared = b.staticShared(MemRefType::get({kTileThreads / 32}, b.getF32Type()));
  b.when(b.lane() == 0, [&] { memref::StoreOp::create(b, amax.getValue(), shared, toIndex(b.warp())); });
  b.barrier();
  Expr first = b.warp() / warps * warps;
  for (int64_t i = 0; i < warps; ++i)
    amax = larger(amax, b.expr(memref::LoadOp::create(b, shared, toIndex(first + i))));
  return amax;
}

void BlockRows::castChunk(ArrayRef<Value> held, Expr scale) {
  QuantizeBlocksOp op = work.blocks;
  Words words = encode(row, widenHeld(held), SmallVector<Expr>(kChunk, scale), op.getFormat());
  storeWordsOfRow(*work.scalings[0].data, row, words);
}

void BlockRows::build() {
  int64_t chunks = llvm::divideCeil(space.columns, threads * kChunk);
  Expr amax = b.real(0.0f);
  SmallVector<SmallVector<Value>> held;
  for (int64_t i = 0; i < chunks; ++i) {
    auto compute = [&]() -> SmallVector<Value> {
      Expr raised = amax;
      SmallVector<Value> values = measureChunk(raised);
      values.push_back(raised.getValue());
      return values;
    };
    auto skip = [&]() -> SmallVector<Value> {
      SmallVector<Value> values(countHeld(), zeroHeld());
      values.push_back(amax.getValue());
      return values;
    };
    std::optional<Expr> live = enterChunk(i);
    held.push_back(live ? ifElse(*live, compute, skip) : compute());
    amax = b.expr(held.back().pop_back_val());
  }
  Expr scale = buildScale(combine(amax));
  b.when((thread % threads == 0) & (row < rows),
         [&] { storeScaleInv(work.scalings[0], scale, row, b.number(0)); });
  for (int64_t i = 0; i < chunks; ++i)
    when(enterChunk(i), [&] { castChunk(held[i], scale); });
}

void fp8::launchBlockRows(OpBuilder &builder, LoweringContext &context, TileWork &work) {
  Value blocks = countRowBlocks(builder, work, kTileThreads / countThreadsOfRow(work.space));
  launchWork(builder, context, work,
             {"quantize_by_rows", blocks, kTileThreads,
              /*partsOfSums=*/constantIndex(builder, work.loc, 1)},
             [&](KernelBuilder &b) { BlockRows(b, work).build(); });
}
