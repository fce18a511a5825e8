// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces attention, and its backward pass where the function has it, by one operation each, whose region is
// the program's own code on rows. Tells of each place what became of it.

#include "AttentionParts.h"
#include "Recipe/SitePatterns.h"
#include "RowsRegion.h"
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

/// Fuses one place.
class Fusion {
public:
  Fusion(RewriterBase &rewriter, AttentionSite &site) : rewriter(rewriter), site(site), readers(site) {}

  /// Returns why the place stays as it is; nothing if `build` may fuse it.
  std::string plan();
  void build();
  /// Returns the bytes of scores, probabilities and their gradients, each once; nothing if a size is dynamic.
  std::optional<int64_t> countScoreBytes() const;

private:
  std::string planForward();
  std::string planBackward();
  AffineMap toMap(ArrayRef<AffineExpr> places) const;
  AffineMap toStatisticMap(ArrayRef<AffineExpr> places) const;
  Attribute describe(MatmulOp matmul, bool isSwapped) const;
  template <typename Op>
  Op build(Operation *before, ArrayRef<detail::Operand> operands, detail::RowsPlan &plan,
           ArrayRef<Value> results, ArrayRef<AffineMap> resultMaps, ArrayRef<Attribute> sites);
  void buildForward();
  void buildBackward();
  void findGone();

  RewriterBase &rewriter;
  AttentionSite &site;
  detail::AttentionReaders readers;
  std::unique_ptr<detail::AttentionParts> parts;
  std::unique_ptr<detail::RowsPlan> forward, backward;
  Operation *firstGradient = nullptr; ///< before it the backward operation is put
  llvm::SetVector<Operation *> gone;  ///< what the two operations replace, and all that only that reads
  SmallVector<Value> statistics;      ///< results of the forward operation besides the output
};

std::string Fusion::plan() {
  if (!readers.reason.empty())
    return readers.reason;
  parts = std::make_unique<detail::AttentionParts>(site, readers);
  if (!parts->reason.empty())
    return parts->reason;
  findGone();
  if (parts->hasGradients)
    if (std::string reason = planBackward(); !reason.empty())
      return reason;
  return planForward();
}

void Fusion::build() {
  if (parts->hasGradients)
    buildBackward();
  buildForward();
  for (Operation *op : gone)
    if (op->use_empty())
      rewriter.eraseOp(op);
}

std::optional<int64_t> Fusion::countScoreBytes() const {
  auto type = cast<RankedTensorType>(site.probabilities.getType());
  if (!type.hasStaticShape())
    return std::nullopt;
  int64_t bits = site.raw->type.getIntOrFloatBitWidth() + type.getElementTypeBitWidth();
  if (parts->hasGradients)
    bits += parts->probabilityGradNode->type.getIntOrFloatBitWidth() +
            parts->scoreGradRow->type.getIntOrFloatBitWidth();
  return type.getNumElements() * bits / 8;
}

void Fusion::findGone() {
  llvm::SmallPtrSet<Operation *, 8> replaced{site.output};
  if (parts->hasGradients)
    replaced.insert({parts->valueGrad.matmul, parts->queryGrad.matmul, parts->keyGrad.matmul});
  for (Operation &op : llvm::reverse(*site.output->getBlock()))
    if (replaced.contains(&op) ||
        (isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>() &&
         llvm::all_of(op.getUsers(), [&](Operation *user) { return gone.contains(user); })))
      gone.insert(&op);
}

std::string Fusion::planBackward() {
  const CodeNode *outputs[] = {parts->valueRow, parts->scoreGradRow};
  const CodeNode *matmuls[] = {site.raw, parts->probabilityGradNode};
  backward = std::make_unique<detail::RowsPlan>(*site.code, site.keys, matmuls, outputs);
  // The forward operation stores the statistics that it computes, and backward reads them.
  if (std::string reason = backward->chooseInputs([&](const CodeNode *node) {
        auto place = readers.statistics.find(node->tensor);
        return place != readers.statistics.end() &&
               node->tensor.getDefiningOp()->isBeforeInBlock(site.output);
      });
      !reason.empty())
    return reason;
  for (MatmulOp matmul : {parts->valueGrad.matmul, parts->queryGrad.matmul, parts->keyGrad.matmul})
    if (!firstGradient || matmul->isBeforeInBlock(firstGradient))
      firstGradient = matmul;
  DominanceInfo dominance;
  SmallVector<Value> needed{parts->query.tensor, parts->key.tensor, parts->value.tensor,
                            parts->outputGrad.tensor};
  for (const detail::RowInput &input : backward->inputs)
    needed.push_back(input.tensor);
  for (Value value : needed)
    if (!dominance.properlyDominates(value, firstGradient))
      return "its backward pass reads a tensor that is computed after its first gradient";
  return "";
}

