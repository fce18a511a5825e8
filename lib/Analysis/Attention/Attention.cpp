// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks from each matmul back through the code of an operand's elements to another matmul. Evaluating the
// code tells what it is; its operations only tell why a place is not what it resembles.

#include "fp8/Analysis/Attention/Attention.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

namespace {

/// A matmul of either kind. Matmuls in FP8 no longer know the kinds of their operands.
struct AnyMatmul {
  SmallVector<AffineMap> maps;
  std::optional<TensorKind> kinds[2];

  std::optional<Role> role;

  static std::optional<AnyMatmul> of(Operation *op) {
    if (auto matmul = dyn_cast_or_null<MatmulOp>(op))
      return AnyMatmul{
          matmul.getIndexingMapsArray(), {matmul.getLhsKind(), matmul.getRhsKind()}, matmul.getRole()};
    if (auto matmul = dyn_cast_or_null<ScaledMatmulOp>(op))
      return AnyMatmul{matmul.getIndexingMapsArray(), {}, matmul.getRole()};
    return std::nullopt;
  }
  bool has(TensorKind kind) const { return kinds[0] == kind || kinds[1] == kind; }
  bool isGradient() const {
    return has(TensorKind::grad_output) || role == Role::dgrad || role == Role::wgrad;
  }
  bool isOfInputs() const { return kinds[0] == TensorKind::input && kinds[1] == TensorKind::input; }
};

/// Looks at one operand of a matmul.
class Finder {
public:
  Finder(Operation *output, const AnyMatmul &matmul, unsigned operand);
  std::optional<AttentionSite> find();

private:
  Finder(const Finder &outer, Value probabilities)
      : output(outer.output), matmul(outer.matmul), probabilities(probabilities), keys(outer.keys),
        keyDims(outer.keyDims) {}
  std::optional<AttentionSite> findBehindOperation();
  void visit(const CodeNode *node);
  const CodeNode *chooseScores() const;
  bool dependsOnScores(const CodeNode *node);
  bool looksLikeSoftmax();
  bool hasOneKey() const;
  bool readsSeveralMatmuls() const;
  std::string findReason(AttentionSite &site);
  std::string explainShape() const;
  std::string explainReads() const;
  std::string explainAxis();

  Operation *output;
  const AnyMatmul &matmul;
  Value probabilities;
  SmallVector<unsigned> keys;
  uint64_t keyDims = 0;
  std::shared_ptr<ElementCode> code;
  const CodeNode *probability = nullptr, *raw = nullptr;
  llvm::SetVector<const CodeNode *> nodes;
  DenseMap<const CodeNode *, bool> dependent;
};
} // namespace

/// Returns the tensor that a quantize casts; otherwise the operand itself.
static Value getSource(Value operand) {
  auto quantize = operand.getDefiningOp<QuantizeOp>();
  return quantize && quantize.getInputs().size() == 1 ? quantize.getInputs().front() : operand;
}

Finder::Finder(Operation *output, const AnyMatmul &matmul, unsigned operand)
    : output(output), matmul(matmul), probabilities(getSource(output->getOperand(operand))) {
  ContractionDims dims = *inferContractionDims(matmul.maps);
  for (auto [position, expr] : llvm::enumerate(matmul.maps[operand].getResults()))
    if (llvm::is_contained(dims.k, cast<AffineDimExpr>(expr).getPosition()))
      keys.push_back(position);
  for (unsigned key : keys)
    keyDims |= uint64_t(1) << key;
}

void Finder::visit(const CodeNode *node) {
  if (!nodes.insert(node))
    return;
  for (const CodeNode *operand : node->operands)
    visit(operand);
}

/// Returns the element of a matmul's result that differs by key and by row: of several, one that has the
/// shape of the probabilities, if there is one.
const CodeNode *Finder::chooseScores() const {
  const CodeNode *chosen = nullptr;
  for (const CodeNode *node : nodes) {
    if (node->kind != Kind::element || !AnyMatmul::of(node->value.getDefiningOp()) ||
        (node->dims & keyDims) != keyDims || node->dims == keyDims)
      continue;
    if (!chosen || llvm::popcount(node->dims) > llvm::popcount(chosen->dims))
      chosen = node;
  }
  return chosen;
}

bool Finder::dependsOnScores(const CodeNode *node) {
  if (node->kind == Kind::element)
    return node->value == raw->value;
  auto [known, isNew] = dependent.try_emplace(node, false);
  if (!isNew)
    return known->second;
  bool depends =
      llvm::any_of(node->operands, [&](const CodeNode *operand) { return dependsOnScores(operand); });
  return dependent[node] = depends;
}

/// Returns whether the code has an exponential of scores, and a reduction of them unless there is one key:
/// a reduction of one element is folded.
bool Finder::looksLikeSoftmax() {
  bool reduces = hasOneKey(), hasExp = false;
  for (const CodeNode *node : nodes) {
    if (!dependsOnScores(node))
      continue;
    reduces |= node->kind == Kind::reduction;
    hasExp |= isa_and_nonnull<math::ExpOp, math::Exp2Op>(node->getOperation());
  }
  return reduces && hasExp;
}

bool Finder::hasOneKey() const {
  return llvm::all_of(keys, [&](unsigned key) { return code->getSizes()[key] == 1; });
}

