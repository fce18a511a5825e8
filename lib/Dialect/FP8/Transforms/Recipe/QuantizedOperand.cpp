// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of a matmul's operand that is cast: the tensor behind it, and the blocks that share a scale.

#include "RecipeRewriter.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Dialect/FP8/IR/GroupedMatmulSupport.h"

using namespace mlir;
using namespace fp8;

DequantizeOp QuantizedOperand::ownBytes() const {
  return getViewSource(value()).getDefiningOp<DequantizeOp>();
}

std::optional<GroupedMatmul> QuantizedOperand::grouped() const {
  std::optional<GroupedMatmul> match =
      matchGroupedMatmul(matmul.getLhs(), matmul.getRhs(), matmul.getIndexingMapsArray());
  if (!match || matmul.readsInit())
    return std::nullopt;
  GroupedDims grouped = *inferGroupedDims(match->maps);
  SmallVector<AffineMap> maps = dropGroup(match->maps, grouped.group);
  ContractionDims dims = *inferContractionDims(maps);
  TensorKind kinds[] = {*matmul.getLhsKind(), *matmul.getRhsKind()};
  for (auto [map, whole, kind] : llvm::zip(maps, match->maps, kinds)) {
    SmallVector<bool> contracted;
    for (AffineExpr result : map.getResults())
      contracted.push_back(cast<AffineDimExpr>(result).getPosition() == dims.k.front());
    GroupedOperand operand{kind, contracted, /*hasRows=*/!whole.isFunctionOfDim(grouped.group),
                           /*areRowsSummed=*/grouped.divided == 2};
    // With one scale for the whole tensor, a matmul is grouped after its rows are cast.
    if (recipe.getBlockShape(kind, contracted).empty() || !canGroupScales(getTarget(matmul), recipe, operand))
      return std::nullopt;
  }
  return match;
}

Value QuantizedOperand::tensor() const {
  std::optional<GroupedMatmul> match = grouped();
  return !match ? value() : index == 0 ? match->lhs : match->rhs;
}

AffineMap QuantizedOperand::map() const {
  std::optional<GroupedMatmul> match = grouped();
  return match ? match->maps[index] : matmul.getIndexingMapsArray()[index];
}

ContractionDims QuantizedOperand::dims() const {
  ContractionDims dims = matmul.getContractionDims();
  if (std::optional<GroupedMatmul> match = grouped()) {
    unsigned group = inferGroupedDims(match->maps)->group;
    llvm::erase(dims.k, group);
    dims.batch = {group};
  }
  return dims;
}

SmallVector<ReassociationIndices> QuantizedOperand::groups() const {
  ContractionDims dims = this->dims();
  SmallVector<ReassociationIndices> groups;
  std::optional<bool> last; // whether the last group is contracted; nullopt after a batch dimension
  for (auto [position, result] : llvm::enumerate(map().getResults())) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    bool isBatch = llvm::is_contained(dims.batch, dim), isContracted = llvm::is_contained(dims.k, dim);
    if (isBatch || last != isContracted)
      groups.emplace_back();
    groups.back().push_back(position);
    last = isBatch ? std::nullopt : std::optional(isContracted);
  }
  return groups;
}

SmallVector<int64_t> QuantizedOperand::block() const {
  if (ownBytes())
    return {};
  ContractionDims dims = this->dims();
  SmallVector<ReassociationIndices> all = groups();
  SmallVector<bool> contracted;
  SmallVector<unsigned> matrix; // the groups that are no batch dimensions
  for (auto [i, group] : llvm::enumerate(all)) {
    unsigned dim = cast<AffineDimExpr>(map().getResult(group.front())).getPosition();
    if (llvm::is_contained(dims.batch, dim))
      continue;
    matrix.push_back(i);
    contracted.push_back(llvm::is_contained(dims.k, dim));
  }
  SmallVector<int64_t> own = recipe.getBlockShape(kind(), contracted);
  if (own.empty())
    return {};
  SmallVector<int64_t> block(all.size(), 1);
  for (auto [i, extent] : llvm::zip_equal(matrix, own))
    block[i] = extent;
  return block;
}

SmallVector<int64_t> QuantizedOperand::blockOfDims() const {
  SmallVector<int64_t> block = this->block(), ofDims;
  if (!block.empty())
    for (auto [group, extent] : llvm::zip_equal(groups(), block))
      ofDims.append(group.size(), extent);
  return ofDims;
}

Value QuantizedOperand::source() const { return block().empty() ? getViewSource(value()) : tensor(); }

ColumnKey QuantizedOperand::columnKey() const {
  bool twoInputs = *matmul.getRole() == Role::other && kind() == TensorKind::input;
  return {matmul.getSite()->str(), kind(), format(), recipe.getScaling(), twoInputs ? index : 0};
}
