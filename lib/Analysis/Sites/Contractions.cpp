// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects the matmuls of a function, and how each reads its operands.

#include "fp8/Analysis/Sites/Contractions.h"
#include "fp8/Analysis/Rearrangement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <map>

using namespace mlir;
using namespace fp8;

/// The sum over the first dimensions of a matmul, if nothing else reads `result`, whose dimension i is
/// dimension dims[i] of the matmul; null if there is none. Adds the summed dimensions to `summed`.
static Value findSum(Value result, SmallVector<unsigned> dims, SmallVectorImpl<unsigned> &summed) {
  while (result.hasOneUse()) {
    Operation *user = *result.user_begin();
    if (std::optional<Rearrangement> view = matchRearrangement(user)) {
      if (view->input != result || !view->map.isPermutation())
        return nullptr;
      SmallVector<unsigned> moved(dims.size());
      for (auto [i, d] : llvm::enumerate(dims))
        moved[view->map.getDimPosition(i)] = d;
      dims = moved;
      result = user->getResult(0);
      continue;
    }
    auto sum = dyn_cast<linalg::LinalgOp>(user);
    if (!sum || sum.getNumDpsInputs() != 1 || sum.getDpsInputs()[0] != result || sum->getNumResults() != 1 ||
        sum.getNumReductionLoops() == 0 ||
        !isa_and_present<arith::AddFOp>(sum.getBlock()->getTerminator()->getOperand(0).getDefiningOp()))
      return nullptr;
    SmallVector<AffineMap> maps = sum.getIndexingMapsArray();
    if (!maps[0].isPermutation())
      return nullptr;
    for (auto [i, d] : llvm::enumerate(dims))
      if (!maps[1].isFunctionOfDim(maps[0].getDimPosition(i)))
        summed.push_back(d);
    return user->getResult(0);
  }
  return nullptr;
}

/// Moves batch dimensions that the program sums over to the K dimensions.
static Value contractSummedBatches(MatmulOp op, ContractionDims &dims) {
  AffineMap map = op.getIndexingMapsArray()[2];
  SmallVector<unsigned> resultDims, summed;
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    resultDims.push_back(map.getDimPosition(i));
  Value sum = dims.batch.empty() ? Value() : findSum(op->getResult(0), resultDims, summed);
  if (!sum || !llvm::all_of(summed, [&](unsigned d) { return llvm::is_contained(dims.batch, d); }))
    return op->getResult(0);
  llvm::erase_if(dims.batch, [&](unsigned d) { return llvm::is_contained(summed, d); });
  llvm::append_range(dims.k, summed);
  return sum;
}

static TensorUse resolveOperand(TensorIdentity &tensors, MatmulOp op, const ContractionDims &dims,
                                unsigned operand) {
  AffineMap map = op.getIndexingMapsArray()[operand];
  DimUses uses;
  for (unsigned i = 0; i < map.getNumResults(); ++i) {
    unsigned d = map.getDimPosition(i);
    bool batch = llvm::is_contained(dims.batch, d), contracted = llvm::is_contained(dims.k, d);
    uses.push_back(batch ? kBatch : contracted ? kContracted : kFree);
  }
  return tensors.resolve(op->getOperand(operand), std::move(uses), op);
}

std::vector<Contraction> fp8::collectContractions(FunctionOpInterface function) {
  std::vector<Contraction> contractions;
  TensorIdentity tensors(function);
  std::map<std::pair<TensorUse, TensorUse>, unsigned> firsts;
  function->walk<WalkOrder::PreOrder>([&](MatmulOp op) {
    if (!isa<RankedTensorType>(op.getInit().getType()))
      return;
    ContractionDims dims = op.getContractionDims();
    Value result = contractSummedBatches(op, dims);
    TensorUse lhs = resolveOperand(tensors, op, dims, 0), rhs = resolveOperand(tensors, op, dims, 1);
    unsigned first = firsts.try_emplace(std::minmax(lhs, rhs), contractions.size()).first->second;
    contractions.push_back({op, result, {lhs, rhs}, parseNameStack(op.getLoc()), first});
  });
  return contractions;
}

static bool areOpposite(uint8_t x, uint8_t y) {
  return (x & kBatch) == (y & kBatch) && bool(x & kFree) == bool(y & kContracted) &&
         bool(x & kContracted) == bool(y & kFree);
}

bool fp8::haveOppositeUses(const TensorUse &a, const TensorUse &b) {
  return a.tensor == b.tensor && a.uses.size() == b.uses.size() &&
         llvm::all_of(llvm::zip(a.uses, b.uses),
                      [](auto pair) { return areOpposite(std::get<0>(pair), std::get<1>(pair)); });
}

std::optional<GroupUse> fp8::matchGroupedUses(const TensorUse &forward, const TensorUse &backward) {
  if (forward.tensor != backward.tensor || forward.uses.size() != backward.uses.size())
    return std::nullopt;
  bool summed = false, kept = false;
  for (auto [x, y] : llvm::zip(forward.uses, backward.uses)) {
    if (areOpposite(x, y))
      continue;
    if (x != kContracted || (y != kContracted && y != kBatch))
      return std::nullopt;
    (y == kContracted ? summed : kept) = true;
  }
  if (summed == kept)
    return std::nullopt;
  return summed ? GroupUse::summed : GroupUse::kept;
}
