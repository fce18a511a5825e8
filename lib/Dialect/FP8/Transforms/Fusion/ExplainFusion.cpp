// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tells, after fusion, which tensors one operation still writes and another one reads, and why.

#include "RegionFusion.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_EXPLAINFUSION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns whether `result` is a tensor with dimensions, and no scale or amax.
bool isLarge(OpResult result) {
  auto type = dyn_cast<RankedTensorType>(result.getType());
  return type && type.getRank() != 0;
}

class ExplainFusion : public impl::ExplainFusionBase<ExplainFusion> {
public:
  using impl::ExplainFusionBase<ExplainFusion>::ExplainFusionBase;

  void runOnOperation() final {
    getOperation().walk([&](Operation *writer) {
      for (OpResult result : writer->getResults())
        for (OpOperand &read : result.getUses())
          if (isLarge(result) && detail::isFusible(read))
            tell(read, writer);
    });
    markAllAnalysesPreserved();
  }

private:
  void tell(OpOperand &read, Operation *writer) {
    ++declined;
    auto opts = remark::RemarkOpts::name("ReadsFromMemory").category("fp8-fusion");
    remark::missed(read.getOwner()->getLoc(), opts)
        << ("'" + read.getOwner()->getName().getStringRef() + "' reads the result of '" +
            writer->getName().getStringRef() + "' from memory: " + detail::explainRead(read))
               .str();
  }
};

} // namespace
} // namespace fp8
