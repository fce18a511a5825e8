// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bufferization of the dialect. Every operation is in destination style, so upstream's
// analysis only needs to know which destinations are read.

#include "fp8/Dialect/FP8/Transforms/BufferizableOpInterfaceImpl.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;

namespace {

/// Returns whether `op` reads the previous value of its destination.
bool readsInit(Operation *op, OpOperand &operand) {
  // Compare operands, not values: another destination may be the same value.
  if (auto matmul = dyn_cast<fp8::MatmulOp>(op))
    return matmul.readsInit() && &operand == matmul.getDpsInitOperand(0);
  if (auto matmul = dyn_cast<fp8::ScaledMatmulOp>(op))
    return matmul.getAccumulate() && &operand == matmul.getDpsInitOperand(0);
  return isa<fp8::UpdateAmaxHistoryOp, fp8::UpdateLossScaleOp>(op);
}

/// Returns the map from the elements that fused code computes to those of `operand`, an input or a stored
/// result of the code; null for any other operand, and where the code works on rows.
AffineMap findElementMap(Operation *op, OpOperand &operand) {
  std::optional<fp8::ElementRegion> region = fp8::ElementRegion::of(op);
  if (!region || region->isEmpty() || !region->rows.empty())
    return {};
  unsigned number = operand.getOperandNumber();
  auto positionIn = [&](OperandRange range) -> std::optional<unsigned> {
    unsigned first = range.empty() ? 0 : range.getBeginOperandIndex();
    bool contains = number >= first && number < first + range.size();
    return contains ? std::optional(number - first) : std::nullopt;
  };
  if (std::optional<unsigned> input = positionIn(region->inputs))
    return region->inputMaps()[*input];
  std::optional<unsigned> out = positionIn(region->outs);
  if (out && *out >= region->firstExtra())
    return region->extraMaps()[*out - region->firstExtra()];
  return out == 0u ? AffineMap::getMultiDimIdentityMap(region->numDims, op->getContext()) : AffineMap();
}

template <typename Op>
struct DestinationStyleModel : DstBufferizableOpInterfaceExternalModel<DestinationStyleModel<Op>, Op> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const AnalysisState &) const {
    return !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand) || readsInit(op, operand);
  }

  /// Every element is read before the element at the same place is written.
  bool bufferizesToElementwiseAccess(Operation *op, const AnalysisState &,
                                     ArrayRef<OpOperand *> operands) const {
    if (isa<fp8::AllReduceOp, fp8::BroadcastOp>(op)) // communicators do these in place
      return true;
    return llvm::all_of(operands, [&](OpOperand *operand) {
      AffineMap map = findElementMap(op, *operand);
      return map && map.isIdentity();
    });
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto dpsOp = cast<DestinationStyleOpInterface>(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        operands.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    SmallVector<Value> inits;
    for (OpOperand &init : dpsOp.getDpsInitsMutable())
      inits.push_back(operands[init.getOperandNumber()]);

    rewriter.setInsertionPoint(op);
    OperationState newState(op->getLoc(), op->getName(), operands, TypeRange(), op->getAttrs());
    for (Region &region : op->getRegions())
      newState.addRegion()->takeBody(region);
    rewriter.create(newState);
    replaceOpWithBufferizedValues(rewriter, op, inits);
    return success();
  }
};

template <typename... Ops>
void attachTo(MLIRContext *context) {
  (Ops::template attachInterface<DestinationStyleModel<Ops>>(*context), ...);
}

} // namespace

void fp8::registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, FP8Dialect *) {
    attachTo<MatmulOp, ScaledMatmulOp, GroupedMatmulOp, ScaledGroupedMatmulOp, AmaxOp, ComputeScaleOp,
             QuantizeOp, QuantizeBlocksOp, DequantizeOp, PackScalesOp, UpdateAmaxHistoryOp, AllReduceOp,
             AllGatherOp, ReduceScatterOp, BroadcastOp, ShiftOp, AllToAllOp, UnscaleOp, UpdateLossScaleOp,
             OnlineAttentionOp, OnlineAttentionGradOp>(context);
  });
}
