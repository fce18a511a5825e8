// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Multiplications by the loss scale, and the choice between the old and the new value of a tensor.

#include "ScaledReads.h"
#include "ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fp8;

/// Gives a linalg op one more input, `scale`, and returns its value in the body.
static Value addInput(RewriterBase &rewriter, linalg::LinalgOp op, Value scale) {
  rewriter.setInsertionPoint(op);
  SmallVector<Value> inputs = op.getDpsInputs();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.insert(maps.begin() + inputs.size(), AffineMap::get(op.getNumLoops(), 0, rewriter.getContext()));
  inputs.push_back(scale);
  auto wider = linalg::GenericOp::create(rewriter, op.getLoc(), op->getResultTypes(), inputs,
                                         op.getDpsInits(), maps, op.getIteratorTypesArray());
  wider.getRegion().takeBody(op->getRegion(0));
  Value argument = wider.getBody()->insertArgument(inputs.size() - 1, rewriter.getF32Type(), op.getLoc());
  rewriter.replaceOp(op, wider);
  return argument;
}

void fp8::scaleReads(RewriterBase &rewriter, ArrayRef<OpOperand *> reads, Value scale) {
  // Whole tensors first: reads in bodies then get new ops around them.
  llvm::MapVector<Operation *, SmallVector<OpOperand *>> inBodies;
  DenseMap<Value, Value> scaled;
  for (OpOperand *read : reads) {
    Operation *owner = read->getOwner()->getParentOp();
    if (isa<linalg::LinalgOp>(owner)) {
      inBodies[owner].push_back(read);
      continue;
    }
    Value &product = scaled[read->get()];
    if (!product) {
      rewriter.setInsertionPointAfterValue(read->get());
      product = buildElementwise(rewriter, read->get().getLoc(), {read->get(), scale},
                                 getElementTypeOrSelf(read->get()), buildScaled);
    }
    read->set(product);
  }
  for (auto &[owner, inner] : inBodies) {
    Value factor = addInput(rewriter, cast<linalg::LinalgOp>(owner), scale);
    for (OpOperand *read : inner) {
      rewriter.setInsertionPoint(read->getOwner());
      read->set(buildScaled(rewriter, read->get().getLoc(), {read->get(), factor}));
    }
  }
}

Value fp8::buildChoice(RewriterBase &rewriter, Value found, Value old, Value value) {
  auto build = [](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    Value overflowed = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, arguments[2], zero);
    return arith::SelectOp::create(b, loc, overflowed, arguments[0], arguments[1]);
  };
  return buildElementwise(rewriter, value.getLoc(), {old, value, found}, getElementTypeOrSelf(value), build);
}
