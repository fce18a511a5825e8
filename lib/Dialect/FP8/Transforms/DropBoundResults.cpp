// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// After bufferization every result of an entry is the memory of one of its arguments; the
// function then has nothing to return. A result that is not is an error, not a leak.

#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fp8 {
#define GEN_PASS_DEF_DROPBOUNDRESULTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// The argument whose memory holds result `index`.
static bool isDestinationOf(func::FuncOp func, unsigned argument, unsigned index) {
  for (StringRef name : {StringRef(kCarriedAttrName), StringRef(kResultAttrName)})
    if (auto result = func.getArgAttrOfType<IntegerAttr>(argument, name))
      return result.getInt() == index;
  return false;
}

namespace {
struct DropBoundResultsPass : public fp8::impl::DropBoundResultsBase<DropBoundResultsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func.isPublic() || func.isExternal())
      return;
    Operation *terminator = func.front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      while (auto cast = value.getDefiningOp<memref::CastOp>())
        value = cast.getSource();
      auto argument = dyn_cast<BlockArgument>(value);
      if (!argument || !isDestinationOf(func, argument.getArgNumber(), index)) {
        func.emitError() << "result " << index << " of '" << func.getName()
                         << "' was not computed in its destination";
        return signalPassFailure();
      }
    }
    terminator->setOperands({});
    (void)func.eraseResults(BitVector(func.getNumResults(), true));
  }
};
} // namespace
