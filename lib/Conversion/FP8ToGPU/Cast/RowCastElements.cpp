// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values of a row's code, each computed where it is first needed: an input is loaded before its first
// use, and what only one element needs is computed beside it.

#include "RowCastKernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <numeric>

using namespace mlir;
using namespace fp8;

/// Loads the elements of one chunk of an input. Elements beyond the end of the row read as its last ones.
void RowKernel::loadChunk(BlockArgument argument, int64_t chunk) {
  const TileOperand &operand = work.inputs[argument.getArgNumber() - region.firstArgument];
  Place place = at(chunk);
  if (isInRow(chunk))
    place.column = atMost(place.column, space.columns - plan.width);
  Values loaded;
  if (plan.width > 1 && operand.hasAdjacentColumns(space)) {
    int64_t alignment = std::gcd(operand.getRowAlignment(), plan.width * operand.getElementBytes());
    loaded = loadAdjacent(b, getAddress(b, space, operand, pointer(operand), place), operand.getElementType(),
                          plan.width, alignment);
  } else {
    for (int64_t j = 0; j < plan.width; ++j) {
      Place next{batch, row, place.column + j};
      Expr value = b.load(getStorageType(operand.getElementType()),
                          getAddress(b, space, operand, pointer(operand), next));
      loaded.push_back(fromStorage(b, b.getLoc(), value.getValue(), operand.getElementType()));
    }
  }
  Values &all = elements[argument];
  all.resize(plan.countElements());
  llvm::copy(loaded, all.begin() + chunk * plan.width);
}

/// Creates a copy of `op`, of the region, on operands that are scalars.
Value RowKernel::cloneOn(Operation *op, function_ref<Value(Value)> getOperand) {
  SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), getOperand);
  Type type = getElementTypeOrSelf(op->getResult(0));
  OperationState state(op->getLoc(), op->getName(), operands, type, op->getAttrs());
  return b.create(state)->getResult(0);
}

Value RowKernel::getElement(Value value, int64_t element) {
  if (!isa<VectorType>(value.getType()))
    return getScalar(value);
  if (auto known = elements.find(value); known != elements.end())
    if (Value computed = known->second[element])
      return computed;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    loadChunk(argument, element / plan.width);
    return elements[value][element];
  }
  Operation *op = value.getDefiningOp();
  Value result;
  DenseElementsAttr constant;
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return getScalar(broadcast.getSource());
  if (matchPattern(op, m_Constant(&constant)))
    return arith::ConstantOp::create(b, constant.getSplatValue<TypedAttr>());
  if (isa<vector::StepOp>(op))
    result = toIndex(columnOf(element / plan.width) + element % plan.width);
  else
    result = cloneOn(op, [&](Value operand) { return getElement(operand, element); });
  Values &all = elements[value];
  all.resize(plan.countElements());
  return all[element] = result;
}

Value RowKernel::getScalar(Value value) {
  if (Value known = scalars.lookupOrNull(value))
    return known;
  Value result;
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getArgNumber() < region.firstArgument) {
    result = getDims(b, space, {batch, row, 0})[argument.getArgNumber()];
  } else if (argument) {
    const TileOperand &operand = work.inputs[argument.getArgNumber() - region.firstArgument];
    Value address = getAddress(b, space, operand, pointer(operand), {batch, row, 0});
    Value stored = b.load(getStorageType(operand.getElementType()), address).getValue();
    result = fromStorage(b, b.getLoc(), stored, operand.getElementType());
  } else if (auto reduction = value.getDefiningOp<vector::ReductionOp>()) {
    result = reduce(reduction);
  } else {
    result = cloneOn(value.getDefiningOp(), [&](Value operand) { return getScalar(operand); });
  }
  scalars.map(value, result);
  return result;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value RowKernel::combine(vector::CombiningKind kind, Value lhs, Value rhs) {
  return vector::makeArithReduction(b, b.getLoc(), kind, lhs, rhs);
}

