// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers every operation of the fp8 dialect on memrefs, or emits an error if it has no lowering.

#include "Cast/CastLowering.h"
#include "Matmul/MatmulLowering.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_CONVERTFP8TOLINALG
#include "fp8/Conversion/Passes.h.inc"

/// Returns the word for the code that `op` becomes (fp8.computes in Marks.def). Of a matmul that is the code
/// after the sums; packing has words of its own.
static StringRef getComputes(Operation *op) {
  return isa<MatmulOp, ScaledMatmulOp, GroupedMatmulOp, ScaledGroupedMatmulOp>(op)
             ? "epilogue"
             : op->getName().stripDialect();
}

void markCode(Operation *before, Operation *op) {
  auto word = StringAttr::get(op->getContext(), getComputes(op));
  Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
  for (Operation *created = first; created != op; created = created->getNextNode())
    if (isa<linalg::LinalgOp, memref::CopyOp, LoopLikeOpInterface>(created) &&
        !created->hasAttr(kComputesAttrName))
      created->setAttr(kComputesAttrName, word);
}

namespace {

LogicalResult lower(Operation *op, const VectorRegisters *registers) {
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
    return op->emitOpError("is on tensors; bufferize before convert-fp8-to-linalg");
  OpBuilder builder(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](MatmulOp op) { return lowerMatmul(builder, op, registers); })
      .Case([&](ScaledMatmulOp op) { return lowerScaledMatmul(builder, op, registers); })
      .Case([&](GroupedMatmulOp op) { return lowerGroupedMatmul(builder, op, registers); })
      .Case([&](ScaledGroupedMatmulOp op) { return lowerScaledGroupedMatmul(builder, op, registers); })
      .Case([&](AmaxOp op) { return lowerAmax(builder, op); })
      .Case([&](QuantizeOp op) { return lowerQuantize(builder, op); })
      .Case([&](QuantizeBlocksOp op) { return lowerQuantizeBlocks(builder, op); })
      .Case([&](DequantizeOp op) { return lowerDequantize(builder, op); })
      .Case([&](PackScalesOp op) { return lowerPackScales(builder, op); })
      .Case<ComputeScaleOp, UpdateAmaxHistoryOp>([](Operation *op) {
        return op->emitOpError("follows the rules of a recipe; run fp8-expand-scaling before "
                               "convert-fp8-to-linalg");
      })
      .Case([](CollectiveOpInterface op) {
        return op->emitOpError("is one operation; run fp8-overlap-collectives before convert-fp8-to-linalg");
      })
      .Default([](Operation *op) { return op->emitOpError("has no lowering for the CPU yet"); });
}

class ConvertFP8ToLinalg : public impl::ConvertFP8ToLinalgBase<ConvertFP8ToLinalg> {
public:
  void runOnOperation() final {
    VectorRegisters registers;
    TargetAttrInterface target = getTarget(getOperation());
    if (auto cpu = dyn_cast<CPUAttr>(target))
      registers = {cpu.getVectorBits() / 32, cpu.getVectorRegisters()};
    auto sums = getOperation()->getAttrOfType<StringAttr>(kHardwareSumsAttrName);
    if (sums && registers.lanes == 16)
      registers.instruction = findMatrixInstruction(sums);
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa_and_nonnull<FP8Dialect>(op->getDialect()) &&
          !isa<YieldOp, IndexOp, StartCollectiveOp, WaitCollectiveOp, RankOp, RankCountOp>(op))
        ops.push_back(op);
    });
    // Report one error per location: one of the user's operations may have become several of ours.
    llvm::DenseSet<Location> failedAt;
    for (Operation *op : ops) {
      if (failedAt.contains(op->getLoc()))
        continue;
      Operation *before = op->getPrevNode();
      if (failed(lower(op, target.hasManyThreads() ? nullptr : &registers))) {
        failedAt.insert(op->getLoc());
        continue;
      }
      markCode(before, op);
      op->erase();
    }
    if (!failedAt.empty())
      signalPassFailure();
  }
};

} // namespace
} // namespace fp8
