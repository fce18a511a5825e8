// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of stochastic rounding: a seed, and a step that counts the training steps. It belongs to the
// function that computes gradients, in a pair to backward alone.

#include "RecipeRewriter.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp8;

/// The name of the state tensor.
static constexpr StringLiteral kRoundingName = "rounding";

FailureOr<Value> fp8::addRoundingState(func::FuncOp function, std::optional<JoinedPair> &pair) {
  func::FuncOp owner = pair ? pair->getBackward() : function;
  for (func::FuncOp each : {function, owner})
    for (unsigned i = 0; i < each.getNumArguments(); ++i)
      if (auto other = each.getArgAttrOfType<StringAttr>(i, kProgramStateAttrName);
          other && other == kRoundingName)
        return each.emitError() << "global '" << kRoundingName
                                << "' has the name of the state tensor of stochastic rounding: rename it";
  OpBuilder builder(function.getContext());
  auto type = RankedTensorType::get({2}, builder.getI64Type());
  NamedAttribute mark(builder.getStringAttr(kProgramStateAttrName), builder.getStringAttr(kRoundingName));
  SmallVector<NamedAttribute> attributes{
      mark,
      {builder.getStringAttr(kInitialAttrName), DenseElementsAttr::get(type, int64_t(0))},
      {builder.getStringAttr(kCarriedAttrName), builder.getI32IntegerAttr(owner.getNumResults())}};
  DictionaryAttr ofArgument = builder.getDictionaryAttr(attributes),
                 ofResult = builder.getDictionaryAttr(mark);
  Location loc = NameLoc::get(builder.getStringAttr(kRoundingName), function.getLoc());
  Value random;
  if (pair) {
    random = pair->addBackwardArgument(type, ofArgument, loc);
  } else {
    // This cannot fail, because the function's type matches its arguments.
    (void)function.insertArgument(function.getNumArguments(), type, ofArgument, loc);
    random = function.getArguments().back();
  }
  auto terminator = cast<func::ReturnOp>(function.front().getTerminator());
  builder.setInsertionPoint(terminator);
  auto increment = DenseElementsAttr::get(type, ArrayRef<int64_t>{0, 1}); // the seed stays
  Value one = arith::ConstantOp::create(builder, loc, increment);
  Value next = arith::AddIOp::create(builder, loc, random, one);
  if (pair) {
    pair->addBackwardResult(next, ofResult);
  } else {
    (void)function.insertResult(function.getNumResults(), type, ofResult);
    terminator.getOperandsMutable().append(next);
  }
  return random;
}
