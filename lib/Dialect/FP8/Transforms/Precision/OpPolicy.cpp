// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of elementwise operations under mixed precision. An operation of a narrow type is computed in f32 and
// rounded once: for one addition, multiplication, division or square root that is the narrow type's own.

#include "OpPolicy.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// The table of operations
//===----------------------------------------------------------------------===//

/// Functions whose results cover so many magnitudes, or need so many bits, that a narrow type loses them.
static bool needsF32(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log1pOp, math::Log2Op,
             math::Log10Op, math::PowFOp, math::FPowIOp, math::RsqrtOp, math::AcosOp, math::AsinOp,
             math::AcoshOp, math::CoshOp, math::SinhOp, math::TanOp>(op);
}

bool fp8::isArithmetic(Operation *op) {
  if (op->getNumResults() != 1 || !getElementTypeOrSelf(op->getResult(0)).isF32() || op->getNumRegions() != 0)
    return false;
  if (isa<arith::SelectOp>(op) || isa<math::MathDialect>(op->getDialect()))
    return true;
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::RemFOp, arith::NegFOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(op);
}

Type fp8::getResultType(Operation *op, ArrayRef<Type> types) {
  Type f32 = Float32Type::get(op->getContext());
  if (matchPattern(op, m_Constant()))
    return nullptr;
  if (!isArithmetic(op) || needsF32(op))
    return f32;
  Type widest;
  for (auto [operand, type] : llvm::zip(op->getOperands(), types))
    if (isa<FloatType>(getElementTypeOrSelf(operand)))
      widest = getWiderType(widest, type);
  return widest;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

using Types = DenseMap<Value, Type>;

/// Returns the narrow tensor that `op` reads an element of; null if there is none.
static Value findNarrowSource(Operation *op, const NarrowValues &values) {
  auto extract = dyn_cast<tensor::ExtractOp>(op);
  return extract ? values.find(extract.getTensor()) : Value();
}

/// Returns the types that the policy gives to the values of the body of `op`.
static Types inferTypes(linalg::LinalgOp op, const NarrowValues &values) {
  Types types;
  bool isSum = op.getNumReductionLoops() != 0;
  for (OpOperand *input : op.getDpsInputOperands())
    types[op.getMatchingBlockArgument(input)] = values.getType(input->get());
  for (Operation &inner : op.getBlock()->without_terminator()) {
    SmallVector<Type> operandTypes;
    for (Value operand : inner.getOperands())
      operandTypes.push_back(types.contains(operand) ? types[operand] : values.getType(operand));
    Value source = findNarrowSource(&inner, values);
    for (Value result : inner.getResults())
      types[result] = source                               ? getElementTypeOrSelf(source)
                      : result.getType().isF32() && !isSum ? getResultType(&inner, operandTypes)
                                                           : result.getType();
  }
  return types;
}

namespace {

/// Builds the body of an op again, on narrow inputs. Every value that is narrow is rounded, and extended
/// again for those that compute with it.
class BodyBuilder {
public:
  BodyBuilder(OpBuilder &builder, const Types &types, const NarrowValues &values)
      : builder(builder), types(types), values(values) {}

  /// Makes `value` stand for `old` of the old body.
  void define(Value old, Value value) {
    narrow[old] = value;
    if (value.getType() != old.getType())
      value = arith::ExtFOp::create(builder, value.getLoc(), old.getType(), value);
    mapping.map(old, value);
  }
  void copy(Operation *op);
  /// Returns the value that stands for `old`, of `type`.
  Value get(Value old, Type type) const {
    Value value = narrow.lookup(old);
    return value && value.getType() == type ? value : mapping.lookupOrDefault(old);
  }

private:
  OpBuilder &builder;
  const Types &types;
  const NarrowValues &values;
  IRMapping mapping;             ///< to values of the old types
  DenseMap<Value, Value> narrow; ///< to values of the types by the policy
};

} // namespace

void BodyBuilder::copy(Operation *op) {
  if (Value source = findNarrowSource(op, values)) {
    SmallVector<Value> indices;
    for (Value index : op->getOperands().drop_front())
      indices.push_back(mapping.lookupOrDefault(index));
    return define(op->getResult(0), tensor::ExtractOp::create(builder, op->getLoc(), source, indices));
  }
  Operation *clone = builder.clone(*op, mapping);
  for (auto [old, result] : llvm::zip(op->getResults(), clone->getResults()))
    if (Type type = types.lookup(old); type && type != result.getType())
      define(old, arith::TruncFOp::create(builder, op->getLoc(), type, result));
}

static void eraseDead(Block *block) {
  SmallVector<Operation *> ops;
  for (Operation &op : *block)
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Returns whether `op` reads a narrow value as an input, or elements of one in its body.
static bool readsNarrow(linalg::LinalgOp op, const NarrowValues &values) {
  return llvm::any_of(op.getDpsInputs(), [&](Value input) { return values.find(input) != nullptr; }) ||
         llvm::any_of(*op.getBlock(), [&](Operation &inner) { return findNarrowSource(&inner, values); });
}

/// Returns the type by the policy of result `index`; null for a constant. A result that is computed from the
/// output's old value keeps its type.
static Type getTypeOfResult(linalg::LinalgOp op, unsigned index, const Types &types) {
  Value yielded = op.getBlock()->getTerminator()->getOperand(index);
  if (op.getNumReductionLoops() != 0 || !op.getRegionOutputArgs()[index].use_empty())
    return yielded.getType();
  auto known = types.find(yielded);
  if (known != types.end())
    return known->second;
  return matchPattern(yielded, m_Constant()) ? Type() : yielded.getType();
}

/// Creates `op` again on the narrow values of its inputs. `resultTypes` are those of the elements.
static linalg::GenericOp rebuild(RewriterBase &rewriter, linalg::LinalgOp op, ArrayRef<Type> resultTypes,
                                 const Types &types, const NarrowValues &values) {
  Location loc = op.getLoc();
  SmallVector<Value> inputs, inits;
  for (Value input : op.getDpsInputs()) {
    Value own = values.find(input);
    inputs.push_back(own ? own : input);
  }
  for (auto [init, type] : llvm::zip(op.getDpsInits(), resultTypes))
    inits.push_back(
        getElementTypeOrSelf(init) == type
            ? init
            : tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, init), type));
  auto body = [&](OpBuilder &builder, Location bodyLoc, ValueRange arguments) {
    BodyBuilder bodyBuilder(builder, types, values);
    for (auto [old, argument] : llvm::zip(op.getBlock()->getArguments(), arguments))
      if (old.getArgNumber() < inputs.size() || !old.use_empty())
        bodyBuilder.define(old, argument);
    for (Operation &inner : op.getBlock()->without_terminator())
      bodyBuilder.copy(&inner);
    SmallVector<Value> yields;
    for (auto [yielded, type] : llvm::zip(op.getBlock()->getTerminator()->getOperands(), resultTypes))
      yields.push_back(bodyBuilder.get(yielded, type));
    linalg::YieldOp::create(builder, bodyLoc, yields);
  };
  auto result = linalg::GenericOp::create(rewriter, loc, TypeRange(ValueRange(inits)), inputs, inits,
                                          op.getIndexingMapsArray(), op.getIteratorTypesArray(), body);
  eraseDead(result.getBody());
  return result;
}

void fp8::narrowLinalg(RewriterBase &rewriter, linalg::LinalgOp op, NarrowValues &values) {
  if (!op.hasPureTensorSemantics())
    return;
  Types types = inferTypes(op, values);
  SmallVector<Type> resultTypes;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    resultTypes.push_back(getTypeOfResult(op, i, types));
  SmallVector<bool> areConstant;
  for (auto [result, type] : llvm::zip(op->getResults(), resultTypes)) {
    areConstant.push_back(!type);
    if (!type)
      type = getElementTypeOrSelf(result);
  }
  auto addConstants = [&](ValueRange results) {
    for (auto [result, isConstant] : llvm::zip(results, areConstant))
      if (isConstant)
        values.addConstant(result);
  };
  if (!readsNarrow(op, values))
    return addConstants(op->getResults());
  rewriter.setInsertionPoint(op);
  linalg::GenericOp narrow = rebuild(rewriter, op, resultTypes, types, values);
  for (auto [old, result] : llvm::zip(op->getResults(), narrow.getResults()))
    if (old.getType() == result.getType())
      rewriter.replaceAllUsesWith(old, result);
    else
      values.replace(old, result);
  addConstants(narrow.getResults());
  rewriter.eraseOp(op);
}
