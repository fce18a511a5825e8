// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers operations of the fp8 dialect on memrefs to launches of kernels: each lowering takes an operation
// and replaces it, or leaves it for convert-fp8-to-linalg.

#include "Lowering.h"
#include "fp8/Conversion/FP8ToLinalg/MatmulEpilogue.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fp8 {
#define GEN_PASS_DEF_CONVERTFP8TOGPU
#include "fp8/Conversion/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Replaces `op` by launches, but for its erasure. Returns false if it has no kernel.
static bool lower(Operation *op, LoweringContext &context) {
  OpBuilder builder(op);
  if (auto matmul = dyn_cast<MatmulOp>(op); matmul && matmul.getResume())
    return false;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<MatmulOp, ScaledMatmulOp>([&](Operation *op) { return lowerMatmul(builder, op, context); })
      .Case<GroupedMatmulOp, ScaledGroupedMatmulOp>(
          [&](Operation *op) { return lowerGroupedMatmul(op, context); })
      .Case([&](OnlineAttentionOp op) { return lowerOnlineAttention(builder, op, context); })
      .Case([&](OnlineAttentionGradOp op) { return lowerOnlineAttentionGrad(builder, op, context); })
      .Case([&](QuantizeOp op) { return lowerQuantize(builder, op, context); })
      .Case([&](QuantizeBlocksOp op) { return lowerQuantizeBlocks(builder, op, context); })
      .Case([&](AmaxOp op) { return lowerAmax(builder, op, context); })
      .Case([&](ComputeScaleOp op) { return lowerComputeScale(builder, op, context); })
      .Case([&](UpdateAmaxHistoryOp op) { return lowerUpdateAmaxHistory(builder, op, context); })
      .Default(false);
}

namespace {
struct ConvertFP8ToGPUPass : public fp8::impl::ConvertFP8ToGPUBase<ConvertFP8ToGPUPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto chip = dyn_cast<ChipAttr>(getTarget(module));
    if (!chip) {
      module.emitError("convert-fp8-to-gpu needs a GPU as the module's target, as in fp8.target = "
                       "#fp8.chip<\"sm_90a\">, or the option chip of fp8-gpu-kernels-pipeline");
      return signalPassFailure();
    }
    SmallVector<Operation *> ops;
    module.walk([&](Operation *op) {
      if (isa_and_nonnull<FP8Dialect>(op->getDialect()) && !isa<YieldOp, IndexOp>(op) &&
          llvm::none_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
        ops.push_back(op);
    });
    KernelTable kernels(module, checkSharing);
    AmaxBuffers amaxes;
    LoweringContext context{getChip(chip), kernels, amaxes};
    for (Operation *op : ops) {
      Operation *before = op->getPrevNode();
      kernels.start(op);
      if (!lower(op, context))
        continue;
      markCode(before, op);
      op->erase();
    }
    kernels.finish();
    amaxes.clear(kernels);
    if (context.hasErrors || kernels.hasErrors())
      signalPassFailure();
  }
};
} // namespace
