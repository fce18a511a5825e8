// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8.online_attention and fp8.online_attention_grad.

#include "AttentionVerification.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Checks that the dimensions are those that kernels have.
template <typename Op>
static LogicalResult verifyDims(Op op, const AttentionDims &dims) {
  if (dims.keys.size() != 1 || dims.depth.size() != 1 || dims.width.size() != 1)
    return op.emitOpError("must have one dimension each of keys, depth and width");
  return success();
}

/// Checks that `name`, a region, is one block with arguments of these types, and yields these types.
static LogicalResult verifyBlock(Operation *op, StringRef name, Region &region, ArrayRef<Type> arguments,
                                 ArrayRef<Type> yielded, StringRef meaning) {
  if (!llvm::hasSingleElement(region))
    return op->emitOpError() << "`" << name << "` must be one block";
  if (!llvm::equal(region.getArgumentTypes(), arguments))
    return op->emitOpError() << "`" << name << "` must have the arguments (" << arguments << "): " << meaning;
  YieldOp yield = getYield(region.front());
  if (!yield)
    return op->emitOpError() << "`" << name << "` must end in fp8.yield";
  if (!llvm::equal(yield->getOperandTypes(), yielded))
    return op->emitOpError() << "`" << name << "` yields (" << yield->getOperandTypes() << "), expected ("
                             << yielded << ")";
  return success();
}

/// Checks the region of code on one score. It yields two values, and one for each of `numFurther` results.
template <typename Op>
static LogicalResult verifyCode(Op op, StringRef name, const AttentionDims &dims, unsigned numFurther,
                                StringRef meaning) {
  Builder builder(op.getContext());
  SmallVector<Type> arguments(dims.outer.size() + 1, builder.getIndexType());
  arguments.append(Op::kNumMatmulParts, builder.getF32Type());
  for (Value input : op.getInputs())
    arguments.push_back(getElementTypeOrSelf(input));
  SmallVector<Type> yielded(2 + numFurther, builder.getF32Type());
  return verifyBlock(op, name, op.getCode(), arguments, yielded, meaning);
}

//===----------------------------------------------------------------------===//
// OnlineAttentionOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(OnlineAttentionOp, false)

// This cannot fail on a verified operation, because the verifier has compared all sizes.
SmallVector<int64_t> OnlineAttentionOp::getStaticLoopRanges() { return *inferLoopRanges(*this); }

void OnlineAttentionOp::build(OpBuilder &builder, OperationState &state, ValueRange operands,
                              ValueRange inputs, ValueRange outs, ArrayRef<AffineMap> maps, ArrayAttr sites,
                              AffineMapAttr visibleKeys, bool baseTwo, bool zeroEmptyRows) {
  buildAttention<OnlineAttentionOp>(builder, state, operands, inputs, outs, maps, sites, visibleKeys,
                                    /*numRegions=*/2);
  auto &properties = state.getOrAddProperties<Properties>();
  properties.setBaseTwo(baseTwo ? builder.getUnitAttr() : UnitAttr());
  properties.setZeroEmptyRows(zeroEmptyRows ? builder.getUnitAttr() : UnitAttr());
}

/// Checks the region of the statistics, which is empty if there are none.
static LogicalResult verifyStatistics(OnlineAttentionOp op, const AttentionDims &dims) {
  ValueRange further = op.getOuts().drop_front();
  if (further.empty() && op.getStatistics().empty())
    return success();
  Builder builder(op.getContext());
  SmallVector<Type> arguments(dims.outer.size(), builder.getIndexType());
  arguments.append(2, builder.getF32Type());
  SmallVector<Type> yielded =
      llvm::map_to_vector(further, [](Value out) { return getElementTypeOrSelf(out); });
  for (AffineMap map : ArrayRef(op.getOutMaps()).drop_front())
    if (map.isFunctionOfDim(dims.keys.front()))
      return op.emitOpError("has a further result that is a row of all keys, and no statistic");
  return verifyBlock(op, "statistics", op.getStatistics(), arguments, yielded,
                     "the index of the row in each outer dimension, the maximum and the sum of the row");
}

/// Checks that `sink` is an input that has an f32 for each row or for several ones.
static LogicalResult verifySink(OnlineAttentionOp op, const AttentionDims &dims) {
  std::optional<uint64_t> sink = op.getSink();
  if (!sink)
    return success();
  if (*sink >= op.getInputs().size())
    return op.emitOpError() << "`sink` is input " << *sink << ", and there are " << op.getInputs().size();
  if (!getElementTypeOrSelf(op.getInputs()[*sink]).isF32())
    return op.emitOpError("`sink` must be an input of f32");
  if (op.getInputMaps()[*sink].isFunctionOfDim(dims.keys.front()))
    return op.emitOpError("`sink` must be an input without a dimension of keys");
  return success();
}

LogicalResult OnlineAttentionOp::verify() {
  return verifyAttention(
      *this, [&](const AttentionDims &dims) { return verifyDims(*this, dims); },
      [&](const AttentionDims &dims, ArrayRef<int64_t>) -> LogicalResult {
        if (failed(verifyCode(*this, "score", dims, /*numFurther=*/0,
                              "the index of the row in each outer dimension and of the key, the score, and "
                              "the element of each input")))
          return failure();
        if (failed(verifySink(*this, dims)))
          return failure();
        return verifyStatistics(*this, dims);
      });
}

//===----------------------------------------------------------------------===//
// OnlineAttentionGradOp
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(OnlineAttentionGradOp, false)

SmallVector<int64_t> OnlineAttentionGradOp::getStaticLoopRanges() { return *inferLoopRanges(*this); }

void OnlineAttentionGradOp::build(OpBuilder &builder, OperationState &state, ValueRange operands,
                                  ValueRange inputs, ValueRange outs, ArrayRef<AffineMap> maps,
                                  ArrayAttr sites, AffineMapAttr visibleKeys) {
  buildAttention<OnlineAttentionGradOp>(builder, state, operands, inputs, outs, maps, sites, visibleKeys);
}

LogicalResult OnlineAttentionGradOp::verify() {
  return verifyAttention(
      *this,
      [&](const AttentionDims &dims) -> LogicalResult {
        if (failed(verifyDims(*this, dims)))
          return failure();
        return verifyGradientMaps(*this, dims);
      },
      [&](const AttentionDims &dims, ArrayRef<int64_t>) -> LogicalResult {
        unsigned numFurther = getOuts().size() - kNumMainResults;
        for (unsigned i = kNumMainResults; i < getOuts().size(); ++i)
          if (!isa<FloatType>(getElementTypeOrSelf(getOuts()[i])))
            return emitOpError() << "result " << i << " must be of floats";
        return verifyCode(*this, "elements", dims, numFurther,
                          "the index of the row in each outer dimension and of the key, the score, the "
                          "gradient of the probability, and the element of each input");
      });
}