std::string Fusion::planForward() {
  SmallVector<const CodeNode *> outputs{site.probability};
  for (auto &statistic : readers.statistics) {
    Value value = statistic.first;
    bool isRead = backward && llvm::any_of(backward->inputs, [&](const detail::RowInput &input) {
                    return input.tensor == value;
                  });
    for (Operation *user : value.getUsers())
      isRead |= !gone.contains(user);
    if (!isRead)
      continue;
    if (!value.getDefiningOp()->isBeforeInBlock(site.output))
      return "a statistic of its backward pass is needed elsewhere";
    if (!toStatisticMap(statistic.second))
      return "a statistic of its rows has another shape than its probabilities";
    statistics.push_back(value);
    outputs.push_back(site.code->get(value, statistic.second));
  }
  forward = std::make_unique<detail::RowsPlan>(*site.code, site.keys, site.raw, outputs);
  if (std::string reason = forward->chooseInputs(); !reason.empty())
    return reason;
  for (Value value : statistics)
    for (Operation *user : value.getUsers())
      if (!gone.contains(user) &&
          site.output->getBlock()->findAncestorOpInBlock(*user)->isBeforeInBlock(site.output))
        return "a statistic of its rows is read before its second matmul";
  return "";
}

AffineMap Fusion::toMap(ArrayRef<AffineExpr> places) const {
  return AffineMap::get(parts->query.map.getNumDims(), 0, places, rewriter.getContext());
}

/// Returns the map of a statistic, which has each outer dimension once, also those of size 1; null if it
/// lacks one.
AffineMap Fusion::toStatisticMap(ArrayRef<AffineExpr> places) const {
  auto shape = cast<RankedTensorType>(site.probabilities.getType()).getShape();
  SmallVector<unsigned> units = llvm::to_vector(
      llvm::make_filter_range(parts->dims.outer, [&](unsigned dim) { return shape[dim] == 1; }));
  SmallVector<AffineExpr> named(places);
  auto unit = units.begin();
  for (AffineExpr &place : named)
    if (isa<AffineConstantExpr>(place) && unit != units.end())
      place = getAffineDimExpr(*unit++, rewriter.getContext());
  AffineMap map = toMap(named);
  bool hasAll = llvm::all_of(parts->dims.outer, [&](unsigned dim) { return map.isFunctionOfDim(dim); });
  return hasAll ? map : AffineMap();
}

/// Describes a matmul for the report; `isSwapped` where the operation has its operands the other way round.
Attribute Fusion::describe(MatmulOp matmul, bool isSwapped) const {
  auto lhs = matmul.getLhsKind().value_or(TensorKind::input),
       rhs = matmul.getRhsKind().value_or(TensorKind::input);
  if (isSwapped)
    std::swap(lhs, rhs);
  return MatmulSiteAttr::get(rewriter.getContext(), matmul.getSiteAttr(),
                             matmul.getRole().value_or(Role::other), lhs, rhs, matmul.getKeptAttr());
}

/// Builds the operation with results of the types of `results`, and replaces them.
template <typename Op>
Op Fusion::build(Operation *before, ArrayRef<detail::Operand> operands, detail::RowsPlan &plan,
                 ArrayRef<Value> results, ArrayRef<AffineMap> resultMaps, ArrayRef<Attribute> sites) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(before);
  Location loc = before->getLoc();
  SmallVector<Value> tensors, inputs, outs;
  SmallVector<AffineMap> maps;
  for (const detail::Operand &operand : operands) {
    tensors.push_back(operand.tensor);
    maps.push_back(operand.map);
  }
  for (const detail::RowInput &input : plan.inputs) {
    inputs.push_back(input.tensor);
    maps.push_back(toMap(input.at));
  }
  for (auto [result, map] : llvm::zip_equal(results, resultMaps)) {
    auto type = cast<RankedTensorType>(result.getType());
    auto structured = result.getDefiningOp<DestinationStyleOpInterface>();
    SmallVector<OpFoldResult> sizes =
        structured ? tensor::getMixedSizes(rewriter, loc, structured.getDpsInits().back())
                   : getAsIndexOpFoldResult(rewriter.getContext(), type.getShape());
    outs.push_back(tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType()));
    maps.push_back(map);
  }
  auto op = Op::create(rewriter, loc, tensors, inputs, outs, maps, rewriter.getArrayAttr(sites));
  auto shape = cast<RankedTensorType>(site.probabilities.getType()).getShape();
  SmallVector<int64_t> rowShape = llvm::map_to_vector(site.keys, [&](unsigned key) { return shape[key]; });
  SmallVector<Type> types(parts->dims.outer.size(), rewriter.getIndexType());
  for (const CodeNode *matmul : plan.getMatmuls())
    types.push_back(RankedTensorType::get(rowShape, matmul->type));
  for (const detail::RowInput &input : plan.inputs) {
    SmallVector<int64_t> part;
    for (AffineExpr expr : input.at)
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && llvm::is_contained(site.keys, dim.getPosition()))
        part.push_back(shape[dim.getPosition()]);
    Type element = getElementTypeOrSelf(input.tensor);
    types.push_back(part.empty() ? element : Type(RankedTensorType::get(part, element)));
  }
  Block *block = rewriter.createBlock(&op.getRows(), {}, types, SmallVector<Location>(types.size(), loc));
  detail::RowsWriter writer(rewriter, plan, parts->dims.outer, block);
  SmallVector<Value> yielded = writer.write();
  YieldOp::create(rewriter, loc, yielded.front(), ValueRange(yielded).drop_front());
  for (auto [old, now] : llvm::zip_equal(results, op->getResults()))
    rewriter.replaceAllUsesWith(old, now);
  return op;
}

