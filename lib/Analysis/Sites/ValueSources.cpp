// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects arguments, globals and contractions, and finds the values they reach with Reachability.

#include "fp8/Analysis/Sites/ValueSources.h"
#include "fp8/Analysis/LookAlikes.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fp8;

/// True for operations that multiply tensors and sum: matmuls and their look-alikes.
static bool isContraction(Operation *op) {
  if (isa<MatmulOp>(op))
    return true;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && structured.getNumReductionLoops() != 0 &&
         llvm::any_of(*structured.getBlock(), llvm::IsaPred<arith::MulFOp, arith::MulIOp, complex::MulOp>) &&
         !explainLookAlike(structured).empty();
}

/// True for an operation whose results come from outside of the function, or from code that is not visible.
static bool bringsValuesIn(Operation *op) {
  if (op->getNumResults() == 0)
    return false;
  if (auto global = dyn_cast<memref::GetGlobalOp>(op)) {
    auto symbol = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(op, global.getNameAttr());
    return !symbol || !symbol.getConstant();
  }
  return isa<EndForwardOp, CallOpInterface>(op) ||
         (op->getNumOperands() == 0 && op->getNumRegions() == 0 && !isMemoryEffectFree(op));
}

ValueSources::ValueSources(FunctionOpInterface function) {
  llvm::append_range(arguments, function.getArguments());
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isContraction(op))
      contractions.push_back(op);
    if (bringsValuesIn(op))
      llvm::append_range(arguments, op->getResults());
    return isa<linalg::LinalgOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  reachability.emplace(function, contractions, Reach::everything, arguments);
}

SmallVector<Value> ValueSources::getArguments(Value value) const {
  SmallVector<Value> found;
  for (unsigned source : reachability->getSources(value).set_bits())
    if (source >= contractions.size())
      found.push_back(arguments[source - contractions.size()]);
  return found;
}

SmallVector<Value> ValueSources::getFloatArguments(Value value) const {
  SmallVector<Value> found = getArguments(value);
  llvm::erase_if(found, [](Value argument) {
    return !isa<ShapedType>(argument.getType()) || !isa<FloatType>(getElementTypeOrSelf(argument));
  });
  return found;
}

SmallVector<Operation *> ValueSources::getContractions(Value value) const {
  SmallVector<Operation *> found;
  for (unsigned source : reachability->getSources(value).set_bits())
    if (source < contractions.size())
      found.push_back(contractions[source]);
  return found;
}
