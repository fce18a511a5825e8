// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls by wgmma: groups of four warps multiply 64 own rows.

#include "../TensorCores/WgmmaInstruction.h"
#include "AttentionKernel.h"

using namespace mlir;
using namespace fp8;

/// Returns the products of the own rows and the rows of a stage: scores and, in the backward pass, gradients.
SmallVector<SmallVector<Value>> AttentionKernel::multiplyGroupScores(Expr stage) {
  SmallVector<Value> started;
  fenceGroup(b);
  for (auto [own, streamed] : llvm::zip(tiles.own, tiles.streamed)) {
    SmallVector<std::pair<Expr, Expr>> descriptors;
    Expr lhs = describeMatrix(b, b.at(shared, b.warp() / 4 * (64 * own.pitch()) + own.start)),
         rhs = describeMatrix(b, b.at(shared, stage + streamed.start));
    for (int64_t column = 0; column < own.paddedColumns(); column += 16) {
      int64_t inBlock = column % 64 * 2;
      descriptors.emplace_back(lhs + double((column / 64 * own.blockBytes() + inBlock) / 16),
                               rhs + double((column / 64 * streamed.blockBytes() + inBlock) / 16));
    }
    started.push_back(startProduct(b, type, plan.step, descriptors));
  }
  waitForGroup(b);
  return llvm::map_to_vector(started, [&](Value sums) { return tieToWait(b, unpackSums(b, sums)); });
}

/// Adds, for all results, the products of their values and the rows of a stage.
void AttentionKernel::accumulateByGroup(ArrayRef<Values> values, Expr stage, MutableArrayRef<Value> sums) {
  Values held;
  for (const AttentionResult &result : plan.results)
    for (unsigned cell = 0; cell < values[result.code].size(); cell += 2)
      held.push_back(pack(values[result.code], cell));
  int64_t numWords = held.size(), numSums = 0;
  for (const AttentionResult &result : plan.results)
    numSums += countSums(result);
  llvm::append_range(held, sums.take_front(numSums));
  held = holdInRegisters(b, held);
  ArrayRef<Value> words = ArrayRef(held).take_front(numWords);
  MutableArrayRef<Value> all = MutableArrayRef(held).drop_front(numWords), rest = all;
  fenceGroup(b);
  for (const AttentionResult &result : plan.results) {
    const Tile &streamed = tiles.streamed[result.streamed];
    MutableArrayRef<Value> own = rest.take_front(countSums(result));
    Expr rhs = describeMatrix(b, b.at(shared, stage + streamed.start), streamed.blockBytes());
    for (int64_t row = 0; row < plan.step; row += 16) {
      Expr rows = rhs + double(row * streamed.pitch() / 16);
      llvm::copy(addProduct(b, type, words.take_front(4), rows, own), own.begin());
      words = words.drop_front(4);
    }
    rest = rest.drop_front(own.size());
  }
  waitForGroup(b);
  llvm::copy(tieToWait(b, all), sums.begin());
}