void Fusion::buildBackward() {
  auto isSwapped = [](MatmulOp matmul, Value first) { return matmul.getLhs() != first; };
  MatmulOp scores = cast<MatmulOp>(site.scores);
  build<AttentionGradOp>(
      firstGradient, {parts->query, parts->key, parts->value, parts->outputGrad}, *backward,
      {parts->queryGrad.matmul.getResult(0), parts->keyGrad.matmul.getResult(0),
       parts->valueGrad.matmul.getResult(0)},
      {parts->queryGrad.map, parts->keyGrad.map, parts->valueGrad.map},
      {describe(scores, isSwapped(scores, parts->query.tensor)),
       describe(parts->probabilityGrad, isSwapped(parts->probabilityGrad, parts->outputGrad.tensor)),
       describe(parts->valueGrad.matmul, !isSwapped(parts->valueGrad.matmul, parts->outputGrad.tensor)),
       describe(parts->queryGrad.matmul, !isSwapped(parts->queryGrad.matmul, parts->key.tensor)),
       describe(parts->keyGrad.matmul, !isSwapped(parts->keyGrad.matmul, parts->query.tensor))});
}

void Fusion::buildForward() {
  SmallVector<Value> results{parts->output.tensor};
  SmallVector<AffineMap> maps{parts->output.map};
  for (Value statistic : statistics) {
    results.push_back(statistic);
    maps.push_back(toStatisticMap(readers.statistics.find(statistic)->second));
  }
  MatmulOp scores = cast<MatmulOp>(site.scores), output = cast<MatmulOp>(site.output);
  build<AttentionOp>(output, {parts->query, parts->key, parts->value}, *forward, results, maps,
                     {describe(scores, scores.getLhs() != parts->query.tensor),
                      describe(output, output.getLhs() != site.probabilities)});
}

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
    if (!records.empty())
      getOperation()->setAttr(kAttentionSitesAttrName, rewriter.getArrayAttr(records));
  }

private:
  LogicalResult fuse(RewriterBase &rewriter, AttentionSite &site, const SitePattern &required) {
    Location loc = site.scores->getLoc();
    std::string name = getSiteName(site.scores).str();
    std::optional<Fusion> fusion;
    std::string reason = site.reason;
    if (reason.empty())
      reason = fusion.emplace(rewriter, site).plan();
    if (reason.empty())
      reason = explainTarget();
    std::optional<int64_t> bytes;
    if (reason.empty()) {
      bytes = fusion->countScoreBytes();
      fusion->build();
      remark::passed(loc, remark::RemarkOpts::name("FusedAttention").category("fp8-attention"))
          << "attention is one operation";
    } else {
      remark::missed(loc, remark::RemarkOpts::name("WrittenAttention").category("fp8-attention"))
          << "attention stays written out: " + reason;
    }
    record(loc, name, reason, bytes);
    if (reason.empty() || !required.matches(name))
      return success();
    return emitError(loc) << "attention of site '" << name
                          << "' is required to be fused (--require-attention=" << require
                          << ") and stays written out: " << reason;
  }

  /// Returns why the target gains nothing from fused attention; "" if it does.
  std::string explainTarget() {
    TargetAttrInterface target = getTarget(getOperation());
    if (target.getScoreBlockElements() != std::numeric_limits<int64_t>::max())
      return "";
    return (target.getTargetName() + " has no code yet for attention whose scores are not all in memory")
        .str();
  }

  /// Notes for the report what became of a place.
  void record(Location loc, StringRef site, StringRef reason, std::optional<int64_t> bytes) {
    Builder builder(&getContext());
    NamedAttrList attrs;
    attrs.set("site", builder.getStringAttr(site));
    attrs.set("reason", builder.getStringAttr(reason));
    attrs.set("location", builder.getStringAttr(describeLocation(loc)));
    if (bytes)
      attrs.set("bytes", builder.getI64IntegerAttr(*bytes));
    records.push_back(attrs.getDictionary(&getContext()));
  }

  SmallVector<Attribute> records;
};

} // namespace
} // namespace fp8
