// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the loss among the results of a step.

#include "Loss.h"
#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

std::optional<unsigned> fp8::findCarried(func::FuncOp function, unsigned index) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto carried = function.getArgAttrOfType<IntegerAttr>(i, kCarriedAttrName))
      if (carried.getInt() == index)
        return i;
  return std::nullopt;
}

static bool isScalar(func::FuncOp function, unsigned result) {
  auto type = dyn_cast<RankedTensorType>(function.getResultTypes()[result]);
  return type && type.getRank() == 0 && isa<FloatType>(type.getElementType());
}

SmallVector<unsigned> fp8::findScalarResults(func::FuncOp function) {
  SmallVector<unsigned> scalars;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (isScalar(function, i) && !findCarried(function, i))
      scalars.push_back(i);
  return scalars;
}

FailureOr<unsigned> fp8::findLoss(func::FuncOp function, int64_t given, StringRef purpose) {
  if (given >= 0) {
    if (given < static_cast<int64_t>(function.getNumResults()) && isScalar(function, given))
      return static_cast<unsigned>(given);
    return function.emitError() << "--loss=" << given << ": '" << function.getName()
                                << "' has no scalar of floating point as result " << given;
  }
  SmallVector<unsigned> scalars = findScalarResults(function);
  if (scalars.size() == 1)
    return scalars.front();
  return function.emitError() << purpose << " needs the loss: '" << function.getName() << "' has "
                              << scalars.size() << " results that are a scalar of floating point; "
                              << (scalars.empty() ? "return the loss" : "name it with --loss=R");
}

bool fp8::hasGradientMatmuls(func::FuncOp function) {
  return function
      .walk([](MatmulOp op) {
        bool isGradient =
            op.getLhsKind() == TensorKind::grad_output || op.getRhsKind() == TensorKind::grad_output;
        return isGradient ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}