/// Returns the value that changes nothing when it is combined with another one of the type of `value`.
static Value buildNeutral(KernelBuilder &b, vector::CombiningKind kind, Value value) {
  using Kind = vector::CombiningKind;
  bool isFloat = isa<FloatType>(value.getType());
  auto atomic = [&] {
    switch (kind) {
    case Kind::ADD:
      return isFloat ? arith::AtomicRMWKind::addf : arith::AtomicRMWKind::addi;
    case Kind::MUL:
      return isFloat ? arith::AtomicRMWKind::mulf : arith::AtomicRMWKind::muli;
    case Kind::MINUI:
      return arith::AtomicRMWKind::minu;
    case Kind::MINSI:
      return arith::AtomicRMWKind::mins;
    case Kind::MINNUMF:
      return arith::AtomicRMWKind::minnumf;
    case Kind::MINIMUMF:
      return arith::AtomicRMWKind::minimumf;
    case Kind::MAXUI:
      return arith::AtomicRMWKind::maxu;
    case Kind::MAXSI:
      return arith::AtomicRMWKind::maxs;
    case Kind::MAXNUMF:
      return arith::AtomicRMWKind::maxnumf;
    case Kind::MAXIMUMF:
      return arith::AtomicRMWKind::maximumf;
    case Kind::AND:
      return arith::AtomicRMWKind::andi;
    case Kind::OR:
      return arith::AtomicRMWKind::ori;
    case Kind::XOR:
      return arith::AtomicRMWKind::xori;
    }
    llvm_unreachable("all kinds are listed");
  };
  return arith::getIdentityValue(atomic(), value.getType(), b, b.getLoc());
}

/// Combines the elements of the row: of a chunk, of a thread, of all threads; last the initial value. The
/// order depends on the length of the row alone.
Value RowKernel::reduce(vector::ReductionOp op) {
  vector::CombiningKind kind = op.getKind();
  Value total;
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
    Values parts;
    for (int64_t j = 0; j < plan.width; ++j)
      parts.push_back(getElement(op.getVector(), chunk * plan.width + j));
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
      for (size_t i = 0; i < parts.size() / 2; ++i)
        parts[i] = combine(kind, parts[2 * i], parts[2 * i + 1]);
    Value part = parts.front();
    if (std::optional<Expr> inside = isInRow(chunk))
      part = arith::SelectOp::create(b, inside->getValue(), part, buildNeutral(b, kind, part));
    total = total ? combine(kind, total, part) : part;
  }
  total = combineLanes(kind, total);
  return op.getAcc() ? combine(kind, getScalar(op.getAcc()), total) : total;
}

static Value shuffle(KernelBuilder &b, Value value, int64_t distance) {
  return NVVM::ShflOp::create(b, value.getType(), b.number(-1).getValue(), value,
                              b.number(distance).getValue(), b.number(RowPlan::kWarp - 1).getValue(),
                              NVVM::ShflKind::bfly, /*return_value_and_is_valid=*/UnitAttr());
}

/// Combines the values of the threads of a row; each of them gets the result.
Value RowKernel::combineLanes(vector::CombiningKind kind, Value part) {
  for (int64_t distance = RowPlan::kWarp / 2; distance != 0; distance /= 2)
    part = combine(kind, part, shuffle(b, part, distance));
  int64_t warps = plan.lanes / RowPlan::kWarp;
  if (warps == 1)
    return part;
  // Buffers alternate, so that nobody writes where another warp still reads.
  Value parts = b.staticShared(MemRefType::get({RowPlan::kWarp}, part.getType()), reductions++ % 2);
  b.when(b.lane() == 0, [&] { memref::StoreOp::create(b, part, parts, toIndex(b.warp())); });
  b.barrier();
  part = memref::LoadOp::create(b, parts, toIndex(b.lane() % warps));
  for (int64_t distance = warps / 2; distance != 0; distance /= 2)
    part = combine(kind, part, shuffle(b, part, distance));
  return part;
}
