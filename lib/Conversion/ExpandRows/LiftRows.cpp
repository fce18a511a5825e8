// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lifts code on a row, operation by operation: each becomes a linalg.generic with the outer dimensions as
// further parallel loops, in front. Sums of a row keep their order.

#include "LiftRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;

AffineMap RowLifter::addOuter(AffineMap map) {
  SmallVector<AffineExpr> exprs;
  for (unsigned dim = 0; dim < numOuter(); ++dim)
    exprs.push_back(b.getAffineDimExpr(dim));
  for (AffineExpr expr : map.getResults())
    exprs.push_back(expr.shiftDims(map.getNumDims(), numOuter()));
  return AffineMap::get(numOuter() + map.getNumDims(), 0, exprs, b.getContext());
}

RowLifter::Lifted RowLifter::read(Value value, AffineMap map) {
  if (auto found = lifted.find(value); found != lifted.end())
    return {found->second.tensor, found->second.map.compose(addOuter(map))};
  AffineMap inRow = map.shiftDims(numOuter());
  return {same.lookupOrDefault(value), inRow};
}

Value RowLifter::makeEmpty(ArrayRef<OpFoldResult> ofRow, Type element) {
  SmallVector<OpFoldResult> all(sizes);
  llvm::append_range(all, ofRow);
  return tensor::EmptyOp::create(b, loc, all, element);
}

void RowLifter::buildGeneric(
    ValueRange inputs, ArrayRef<AffineMap> inputMaps, ValueRange inits, ArrayRef<AffineMap> initMaps,
    ArrayRef<utils::IteratorType> iterators, ValueRange results,
    function_ref<SmallVector<Value>(OpBuilder &, ValueRange ins, ValueRange outs)> body) {
  SmallVector<Value> ins;
  SmallVector<AffineMap> maps;
  for (auto [input, map] : llvm::zip_equal(inputs, inputMaps)) {
    if (indices.contains(input))
      continue;
    Lifted value = read(input, map);
    ins.push_back(value.tensor);
    maps.push_back(value.map);
  }
  for (AffineMap map : initMaps)
    maps.push_back(addOuter(map));
  SmallVector<utils::IteratorType> all(numOuter(), utils::IteratorType::parallel);
  llvm::append_range(all, iterators);
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange(inits), ins, inits, maps, all, [&](OpBuilder &inner, Location at, ValueRange values) {
        SmallVector<Value> elements;
        auto next = values.begin();
        for (Value input : inputs) {
          if (!indices.contains(input)) {
            elements.push_back(*next++);
            continue;
          }
          unsigned dim = indices.lookup(input);
          Value index = linalg::IndexOp::create(inner, at, dim);
          Value offset = getValueOrCreateConstantIndexOp(inner, at, offsets[dim]);
          elements.push_back(inner.createOrFold<arith::AddIOp>(at, offset, index));
        }
        linalg::YieldOp::create(inner, at, body(inner, elements, values.take_back(inits.size())));
      });
  for (auto [result, tensor, map] : llvm::zip(results, generic.getResults(), initMaps)) {
    unsigned rank = cast<ShapedType>(tensor.getType()).getRank();
    lifted[result] = {tensor, b.getMultiDimIdentityMap(rank)};
  }
}

/// Lifts an operation on scalars.
void RowLifter::liftScalar(Operation *op) {
  if (llvm::none_of(op->getOperands(), [&](Value operand) { return isOfRow(operand); })) {
    b.clone(*op, same);
    return;
  }
  SmallVector<Value> inputs, inits;
  for (Value operand : op->getOperands())
    if (isOfRow(operand) && !llvm::is_contained(inputs, operand))
      inputs.push_back(operand);
  for (Type type : op->getResultTypes())
    inits.push_back(makeEmpty({}, type));
  AffineMap none = AffineMap::get(0, 0, b.getContext());
  SmallVector<AffineMap> inputMaps(inputs.size(), none), initMaps(inits.size(), none);
  buildGeneric(inputs, inputMaps, inits, initMaps, {}, op->getResults(),
               [&](OpBuilder &inner, ValueRange elements, ValueRange) {
                 IRMapping mapping(same);
                 mapping.map(inputs, elements);
                 return SmallVector<Value>(inner.clone(*op, mapping)->getResults());
               });
}