bool Finder::readsSeveralMatmuls() const {
  return llvm::any_of(nodes, [&](const CodeNode *node) {
    return node->kind == Kind::element && node->value != raw->value &&
           AnyMatmul::of(node->value.getDefiningOp());
  });
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

static std::string explainOperation(Operation *op) {
  return ("'" + op->getName().getStringRef() + "' between its matmuls is no code on elements and rows").str();
}

std::string Finder::explainAxis() {
  bool reducesKeys = false, reducesOthers = false;
  for (const CodeNode *node : nodes)
    if (node->kind == Kind::reduction && dependsOnScores(node))
      for (unsigned dim : node->bound)
        (llvm::is_contained(keys, dim) ? reducesKeys : reducesOthers) = true;
  if (reducesKeys || !reducesOthers)
    return "";
  return "its softmax is along another dimension than the one that its second matmul sums over";
}

std::string Finder::explainShape() const {
  uint64_t seen = 0;
  for (AffineExpr expr : raw->at) {
    if (isa<AffineConstantExpr>(expr))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim && (getDims(expr) & keyDims))
      return "the keys of its probabilities are not in the order of those of its scores";
    if (!dim || (seen >> dim.getPosition() & 1))
      return "its scores have another shape than its probabilities";
    seen |= uint64_t(1) << dim.getPosition();
  }
  for (auto [dim, size] : llvm::enumerate(cast<RankedTensorType>(probabilities.getType()).getShape()))
    if (size != 1 && !(seen >> dim & 1))
      return "its scores are those of several rows of probabilities";
  for (const CodeNode *node : nodes)
    if (node->kind == Kind::element && node->value == raw->value && node->at != raw->at)
      return "its probabilities depend on scores of other rows";
  return "";
}

/// Tells which operation computes what the code reads from the scores, in a way that the code does not show.
std::string Finder::explainReads() const {
  if (raw->value.getDefiningOp()->getBlock() != output->getBlock())
    return "its two matmuls are in different loops or branches";
  llvm::SmallPtrSet<Operation *, 32> after{raw->value.getDefiningOp()};
  for (Operation *op = raw->value.getDefiningOp()->getNextNode(); op != output; op = op->getNextNode()) {
    bool reads = false;
    op->walk([&](Operation *inner) {
      reads |= llvm::any_of(inner->getOperands(),
                            [&](Value operand) { return after.contains(operand.getDefiningOp()); });
    });
    if (reads)
      after.insert(op);
  }
  for (const CodeNode *node : nodes)
    if (node->kind == Kind::element && node->value != raw->value &&
        after.contains(node->value.getDefiningOp()))
      return explainOperation(node->value.getDefiningOp());
  return "";
}

std::string Finder::findReason(AttentionSite &site) {
  if (!isa<MatmulOp>(output) || !raw->value.getDefiningOp<MatmulOp>())
    return "its matmuls are in FP8";
  if (!looksLikeSoftmax())
    return "no softmax is between its matmuls";
  if (hasOneKey())
    return "it has one key, so that its softmax is no reduction";
  if (std::string reason = explainReads(); !reason.empty())
    return reason;
  if (std::string reason = explainAxis(); !reason.empty())
    return reason;
  if (std::string reason = explainShape(); !reason.empty())
    return reason;
  std::string reason;
  std::optional<SoftmaxForm> form = findSoftmax(*code, probability, raw, keys, reason);
  if (!form)
    return reason;
  site.form = *form;
  return "";
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// Looks behind an operation that is no code on elements, so that a place with one has a reason.
std::optional<AttentionSite> Finder::findBehindOperation() {
  if (!matmul.isOfInputs())
    return std::nullopt;
  for (const CodeNode *node : nodes) {
    Operation *op = node->kind == Kind::element ? node->value.getDefiningOp() : nullptr;
    if (!op || AnyMatmul::of(op) || node->value.getType() != probabilities.getType())
      continue;
    for (Value operand : op->getOperands()) {
      if (operand.getType() != probabilities.getType())
        continue;
      Finder inner(*this, operand);
      std::optional<AttentionSite> site = inner.find();
      if (!site || !inner.looksLikeSoftmax())
        continue;
      site->reason = explainOperation(op);
      return site;
    }
  }
  return std::nullopt;
}

std::optional<AttentionSite> Finder::find() {
  auto type = dyn_cast<RankedTensorType>(probabilities.getType());
  if (!type || keys.empty() || type.getRank() >= 32 || !probabilities.getDefiningOp())
    return std::nullopt;
  code = std::make_shared<ElementCode>(type.getShape());
  SmallVector<AffineExpr> at;
  MLIRContext *context = output->getContext();
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    at.push_back(type.getDimSize(dim) == 1 && !llvm::is_contained(keys, dim)
                     ? getAffineConstantExpr(0, context)
                     : getAffineDimExpr(dim, context));
  probability = code->get(probabilities, at);
  visit(probability);
  raw = chooseScores();
  if (!raw)
    return findBehindOperation();
  if (raw == probability)
    return std::nullopt;
  Operation *scores = raw->value.getDefiningOp();
  AnyMatmul first = *AnyMatmul::of(scores);
  if (first.isGradient() || (!looksLikeSoftmax() && !(matmul.isOfInputs() && first.isOfInputs())))
    return std::nullopt;
  if (isa<ScaledMatmulOp>(output) && (readsSeveralMatmuls() || !explainAxis().empty()))
    return std::nullopt; // a gradient
  AttentionSite site;
  site.scores = scores;
  site.output = output;
  site.probabilities = probabilities;
  site.reason = findReason(site);
  site.code = code;
  site.probability = probability;
  site.raw = raw;
  site.keys = keys;
  return site;
}

std::optional<AttentionSite> fp8::findAttention(Operation *output) {
  std::optional<AnyMatmul> matmul = AnyMatmul::of(output);
  if (!matmul || matmul->isGradient())
    return std::nullopt;
  for (unsigned operand : {0, 1})
    if (std::optional<AttentionSite> site = Finder(output, *matmul, operand).find())
      return site;
  return std::nullopt;
}
