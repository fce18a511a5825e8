// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides which tensors the region of attention reads, and what it computes again.

#include "RowsRegion.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;
using Kind = CodeNode::Kind;

/// Operations beyond which a mask or bias is read rather than computed again for every score.
static constexpr unsigned kMostRecomputed = 32;

RowsPlan::RowsPlan(const ElementCode &code, ArrayRef<unsigned> keys, ArrayRef<const CodeNode *> matmuls,
                   ArrayRef<const CodeNode *> outputs)
    : code(code), keys(keys), matmuls(matmuls), outputs(outputs) {
  for (unsigned key : keys)
    keyDims |= uint64_t(1) << key;
}

bool RowsPlan::dependsOnMatmuls(const CodeNode *node) {
  if (llvm::is_contained(matmuls, node))
    return true;
  if (auto known = dependent.find(node); known != dependent.end())
    return known->second;
  bool depends =
      llvm::any_of(node->operands, [&](const CodeNode *operand) { return dependsOnMatmuls(operand); });
  return dependent[node] = depends;
}

/// Returns whether the region can read the elements `at` of `tensor`: along whole key dimensions, and at
/// functions of the other indices that stay within the tensor.
bool RowsPlan::canRead(Value tensor, ArrayRef<AffineExpr> at) const {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type)
    return at.empty();
  uint64_t seen = 0;
  for (auto [expr, size] : llvm::zip_equal(at, type.getShape())) {
    uint64_t dims = getDims(expr);
    if (isa<AffineDimExpr>(expr) && (dims & keyDims)) {
      if (seen & dims)
        return false;
      seen |= dims;
      continue;
    }
    std::optional<int64_t> largest = code.getLargest(expr);
    bool isInside = largest && !ShapedType::isDynamic(size) && *largest < size;
    if ((dims & keyDims) || (!isInside && !isa<AffineDimExpr, AffineConstantExpr>(expr)))
      return false;
  }
  return true;
}

/// Returns whether `node` is computed from elements that can be read by few operations; adds their number to
/// `cost`. `readsFloats` becomes true if it reads tensors of floats.
bool RowsPlan::isCheap(const CodeNode *node, unsigned &cost, bool &readsFloats) const {
  if (node->kind == Kind::element) {
    readsFloats |= isa<FloatType>(node->type);
    return canRead(node->value, node->at);
  }
  if (node->kind == Kind::reduction || ++cost > kMostRecomputed)
    return false;
  return llvm::all_of(node->operands,
                      [&](const CodeNode *operand) { return isCheap(operand, cost, readsFloats); });
}

void RowsPlan::addInput(const CodeNode *node, Value tensor, ArrayRef<AffineExpr> at) {
  for (auto [number, input] : llvm::enumerate(inputs))
    if (input.tensor == tensor && llvm::equal(input.at, at)) {
      inputNumbers[node] = number;
      return;
    }
  inputNumbers[node] = inputs.size();
  inputs.push_back({tensor, llvm::to_vector(at)});
}

/// Visits a scalar that does not depend on the matmuls; `isInlined` where it is part of what is computed
/// again.
std::string RowsPlan::visitIndependent(const CodeNode *node, bool isInlined) {
  if (node->kind == Kind::constant || node->kind == Kind::index)
    return "";
  if (node->kind == Kind::element) {
    if (canRead(node->value, node->at)) {
      addInput(node, node->value, node->at);
      return "";
    }
  } else if (!isInlined) {
    unsigned cost = 0;
    bool readsFloats = false, isWide = isRow(node) && (node->dims & ~keyDims);
    isInlined = isCheap(node, cost, readsFloats) && (isWide || !readsFloats);
  }
  if (!isInlined && node->tensor && canRead(node->tensor, node->place)) {
    addInput(node, node->tensor, node->place);
    return "";
  }
  if (node->kind == Kind::element || node->kind == Kind::reduction)
    return "it reads a tensor at indices that mix rows and keys";
  for (const CodeNode *operand : node->operands)
    if (std::string reason = visitIndependent(operand, isInlined); !reason.empty())
      return reason;
  return "";
}

std::string RowsPlan::visit(const CodeNode *node, llvm::function_ref<bool(const CodeNode *)> isKnown) {
  if (!visited.insert(node).second || llvm::is_contained(matmuls, node) || node->kind == Kind::accumulator)
    return "";
  if (!dependsOnMatmuls(node))
    return visitIndependent(node, /*isInlined=*/false);
  if (node->kind == Kind::reduction) {
    if (isKnown && !isRow(node) && node->tensor && isKnown(node) && canRead(node->tensor, node->place)) {
      addInput(node, node->tensor, node->place);
      return "";
    }
    if (isRow(node) || node->bound.size() != keys.size() ||
        !llvm::all_of(node->bound, [&](unsigned dim) { return llvm::is_contained(keys, dim); }))
      return "it reduces along other dimensions than the keys";
  }
  for (const CodeNode *operand : node->operands)
    if (std::string reason = visit(operand, isKnown); !reason.empty())
      return reason;
  return "";
}

std::string RowsPlan::chooseInputs(llvm::function_ref<bool(const CodeNode *)> isKnown) {
  for (const CodeNode *output : outputs)
    if (std::string reason = visit(output, isKnown); !reason.empty())
      return reason;
  return "";
}
