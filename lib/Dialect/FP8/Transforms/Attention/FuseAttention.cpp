// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces attention, and its backward pass where the function has it, by one operation each, whose region is
// the program's own code on rows. Tells of each place what became of it.

#include "AttentionFusion.h"
#include "Recipe/SitePatterns.h"
#include "RowsRegion.h"
#include "SharedHeads.h"
#include "fp8/Analysis/Attention/VisibleKeys.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_FUSEATTENTION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

StringRef getSiteName(Operation *op) {
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return matmul.getSite().value_or("");
  return cast<ScaledMatmulOp>(op).getSite().value_or("");
}

/// The operations that were erased.
struct Erased : RewriterBase::Listener {
  void notifyOperationErased(Operation *op) final { operations.insert(op); }
  DenseSet<Operation *> operations;
};

class FuseAttention : public impl::FuseAttentionBase<FuseAttention> {
public:
  using impl::FuseAttentionBase<FuseAttention>::FuseAttentionBase;

  void runOnOperation() final {
    records.clear(); // of the function before
    SitePattern required;
    if (failed(required.compile(getOperation(), "require-attention", require)))
      return signalPassFailure();
    SmallVector<Operation *> outputs;
    getOperation().walk([&](Operation *op) {
      if (isa<MatmulOp, ScaledMatmulOp>(op))
        outputs.push_back(op);
    });
    Erased erased;
    IRRewriter rewriter(&getContext(), &erased);
    for (Operation *output : outputs)
      if (!erased.operations.contains(output))
        if (std::optional<AttentionSite> site = findAttention(output))
          if (failed(fuse(rewriter, *site, required)))
            signalPassFailure();
    SmallVector<Operation *> fused;
    getOperation().walk([&](DestinationStyleOpInterface op) {
      if (isa<AttentionOp, AttentionGradOp, OnlineAttentionOp, OnlineAttentionGradOp>(*op))
        fused.push_back(op);
    });
    for (Operation *op : fused)
      detail::shareHeads(rewriter, op);
    if (!records.empty())
      getOperation()->setAttr(kAttentionSitesAttrName, rewriter.getArrayAttr(records));
  }

private:
  LogicalResult fuse(RewriterBase &rewriter, AttentionSite &site, const SitePattern &required) {
    Location loc = site.scores->getLoc();
    std::string name = getSiteName(site.scores).str();
    std::optional<detail::AttentionFusion> fusion;
    TargetAttrInterface target = getTarget(getOperation());
    std::string reason = site.reason;
    if (reason.empty())
      reason = fusion.emplace(rewriter, site, target.hasOnlineAttention()).plan();
    if (reason.empty())
      reason = explainTarget(target);
    NamedAttrList found;
    Builder builder(&getContext());
    if (reason.empty()) {
      if (std::optional<int64_t> bytes = fusion->countScoreBytes())
        found.set("bytes", builder.getI64IntegerAttr(*bytes));
      fusion->build();
      if (std::optional<double> share = fusion->getHiddenShare())
        found.set("hidden", builder.getF64FloatAttr(*share));
      if (std::string mask = fusion->describeMask(); !mask.empty())
        found.set("mask", builder.getStringAttr(mask));
      remark::passed(loc, remark::RemarkOpts::name("FusedAttention").category("fp8-attention"))
          << "attention is one operation";
    } else {
      remark::missed(loc, remark::RemarkOpts::name("WrittenAttention").category("fp8-attention"))
          << "attention stays written out: " + reason;
    }
    record(loc, name, reason, found);
    if (reason.empty() || !required.matches(name))
      return success();
    return emitError(loc) << "attention of site '" << name
                          << "' is required to be fused (--require-attention=" << require
                          << ") and stays written out: " << reason;
  }

  /// Returns why the target gains nothing from fused attention; "" if it does.
  static std::string explainTarget(TargetAttrInterface target) {
    if (target.hasOnlineAttention() || target.getScoreBlockElements() != std::numeric_limits<int64_t>::max())
      return "";
    return (target.getTargetName() + " has no code yet for attention whose scores are not all in memory")
        .str();
  }

  /// Notes for the report what became of a place.
  void record(Location loc, StringRef site, StringRef reason, NamedAttrList attrs) {
    Builder builder(&getContext());
    attrs.set("site", builder.getStringAttr(site));
    attrs.set("reason", builder.getStringAttr(reason));
    attrs.set("location", builder.getStringAttr(describeLocation(loc)));
    records.push_back(attrs.getDictionary(&getContext()));
  }

  SmallVector<Attribute> records;
};

} // namespace
} // namespace fp8
