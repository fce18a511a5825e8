// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands the element of a tensor operation by operation. Indices are affine expressions, so that views
// vanish.

#include "fp8/Analysis/Attention/ElementCode.h"
#include "../ReshapedIndices.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

/// Nodes beyond which elements are read, so that code stays small; and indices that a node may have.
static constexpr size_t kMostNodes = 4096;
static constexpr unsigned kMostDims = 64;

uint64_t fp8::getDims(ArrayRef<AffineExpr> exprs) {
  uint64_t dims = 0;
  for (AffineExpr expr : exprs)
    expr.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part))
        dims |= uint64_t(1) << dim.getPosition();
    });
  return dims;
}

static std::vector<const void *> toKey(ArrayRef<AffineExpr> exprs) {
  std::vector<const void *> key;
  for (AffineExpr expr : exprs)
    key.push_back(expr.getAsOpaquePointer());
  return key;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

const CodeNode *ElementCode::add(CodeNode node) {
  Operation *op = node.getOperation();
  std::vector<const void *> parts = toKey(node.at);
  parts.insert(parts.end(), node.operands.begin(), node.operands.end());
  for (unsigned dim : node.bound)
    parts.push_back(reinterpret_cast<const void *>(uintptr_t(dim)));
  const void *what = op                           ? op->getName().getAsOpaquePointer()
                     : node.kind == Kind::element ? node.value.getAsOpaquePointer()
                                                  : nullptr;
  Attribute attributes = op ? Attribute(op->getAttrDictionary()) : node.constant;
  Key key{int(node.kind), what, attributes.getAsOpaquePointer(), node.type.getAsOpaquePointer(),
          std::move(parts)};
  auto [known, isNew] = keys.try_emplace(std::move(key), nullptr);
  if (!isNew)
    return known->second;
  node.dims = getDims(node.at);
  node.accumulates = node.kind == Kind::accumulator;
  for (const CodeNode *operand : node.operands) {
    node.dims |= operand->dims;
    node.accumulates |= operand->accumulates && node.kind != Kind::reduction;
  }
  for (unsigned dim : node.bound)
    node.dims &= ~(uint64_t(1) << dim);
  return known->second = &nodes.emplace_back(std::move(node));
}

const CodeNode *ElementCode::addElement(Value tensor, ArrayRef<AffineExpr> at) {
  CodeNode node(Kind::element, getElementTypeOrSelf(tensor), tensor);
  node.at = llvm::to_vector(at);
  return add(std::move(node));
}

const CodeNode *ElementCode::addIndex(AffineExpr index, Type type) {
  CodeNode node(Kind::index, type);
  node.at = {simplify(index)};
  return add(std::move(node));
}

const CodeNode *ElementCode::addConstant(Attribute constant, Type type) {
  CodeNode node(Kind::constant, type);
  node.constant = constant;
  return add(std::move(node));
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Returns the index of a reduction's loop of this size; nothing if there are too many.
std::optional<unsigned> ElementCode::bindLoop(int64_t size, uint64_t taken) {
  for (unsigned dim = sizes.size(); dim-- > 0;)
    if (sizes[dim] == size && !(taken >> dim & 1))
      return dim;
  if (sizes.size() == kMostDims)
    return std::nullopt;
  sizes.push_back(size);
  return sizes.size() - 1;
}

/// Returns where the element `at` of a view lies in the tensor that it is of; nothing for other operations.
std::optional<SmallVector<AffineExpr>> ElementCode::stepThroughView(Operation *op,
                                                                    ArrayRef<AffineExpr> at) const {
  MLIRContext *context = op->getContext();
  if (isa<tensor::CastOp>(op) && isa<RankedTensorType>(op->getOperand(0).getType()))
    return llvm::to_vector(at);
  if (auto reshape = dyn_cast<tensor::ExpandShapeOp>(op)) {
    auto groups = reshape.getReassociationIndices();
    if (!haveInnerSizes(groups, reshape.getResultType().getShape()))
      return std::nullopt;
    return collapse(groups, reshape.getResultType().getShape(), at, context);
  }
  if (auto reshape = dyn_cast<tensor::CollapseShapeOp>(op)) {
    auto groups = reshape.getReassociationIndices();
    if (!haveInnerSizes(groups, reshape.getSrcType().getShape()))
      return std::nullopt;
    return expandIndices(groups, reshape.getSrcType().getShape(), at, context);
  }
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice || llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(slice.getStaticStrides(), ShapedType::isDynamic))
    return std::nullopt;
  SmallVector<AffineExpr> inSource;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  unsigned next = 0;
  for (auto [dim, offset, stride] : llvm::enumerate(slice.getStaticOffsets(), slice.getStaticStrides())) {
    AffineExpr start = getAffineConstantExpr(offset, context);
    inSource.push_back(dropped[dim] ? start : at[next++] * stride + start);
  }
  return inSource;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

const CodeNode *ElementCode::get(Value tensor, ArrayRef<AffineExpr> at) {
  SmallVector<AffineExpr> place = llvm::map_to_vector(at, [&](AffineExpr expr) { return simplify(expr); });
  std::pair key{tensor.getAsOpaquePointer(), toKey(place)};
  if (auto known = elements.find(key); known != elements.end())
    return known->second;
  const CodeNode *node = nodes.size() < kMostNodes ? expand(tensor, place) : nullptr;
  if (!node)
    node = addElement(tensor, place);
  // A view may have an element at plain indices that lies at a mixture of them in the tensor itself.
  auto isPlain = [](AffineExpr expr) { return isa<AffineDimExpr, AffineConstantExpr>(expr); };
  bool isPlainer =
      node->kind == Kind::element && !llvm::all_of(node->place, isPlain) && llvm::all_of(place, isPlain);
  if (!node->tensor || isPlainer) {
    auto *owned = const_cast<CodeNode *>(node);
    owned->tensor = tensor;
    owned->place = place;
  }
  places.push_back({node, {tensor, place}});
  return elements[key] = node;
}

SmallVector<ElementCode::Place> ElementCode::getPlaces(const CodeNode *node) const {
  SmallVector<Place> found;
  for (const auto &[owner, place] : places)
    if (owner == node)
      found.push_back(place);
  return found;
}

/// Returns the element `at` of a constant of integers whose elements grow evenly along each dimension, as
/// positions of tokens do; null if it is not such a one.
static AffineExpr readPositions(DenseElementsAttr constant, ArrayRef<AffineExpr> at) {
  ShapedType type = constant.getType();
  if (!type.getElementType().isSignlessInteger() || type.getElementTypeBitWidth() > 64 ||
      type.getElementTypeBitWidth() < 8 || type.getNumElements() == 0)
    return {};
  auto numbers = constant.getValues<APInt>();
  if (!llvm::all_of(numbers, [](const APInt &number) { return number.isSignedIntN(32); }))
    return {};
  SmallVector<int64_t> strides = computeStrides(type.getShape()), steps;
  int64_t first = numbers[0].getSExtValue();
  AffineExpr position = getAffineConstantExpr(first, type.getContext());
  for (auto [stride, size, index] : llvm::zip_equal(strides, type.getShape(), at)) {
    steps.push_back(size == 1 ? 0 : numbers[stride].getSExtValue() - first);
    position = position + index * steps.back();
  }
  for (auto [place, number] : llvm::enumerate(numbers)) {
    int64_t expected = first;
    for (auto [step, index] : llvm::zip_equal(steps, delinearize(static_cast<int64_t>(place), strides)))
      expected += step * index;
    if (number.getSExtValue() != expected)
      return {};
  }
  return position;
}

const CodeNode *ElementCode::expand(Value tensor, ArrayRef<AffineExpr> at) {
  DenseElementsAttr constants;
  if (matchPattern(tensor, m_Constant(&constants)) && constants.isSplat())
    return addConstant(constants.getSplatValue<Attribute>(), constants.getElementType());
  if (AffineExpr position = constants ? readPositions(constants, at) : AffineExpr())
    return addIndex(position, constants.getElementType());
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return nullptr;
  if (std::optional<SmallVector<AffineExpr>> source = stepThroughView(op, at))
    return get(op->getOperand(0), *source);
  if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    Frame none;
    return ofScalar(splat.getInput(), none);
  }
  if (auto structured = dyn_cast<linalg::LinalgOp>(op); structured && structured.hasPureTensorSemantics())
    return expandLinalg(structured, cast<OpResult>(tensor).getResultNumber(), at);
  return expandElementwise(op, at);
}

const CodeNode *ElementCode::expandLinalg(linalg::LinalgOp op, unsigned result, ArrayRef<AffineExpr> at) {
  OpOperand *init = op.getDpsInitOperand(result);
  AffineMap out = op.getMatchingIndexingMap(init);
  if (!out.isProjectedPermutation(/*allowZeroInResults=*/true))
    return nullptr;
  Frame frame;
  frame.op = op;
  frame.loops.resize(op.getNumLoops());
  for (auto [loop, expr] : llvm::zip_equal(out.getResults(), at))
    if (auto dim = dyn_cast<AffineDimExpr>(loop))
      frame.loops[dim.getPosition()] = expr;
  if (op.getNumReductionLoops() != 0)
    return expandReduction(frame, init, at);
  if (llvm::any_of(frame.loops, [](AffineExpr loop) { return !loop; }))
    return nullptr;
  return ofScalar(op.getBlock()->getTerminator()->getOperand(result), frame);
}

const CodeNode *ElementCode::expandReduction(Frame &frame, OpOperand *init, ArrayRef<AffineExpr> at) {
  uint64_t taken = getDims(at);
  SmallVector<unsigned> bound;
  for (auto [loop, size] : llvm::zip_equal(frame.loops, frame.op.getStaticLoopRanges())) {
    if (!loop && size == 1)
      loop = getAffineConstantExpr(0, frame.op.getContext());
    if (loop)
      continue;
    std::optional<unsigned> dim = bindLoop(size, taken);
    if (!dim)
      return nullptr;
    taken |= uint64_t(1) << *dim;
    bound.push_back(*dim);
    loop = getAffineDimExpr(*dim, frame.op.getContext());
  }
  const CodeNode *start = get(init->get(), at);
  for (OpOperand &other : frame.op.getDpsInitsMutable())
    frame.known[frame.op.getMatchingBlockArgument(&other)] = nullptr; // accumulates something else
  BlockArgument argument = frame.op.getMatchingBlockArgument(init);
  frame.known[argument] = bound.empty() ? start : add(CodeNode(Kind::accumulator, argument.getType()));
  const CodeNode *body = ofScalar(
      frame.op.getBlock()->getTerminator()->getOperand(init->getOperandNumber() - frame.op.getNumDpsInputs()),
      frame);
  if (!body || bound.empty())
    return body;
  CodeNode node(Kind::reduction, body->type, frame.op.getTiedOpResult(init), {start, body});
  node.bound = bound;
  return add(std::move(node));
}

/// Expands an operation of arith or math on tensors.
const CodeNode *ElementCode::expandElementwise(Operation *op, ArrayRef<AffineExpr> at) {
  if (!OpTrait::hasElementwiseMappableTraits(op) ||
      !isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || op->getNumResults() != 1)
    return nullptr;
  CodeNode node(Kind::operation, getElementTypeOrSelf(op->getResult(0)), op->getResult(0));
  Frame none;
  for (Value operand : op->getOperands()) {
    node.operands.push_back(isa<RankedTensorType>(operand.getType()) ? get(operand, at)
                                                                     : ofScalar(operand, none));
    if (!node.operands.back())
      return nullptr;
  }
  return add(std::move(node));
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Returns null if the scalar is not computed by code on elements alone.
const CodeNode *ElementCode::ofScalar(Value scalar, Frame &frame) {
  if (auto known = frame.known.find(scalar); known != frame.known.end())
    return known->second;
  const CodeNode *node = nullptr;
  Attribute constant;
  if (auto argument = dyn_cast<BlockArgument>(scalar))
    node = ofArgument(argument, frame);
  else if (matchPattern(scalar, m_Constant(&constant)))
    node = addConstant(constant, scalar.getType());
  else
    node = ofOperation(scalar.getDefiningOp(), scalar, frame);
  return frame.known[scalar] = node;
}

const CodeNode *ElementCode::ofArgument(BlockArgument argument, Frame &frame) {
  if (!frame.op || argument.getOwner() != frame.op.getBlock())
    return addElement(argument, {});
  OpOperand *operand = frame.op.getMatchingOpOperand(argument);
  if (!isa<RankedTensorType>(operand->get().getType())) {
    Frame none;
    return ofScalar(operand->get(), none);
  }
  SmallVector<AffineExpr> at;
  for (AffineExpr expr : frame.op.getMatchingIndexingMap(operand).getResults())
    at.push_back(expr.replaceDims(frame.loops));
  return get(operand->get(), at);
}

const CodeNode *ElementCode::ofOperation(Operation *op, Value scalar, Frame &frame) {
  bool isInside = frame.op && frame.op->isProperAncestor(op);
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return isInside ? addIndex(frame.loops[index.getDim()], index.getType()) : nullptr;
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<AffineExpr> at;
    for (Value operand : extract.getIndices()) {
      const CodeNode *index = ofScalar(operand, frame);
      at.push_back(index ? toIndex(index) : AffineExpr());
      if (!at.back())
        return nullptr;
    }
    return get(extract.getTensor(), at);
  }
  if (auto branch = dyn_cast<scf::IfOp>(op); branch && isInside && !branch.getElseRegion().empty()) {
    unsigned result = cast<OpResult>(scalar).getResultNumber();
    SmallVector<const CodeNode *> parts{ofScalar(branch.getCondition(), frame),
                                        ofScalar(branch.thenYield().getOperand(result), frame),
                                        ofScalar(branch.elseYield().getOperand(result), frame)};
    if (llvm::is_contained(parts, nullptr))
      return nullptr;
    return add(CodeNode(Kind::selection, scalar.getType(), {}, parts));
  }
  bool isCode = isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) && isPure(op) &&
                op->getNumResults() == 1 && op->getNumRegions() == 0;
  if (!isCode || isa<ShapedType>(scalar.getType()))
    return isInside ? nullptr : addElement(scalar, {});
  CodeNode node(Kind::operation, scalar.getType(), scalar);
  for (Value operand : op->getOperands()) {
    node.operands.push_back(isa<ShapedType>(operand.getType()) ? nullptr : ofScalar(operand, frame));
    if (!node.operands.back())
      return isInside ? nullptr : addElement(scalar, {});
  }
  if (isa<arith::SelectOp>(op))
    if (std::optional<bool> condition = decide(node.operands[0]))
      return node.operands[*condition ? 1 : 2];
  return add(std::move(node));
}
