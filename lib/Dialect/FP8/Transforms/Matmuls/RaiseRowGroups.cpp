// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns masks that divide rows among groups into fp8.group_rows, where matmuls read them.

#include "EraseUnused.h"
#include "fp8/Analysis/RowGroups.h"
#include "fp8/Analysis/ValueNumbers.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_RAISEROWGROUPS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns whether `value` is read, by matmuls alone.
static bool feedsMatmuls(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), llvm::IsaPred<MatmulOp>);
}

static void raiseIn(func::FuncOp function) {
  SmallVector<std::pair<Operation *, RowGroups>> masks;
  function.walk([&](linalg::LinalgOp op) {
    if (op->getNumResults() != 1 || !feedsMatmuls(op->getResult(0)))
      return;
    if (std::optional<RowGroups> groups = matchRowMask(op->getResult(0)))
      masks.push_back({op, *groups});
  });
  if (masks.empty())
    return;
  // A framework computes the ends for each matmul again; equal ends become one value, which tells that both
  // operands of a weight gradient have the same groups.
  ValueNumbers numbers(function);
  DominanceInfo dominance(function);
  SmallVector<Value> known;
  IRRewriter rewriter(function.getContext());
  for (auto &[mask, groups] : masks) {
    auto *equal = llvm::find_if(known, [&, mask = mask, groups = groups](Value ends) {
      return numbers.get(ends) == numbers.get(groups.ends) && dominance.properlyDominates(ends, mask);
    });
    Value ends = equal == known.end() ? groups.ends : *equal;
    if (equal == known.end())
      known.push_back(ends);
    rewriter.setInsertionPoint(mask);
    auto type = cast<RankedTensorType>(mask->getResult(0).getType());
    Value grouped = GroupRowsOp::create(rewriter, mask->getLoc(), type, groups.rows, ends);
    rewriter.replaceAllUsesWith(mask->getResult(0), grouped);
    fp8::detail::eraseUnused(rewriter, mask);
  }
}

namespace {

struct RaiseRowGroups : fp8::impl::RaiseRowGroupsBase<RaiseRowGroups> {
  void runOnOperation() final {
    getOperation()->walk([](func::FuncOp function) { raiseIn(function); });
  }
};

} // namespace
