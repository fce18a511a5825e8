// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8.attention and fp8.attention_grad.

#include "AttentionVerification.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

//===----------------------------------------------------------------------===//
// The region
//===----------------------------------------------------------------------===//

/// Returns the type of the part of `operand` that a row reads or writes: a scalar or a slice along keys.
static Type getPartType(AffineMap map, Value operand, ArrayRef<int64_t> rows) {
  SmallVector<int64_t> sizes;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shaped(operand).getShape()))
    if (isRowDim(expr, rows))
      sizes.push_back(size);
  Type element = shaped(operand).getElementType();
  return sizes.empty() ? element : RankedTensorType::get(sizes, element);
}

template <typename Op>
static LogicalResult verifyArguments(Op op, const AttentionDims &dims, ArrayRef<int64_t> rowShape) {
  Block &body = op.getRows().front();
  unsigned outer = dims.outer.size(), wanted = outer + Op::kNumMatmulRows + op.getInputs().size();
  if (body.getNumArguments() != wanted)
    return op.emitOpError() << "`rows` must have " << wanted << " arguments: the index of the row in each of "
                            << outer << " outer dimensions, "
                            << (Op::kNumMatmulRows == 1 ? "the row of scores"
                                                        : "the rows of scores and of gradients")
                            << ", and the part of each input";
  for (unsigned i = 0; i < outer; ++i)
    if (!body.getArgument(i).getType().isIndex())
      return op.emitOpError() << "argument " << i
                              << " of `rows` is an index of the row and must be of type index";
  for (unsigned i = outer; i < outer + Op::kNumMatmulRows; ++i) {
    auto type = dyn_cast<RankedTensorType>(body.getArgument(i).getType());
    if (!type || !isa<FloatType>(type.getElementType()) || !llvm::equal(type.getShape(), rowShape))
      return op.emitOpError() << "argument " << i << " of `rows` must be a row of floats, such as "
                              << RankedTensorType::get(rowShape, Float32Type::get(op.getContext()));
  }
  SmallVector<int64_t> rows = getRowDims(dims);
  for (auto [i, input, map] : llvm::enumerate(op.getInputs(), op.getInputMaps())) {
    Type part = getPartType(map, input, rows);
    if (op.getInputPart(i).getType() != part)
      return op.emitOpError() << "argument " << outer + Op::kNumMatmulRows + i
                              << " of `rows` must be of type " << part;
  }
  return success();
}

template <typename Op>
static LogicalResult verifyYield(Op op, const AttentionDims &dims, ArrayRef<int64_t> rowShape) {
  YieldOp yield = fp8::detail::getYield(op.getRows().front());
  if (!yield)
    return op.emitOpError("`rows` must end in fp8.yield");
  unsigned further = op.getOuts().size() - Op::kNumMainResults, wanted = Op::kNumMatmulRows + further;
  if (yield->getNumOperands() != wanted)
    return op.emitOpError() << "`rows` yields " << yield->getNumOperands() << " values, expected " << wanted
                            << ": "
                            << (Op::kNumMatmulRows == 1
                                    ? "the row of probabilities"
                                    : "the rows of probabilities and of gradients of the scores")
                            << ", and one for each further result";
  for (unsigned i = 0; i < Op::kNumMatmulRows; ++i) {
    auto type = dyn_cast<RankedTensorType>(yield->getOperand(i).getType());
    if (!type || !isa<FloatType>(type.getElementType()) || !llvm::equal(type.getShape(), rowShape))
      return op.emitOpError() << "`rows` yields " << yield->getOperand(i).getType() << " as value " << i
                              << ", expected a row of floats, such as "
                              << RankedTensorType::get(rowShape, Float32Type::get(op.getContext()));
  }
  SmallVector<int64_t> rows = getRowDims(dims);
  for (auto [i, value] : llvm::enumerate(yield->getOperands().drop_front(Op::kNumMatmulRows))) {
    unsigned number = Op::kNumMainResults + i;
    Type part = getPartType(op.getOutMaps()[number], op.getOuts()[number], rows);
    if (value.getType() != part)
      return op.emitOpError() << "`rows` yields " << value.getType() << " for result " << number
                              << ", expected " << part;
  }
  return success();
}

template <typename Op>
static LogicalResult verifyRegion(Op op, const AttentionDims &dims, ArrayRef<int64_t> ranges) {
  if (!llvm::hasSingleElement(op.getRows()))
    return op.emitOpError("`rows` must be one block");
  SmallVector<int64_t> rowShape = llvm::map_to_vector(dims.keys, [&](unsigned dim) { return ranges[dim]; });
  if (failed(verifyArguments(op, dims, rowShape)))
    return failure();
  return verifyYield(op, dims, rowShape);
}

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(AttentionOp, false)

// These cannot fail on a verified operation, because the verifier has compared all sizes.
SmallVector<int64_t> AttentionOp::getStaticLoopRanges() { return *inferLoopRanges(*this); }
YieldOp AttentionOp::getYield() { return cast<YieldOp>(getRows().front().getTerminator()); }

void AttentionOp::build(OpBuilder &builder, OperationState &state, ValueRange operands, ValueRange inputs,
                        ValueRange outs, ArrayRef<AffineMap> maps, ArrayAttr sites,
                        AffineMapAttr visibleKeys) {
  buildAttention<AttentionOp>(builder, state, operands, inputs, outs, maps, sites, visibleKeys);
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(
      *this, [](const AttentionDims &) { return success(); },
      [&](const AttentionDims &dims, ArrayRef<int64_t> ranges) { return verifyRegion(*this, dims, ranges); });
}

//===----------------------------------------------------------------------===//
// AttentionGradOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(AttentionGradOp, false)

SmallVector<int64_t> AttentionGradOp::getStaticLoopRanges() { return *inferLoopRanges(*this); }
YieldOp AttentionGradOp::getYield() { return cast<YieldOp>(getRows().front().getTerminator()); }

void AttentionGradOp::build(OpBuilder &builder, OperationState &state, ValueRange operands, ValueRange inputs,
                            ValueRange outs, ArrayRef<AffineMap> maps, ArrayAttr sites,
                            AffineMapAttr visibleKeys) {
  buildAttention<AttentionGradOp>(builder, state, operands, inputs, outs, maps, sites, visibleKeys);
}

LogicalResult AttentionGradOp::verify() {
  return verifyAttention(
      *this, [&](const AttentionDims &dims) { return verifyGradientMaps(*this, dims); },
      [&](const AttentionDims &dims, ArrayRef<int64_t> ranges) { return verifyRegion(*this, dims, ranges); });
}
