// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tells, after fusion, which tensors one operation still writes and another one reads, and why. The fusions
// answer by the checks that they decide by.

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

/// Returns whether fusion could put the operation that writes a tensor and `reader` in one loop.
bool isReader(Operation *reader) {
  return isa<linalg::GenericOp, QuantizeOp, QuantizeBlocksOp, AmaxOp>(reader);
}

detail::Reason explain(OpOperand &read) {
  auto result = cast<OpResult>(read.get());
  Operation *reader = read.getOwner(), *writer = result.getOwner();
  if (reader->getBlock() != writer->getBlock())
    return "it is in another loop or branch";
  auto generic = dyn_cast<linalg::GenericOp>(writer);
  if (!generic)
    return detail::explainEpilogue(writer, result, reader);
  if (isa<linalg::GenericOp>(reader))
    return detail::explainElementwise(read);
  detail::Reason ofRows = generic.getNumReductionLoops() ? detail::explainRows(generic, reader) : "";
  return ofRows.empty() ? detail::explainProducer(generic, result, reader) : ofRows;
}

class ExplainFusion : public impl::ExplainFusionBase<ExplainFusion> {
public:
  using impl::ExplainFusionBase<ExplainFusion>::ExplainFusionBase;

  void runOnOperation() final {
    getOperation().walk([&](Operation *writer) {
      if (!isa<linalg::GenericOp>(writer) && !MatmulResults::of(writer))
        return;
      for (OpResult result : writer->getResults())
        for (OpOperand &read : result.getUses())
          if (isLarge(result) && isReader(read.getOwner()))
            tell(read, writer);
    });
    markAllAnalysesPreserved();
  }

private:
  void tell(OpOperand &read, Operation *writer) {
    ++declined;
    detail::Reason why = explain(read);
    auto opts = remark::RemarkOpts::name("ReadsFromMemory").category("fp8-fusion");
    remark::missed(read.getOwner()->getLoc(), opts)
        << ("'" + read.getOwner()->getName().getStringRef() + "' reads the result of '" +
            writer->getName().getStringRef() +
            "' from memory: " + (why.empty() ? "another fusion came first" : why))
               .str();
  }
};

} // namespace
} // namespace fp8
