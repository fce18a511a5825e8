// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts bytes by the types of operands and results.

#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;

MemoryTraffic &MemoryTraffic::operator+=(const MemoryTraffic &other) {
  read += other.read;
  written += other.written;
  estimated |= other.estimated;
  return *this;
}

static bool isDynamic(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.hasStaticShape();
}

int64_t fp8::countBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 0;
  Type element = tensor.getElementType();
  // Elements take whole bytes.
  int64_t bytes = element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 8;
  for (int64_t size : tensor.getShape())
    bytes *= ShapedType::isDynamic(size) ? kAssumedSize : size;
  return bytes;
}

/// Returns whether a destination-style operation reads the value of `init`.
static bool readsInit(DestinationStyleOpInterface op, OpOperand &init) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op.getOperation()))
    return linalgOp.payloadUsesValueFromOperand(&init);
  if (auto matmul = dyn_cast<MatmulOp>(op.getOperation()))
    return matmul.readsInit() && &init == op.getDpsInitOperand(0);
  if (auto matmul = dyn_cast<ScaledMatmulOp>(op.getOperation()))
    return matmul.getAccumulate() && &init == op.getDpsInitOperand(0);
  return !isa<QuantizeOp, AmaxOp, ComputeScaleOp, DequantizeOp, AttentionOp, AttentionGradOp,
              OnlineAttentionOp, OnlineAttentionGradOp>(op.getOperation());
}

/// Returns whether `op` is a view or an empty tensor, which moves no data.
static bool isView(Operation *op) {
  return isa<tensor::EmptyOp, tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
             tensor::CastOp, tensor::DimOp>(op);
}

/// Returns whether `op` reads or writes elements of tensors.
static bool movesData(Operation *op) {
  bool isData = isa<DestinationStyleOpInterface>(op) || isa<tensor::TensorDialect>(op->getDialect()) ||
                OpTrait::hasElementwiseMappableTraits(op);
  return isData && !isView(op);
}

llvm::SetVector<Value> fp8::getTensorsRead(Operation *op) {
  llvm::SetVector<Value> reads;
  if (!movesData(op) || isa<tensor::ExtractOp>(op))
    return reads;
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  auto insertion = dyn_cast<tensor::InsertSliceOp>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (destination && destination.isDpsInit(&operand) && !readsInit(destination, operand))
      continue;
    if (insertion && operand.get() == insertion.getDest())
      continue; // the rest of the destination is not touched
    reads.insert(operand.get());
  }
  getUsedValuesDefinedAbove(op->getRegions(), reads); // gathers
  reads.remove_if([](Value value) {
    return !isa<RankedTensorType>(value.getType()) || value.getDefiningOp<tensor::EmptyOp>();
  });
  return reads;
}

MemoryTraffic fp8::countTraffic(Operation *op) {
  MemoryTraffic traffic;
  if (!movesData(op))
    return traffic;
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    traffic.read = countBytes(RankedTensorType::get({}, extract.getType()));
    return traffic;
  }
  auto add = [&](int64_t &sum, Type type) {
    sum += countBytes(type);
    traffic.estimated |= isDynamic(type);
  };
  for (Value value : getTensorsRead(op))
    add(traffic.read, value.getType());
  if (auto insertion = dyn_cast<tensor::InsertSliceOp>(op))
    add(traffic.written, insertion.getSourceType());
  else
    for (Type type : op->getResultTypes())
      add(traffic.written, type);
  return traffic;
}

std::optional<int64_t> fp8::countRuns(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    if (std::optional<APInt> trips = loop.getStaticTripCount())
      return trips->getSExtValue();
  return std::nullopt;
}

MemoryTraffic fp8::countTraffic(Region &region) {
  MemoryTraffic sum;
  for (Operation &op : region.getOps()) {
    sum += countTraffic(&op);
    if (!isa<scf::SCFDialect>(op.getDialect()))
      continue;
    std::optional<int64_t> runs = countRuns(&op);
    for (Region &inner : op.getRegions()) {
      MemoryTraffic once = countTraffic(inner);
      once.read *= runs.value_or(1);
      once.written *= runs.value_or(1);
      once.estimated |= !runs && once.total() != 0;
      sum += once;
    }
  }
  return sum;
}