/// Lifts the read of an element, which is a view, and of a size.
LogicalResult RowLifter::liftExtract(Operation *op) {
  if (!isOfRow(op->getOperand(0))) {
    b.clone(*op, same);
    return success();
  }
  Lifted source = lifted.lookup(op->getOperand(0));
  SmallVector<AffineExpr> position;
  for (unsigned dim = 0; dim < numOuter(); ++dim)
    position.push_back(b.getAffineDimExpr(dim));
  for (Value index : op->getOperands().drop_front()) {
    std::optional<int64_t> known = getConstantIntValue(index);
    if (!known)
      return failure();
    position.push_back(b.getAffineConstantExpr(*known));
  }
  if (isa<tensor::ExtractOp>(op)) {
    AffineMap element = AffineMap::get(numOuter(), 0, position, b.getContext());
    lifted[op->getResult(0)] = {source.tensor, source.map.compose(element)};
    return success();
  }
  int64_t dim = cast<AffineConstantExpr>(position.back()).getValue();
  auto place = source.map.getResultPosition(b.getAffineDimExpr(numOuter() + dim));
  if (!place)
    return failure();
  OpFoldResult size = tensor::getMixedSize(b, loc, source.tensor, *place);
  same.map(op->getResult(0), getValueOrCreateConstantIndexOp(b, loc, size));
  return success();
}

Value RowLifter::makeInit(Value init, bool isRead) {
  auto type = cast<RankedTensorType>(init.getType());
  bool isOwn = lifted.contains(init);
  if (isOwn && lifted.lookup(init).map.isIdentity())
    return lifted.lookup(init).tensor;
  Lifted value = read(init, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<OpFoldResult> ofRow;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    auto place = value.map.getResultPosition(b.getAffineDimExpr(numOuter() + dim));
    ofRow.push_back(place ? tensor::getMixedSize(b, loc, value.tensor, *place)
                          : OpFoldResult(b.getIndexAttr(type.getDimSize(dim))));
  }
  Value empty = makeEmpty(ofRow, type.getElementType());
  return isRead ? write(init, empty, b.getMultiDimIdentityMap(numOuter() + type.getRank())) : empty;
}

void RowLifter::liftLinalg(linalg::LinalgOp op) {
  auto fill = dyn_cast<linalg::FillOp>(op.getOperation());
  if (fill && !isOfRow(fill.getInputs().front())) {
    Value init = makeInit(fill.getOutputs().front(), /*isRead=*/false);
    Value number = same.lookupOrDefault(fill.getInputs().front());
    Value filled = linalg::FillOp::create(b, loc, number, init).getResult(0);
    set(fill.getResult(0), filled, b.getMultiDimIdentityMap(cast<ShapedType>(filled.getType()).getRank()));
    return;
  }
  SmallVector<Value> inputs, inits;
  SmallVector<AffineMap> inputMaps, initMaps;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    inputs.push_back(input->get());
    inputMaps.push_back(map);
  }
  for (OpOperand &init : op.getDpsInitsMutable()) {
    inits.push_back(makeInit(init.get(), op.payloadUsesValueFromOperand(&init)));
    initMaps.push_back(op.getMatchingIndexingMap(&init));
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  AffineMap scalar = AffineMap::get(op.getNumLoops(), 0, b.getContext());
  unsigned own = inputs.size();
  for (Value value : captured) {
    if (!isOfRow(value))
      continue;
    inputs.push_back(value);
    inputMaps.push_back(scalar);
  }
  Block &payload = *op.getBlock();
  unsigned loops = numOuter();
  buildGeneric(inputs, inputMaps, inits, initMaps, op.getIteratorTypesArray(), op->getResults(),
               [&](OpBuilder &inner, ValueRange elements, ValueRange outs) {
                 IRMapping mapping(same);
                 mapping.map(op.getRegionInputArgs(), elements.take_front(own));
                 mapping.map(ArrayRef(inputs).drop_front(own), elements.drop_front(own));
                 mapping.map(op.getRegionOutputArgs(), outs);
                 for (Operation &code : payload.without_terminator()) {
                   auto index = dyn_cast<linalg::IndexOp>(code);
                   if (!index)
                     inner.clone(code, mapping);
                   else
                     mapping.map(index.getResult(),
                                 linalg::IndexOp::create(inner, loc, loops + index.getDim()).getResult());
                 }
                 return llvm::map_to_vector(payload.getTerminator()->getOperands(),
                                            [&](Value value) { return mapping.lookupOrDefault(value); });
               });
}

