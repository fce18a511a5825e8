// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages name the arguments that sizes and indices are computed from, because these are what a
// user knows of a call.

#include "SizeMessages.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

/// "argument 2 'x'"
static std::string describe(BlockArgument argument) {
  return "argument " + std::to_string(argument.getArgNumber()) + " '" + getArgumentName(argument) + "'";
}

/// "argument 0 'ids', argument 2 'x'"
static std::string describe(llvm::SetVector<BlockArgument> arguments) {
  SmallVector<BlockArgument> inOrder = arguments.takeVector();
  llvm::sort(inOrder, [](BlockArgument a, BlockArgument b) { return a.getArgNumber() < b.getArgNumber(); });
  return llvm::join(llvm::map_range(inOrder, [](BlockArgument a) { return describe(a); }), ", ");
}

static bool isFunctionArgument(BlockArgument argument) {
  return isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// Returns the argument and its dimension if `size` is the size of one.
static std::optional<std::pair<BlockArgument, int64_t>> getArgumentSize(OpFoldResult size) {
  auto value = dyn_cast<Value>(size);
  auto op = value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
  auto argument = op ? dyn_cast<BlockArgument>(op.getSource()) : BlockArgument();
  if (!argument || !op.getConstantIndex() || !isFunctionArgument(argument))
    return std::nullopt;
  return std::pair(argument, *op.getConstantIndex());
}

std::string fp8::describeMismatch(TensorSizes &sizes, OpFoldResult a, OpFoldResult b) {
  auto left = getArgumentSize(a), right = getArgumentSize(b);
  // Report the later of two arguments as the one that does not fit.
  if (right && (!left || left->first.getArgNumber() < right->first.getArgNumber())) {
    std::swap(left, right);
    std::swap(a, b);
  }
  if (left && (right || getConstantIntValue(b))) {
    std::string text = describe(left->first) + ": size " + std::to_string(left->second) + " must be ";
    if (!right)
      return text + std::to_string(*getConstantIntValue(b));
    return text + "size " + std::to_string(right->second) + " of " + describe(right->first);
  }
  llvm::SetVector<BlockArgument> arguments;
  sizes.collectArguments(a, arguments);
  sizes.collectArguments(b, arguments);
  std::string text = "sizes do not fit together";
  return arguments.empty() ? text : text + ", which follow from " + describe(arguments);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Appends the values that an integer, or a tensor of integers, is directly computed from.
static void appendSources(Value value, SmallVectorImpl<Value> &sources) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto op = dyn_cast<linalg::LinalgOp>(parent))
      sources.push_back(op.getMatchingOpOperand(argument)->get());
    else if (auto loop = dyn_cast<LoopLikeOpInterface>(parent))
      if (OpOperand *init = loop.getTiedLoopInit(argument))
        sources.push_back(init->get());
    return;
  }
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    sources.push_back(linalgOp.getBlock()->getTerminator()->getOperand(number));
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    sources.push_back(branch.thenYield().getOperand(number));
    sources.push_back(branch.elseYield().getOperand(number));
  } else {
    llvm::copy_if(op->getOperands(), std::back_inserter(sources),
                  [](Value operand) { return getElementTypeOrSelf(operand.getType()).isIntOrIndex(); });
  }
}

static llvm::SetVector<BlockArgument> findArguments(ArrayRef<OpFoldResult> causes) {
  llvm::SetVector<BlockArgument> arguments;
  llvm::SetVector<Value> seen;
  for (OpFoldResult cause : causes)
    if (auto value = dyn_cast<Value>(cause))
      seen.insert(value);
  for (unsigned i = 0; i < seen.size(); ++i) {
    auto argument = dyn_cast<BlockArgument>(seen[i]);
    if (argument && isFunctionArgument(argument)) {
      arguments.insert(argument);
      continue;
    }
    SmallVector<Value> sources;
    appendSources(seen[i], sources);
    seen.insert_range(sources);
  }
  return arguments;
}

std::string fp8::describeOutside(StringRef what, Value tensor, int64_t dim, ArrayRef<OpFoldResult> causes) {
  auto type = cast<RankedTensorType>(tensor.getType());
  std::string text = (what + " is outside of dimension " + Twine(dim)).str();
  if (auto argument = dyn_cast<BlockArgument>(tensor); argument && isFunctionArgument(argument))
    text += " of " + describe(argument);
  if (!type.isDynamicDim(dim))
    text += ", of size " + std::to_string(type.getDimSize(dim));
  llvm::SetVector<BlockArgument> arguments = findArguments(causes);
  return arguments.empty() ? text : text + "; it follows from " + describe(arguments);
}