/// Lifts a matmul within a row, such as the product of two rows: outer dimensions become batches.
void RowLifter::liftMatmul(MatmulOp op) {
  SmallVector<Value> operands{get(op.getLhs()), get(op.getRhs()), makeInit(op.getInit(), op.readsInit())};
  MatmulOp::Properties properties = op.getProperties();
  properties.setIndexingMaps(b.getAffineMapArrayAttr(
      llvm::map_to_vector(op.getIndexingMapsArray(), [&](AffineMap map) { return addOuter(map); })));
  Value matmul = MatmulOp::create(b, loc, operands, properties).getResult(0);
  set(op.getResult(0), matmul, b.getMultiDimIdentityMap(cast<ShapedType>(matmul.getType()).getRank()));
}

LogicalResult RowLifter::lift(Operation *op) {
  auto isTensor = llvm::IsaPred<TensorType>;
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    SmallVector<OpFoldResult> ofRow = empty.getMixedSizes();
    for (OpFoldResult &size : ofRow)
      if (auto value = dyn_cast<Value>(size))
        size = same.lookupOrDefault(value);
    Value all = makeEmpty(ofRow, empty.getType().getElementType());
    set(empty.getResult(), all, b.getMultiDimIdentityMap(numOuter() + ofRow.size()));
    return success();
  }
  if (isa<tensor::ExtractOp, tensor::DimOp>(op)) {
    if (succeeded(liftExtract(op)))
      return success();
  } else if (auto structured = dyn_cast<linalg::LinalgOp>(op);
             structured && structured.hasPureTensorSemantics()) {
    liftLinalg(structured);
    return success();
  } else if (auto matmul = dyn_cast<MatmulOp>(op); matmul && matmul.isPlain()) {
    liftMatmul(matmul);
    return success();
  } else if (op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
             llvm::none_of(op->getOperandTypes(), isTensor) &&
             llvm::none_of(op->getResultTypes(), isTensor)) {
    liftScalar(op);
    return success();
  }
  return op->emitOpError(
      "in code of a row has no code for rows of this size: linalg operations, matmuls, scalars, and reads "
      "of elements at constant indices have");
}

Value RowLifter::write(Value part, Value out, AffineMap map) {
  auto type = dyn_cast<RankedTensorType>(part.getType());
  unsigned rank = type ? type.getRank() : 0;
  AffineMap all = b.getMultiDimIdentityMap(rank);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  if (type || isOfRow(part)) {
    Lifted value = read(part, all);
    inputs.push_back(value.tensor);
    maps.push_back(value.map);
  }
  maps.push_back(map);
  SmallVector<utils::IteratorType> iterators(numOuter() + rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, out.getType(), inputs, out, maps, iterators,
                                   [&](OpBuilder &inner, Location at, ValueRange values) {
                                     Value written = inputs.empty() ? same.lookupOrDefault(part) : values[0];
                                     linalg::YieldOp::create(inner, at, written);
                                   })
      .getResult(0);
}
