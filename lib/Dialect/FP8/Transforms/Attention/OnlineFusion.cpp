// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds fp8.online_attention and fp8.online_attention_grad from the parts of a place. Backward reads the
// numbers of rows that forward stores as f32: maximum, sum, and the sum of probabilities times gradients. The
// last one is also that of the output times its gradient, along the width.

#include "AttentionFusion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;
using Kind = RowReduction::Kind;

std::string AttentionFusion::planOnline() {
  if (std::string reason = planStatistics(); !reason.empty())
    return reason;
  online = std::make_unique<OnlinePlan>(site, *parts, statisticNodes, gradientStatisticNodes);
  if (std::string reason = online->plan(); !reason.empty())
    return reason;
  if (parts->hasGradients) {
    findFirstGradient();
    SmallVector<RowInput> inputs(online->getElements().inputs);
    llvm::append_range(inputs, online->getGradientStatistics().inputs);
    if (!isKnownBeforeGradients(inputs))
      return "its backward pass reads a tensor that is computed after its first gradient";
    if (!site.output->isBeforeInBlock(firstGradient))
      return "its backward pass begins before its output is computed";
  }
  return explainStatisticReaders();
}

/// Builds a tensor of `type` with the dimensions `dims`, outer ones, by `body`, whose block has an argument
/// for each of the inputs.
Value AttentionFusion::buildNumbers(Location loc, ArrayRef<unsigned> dims, ArrayRef<Operand> inputs,
                                    Type type, function_ref<Value(OpBuilder &, Block *)> body) {
  SmallVector<OpFoldResult> all =
      tensor::getMixedSizes(rewriter, loc, cast<MatmulOp>(site.output).getDpsInits().back());
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> loops(parts->query.map.getNumDims(), rewriter.getAffineConstantExpr(0));
  for (auto [loop, dim] : llvm::enumerate(dims)) {
    sizes.push_back(all[*parts->output.map.getResultPosition(rewriter.getAffineDimExpr(dim))]);
    loops[dim] = rewriter.getAffineDimExpr(loop);
  }
  SmallVector<Value> tensors;
  SmallVector<AffineMap> maps;
  for (const Operand &input : inputs) {
    tensors.push_back(input.tensor);
    maps.push_back(input.map.replaceDimsAndSymbols(loops, {}, dims.size(), 0));
  }
  maps.push_back(rewriter.getMultiDimIdentityMap(dims.size()));
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, type);
  SmallVector<utils::IteratorType> iterators(dims.size(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(rewriter, loc, empty.getType(), tensors, empty, maps, iterators);
  SmallVector<Type> types =
      llvm::map_to_vector(tensors, [](Value tensor) { return getElementTypeOrSelf(tensor); });
  types.push_back(type);
  OpBuilder::InsertionGuard guard(rewriter);
  Block *block =
      rewriter.createBlock(&generic.getRegion(), {}, types, SmallVector<Location>(types.size(), loc));
  linalg::YieldOp::create(rewriter, loc, body(rewriter, block));
  return generic.getResult(0);
}

SmallVector<Operand> AttentionFusion::toOperands(ArrayRef<RowInput> inputs) const {
  return llvm::map_to_vector(inputs,
                             [&](const RowInput &input) { return Operand{input.tensor, toMap(input.at)}; });
}

/// Builds the sink in f32, with the dimensions that it is a function of.
Operand AttentionFusion::buildSink() {
  const RowsPlan &plan = online->getSink();
  SmallVector<unsigned> dims;
  SmallVector<AffineExpr> places;
  for (unsigned dim : parts->dims.outer)
    if (site.form.sink->isFunctionOf(dim)) {
      dims.push_back(dim);
      places.push_back(rewriter.getAffineDimExpr(dim));
    }
  Value sink =
      buildNumbers(site.output->getLoc(), dims, toOperands(plan.inputs), rewriter.getF32Type(),
                   [&](OpBuilder &inside, Block *block) { return online->writeSink(inside, block, dims); });
  return {sink, toMap(places)};
}

/// Computes a gradient statistic from `numbers` of rows, and replaces it.
void AttentionFusion::buildGradientStatistic(unsigned number, ArrayRef<Operand> numbers) {
  Value old = gradientStatistics[number];
  auto type = cast<RankedTensorType>(old.getType());
  SmallVector<unsigned> dims;
  for (AffineExpr place : readers.statistics.find(old)->second)
    if (auto dim = dyn_cast<AffineDimExpr>(place))
      dims.push_back(dim.getPosition());
  SmallVector<Operand> inputs = toOperands(online->getGradientStatistics().inputs);
  for (const Operand &input : numbers)
    if (input.tensor)
      inputs.push_back(input);
  Value value =
      buildNumbers(old.getLoc(), dims, inputs, type.getElementType(), [&](OpBuilder &inside, Block *block) {
        return online->writeGradientStatistic(inside, block, number, dims);
      });
  if (value.getType() != type) { // dimensions of size 1
    auto groups = getReassociationIndicesForReshape(cast<RankedTensorType>(value.getType()), type);
    value = tensor::ExpandShapeOp::create(rewriter, old.getLoc(), type, value, *groups);
  }
  rewriter.replaceAllUsesWith(old, value);
}

/// Returns an empty tensor with an f32 for each row, in the order of the output.
Operand AttentionFusion::buildRowTensor() {
  Value output = parts->output.tensor;
  SmallVector<OpFoldResult> all =
      tensor::getMixedSizes(rewriter, output.getLoc(), cast<MatmulOp>(site.output).getDpsInits().back());
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> places;
  for (auto [place, size] : llvm::zip_equal(parts->output.map.getResults(), all))
    if (cast<AffineDimExpr>(place).getPosition() != parts->dims.width.front()) {
      places.push_back(place);
      sizes.push_back(size);
    }
  return {tensor::EmptyOp::create(rewriter, output.getLoc(), sizes, rewriter.getF32Type()), toMap(places)};
}

/// Sums up the output times its gradient for each row.
Operand AttentionFusion::buildProduct(Value output) {
  Location loc = parts->probabilityGrad.getLoc();
  Operand row = buildRowTensor();
  Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0));
  Value init = linalg::FillOp::create(rewriter, loc, zero, row.tensor).getResult(0);
  // The loops are the dimensions of the output, in their order.
  ArrayRef<AffineExpr> loops = parts->output.map.getResults();
  auto toLoops = [&](AffineMap map) {
    SmallVector<AffineExpr> exprs = llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
      return getAffineDimExpr(llvm::find(loops, expr) - loops.begin(), rewriter.getContext());
    });
    return AffineMap::get(loops.size(), 0, exprs, rewriter.getContext());
  };
  AffineMap maps[] = {toLoops(parts->output.map), toLoops(parts->outputGrad.map), toLoops(row.map)};
  SmallVector<utils::IteratorType> iterators = llvm::map_to_vector(loops, [&](AffineExpr loop) {
    return cast<AffineDimExpr>(loop).getPosition() == parts->dims.width.front()
               ? utils::IteratorType::reduction
               : utils::IteratorType::parallel;
  });
  auto generic = linalg::GenericOp::create(
      rewriter, loc, init.getType(), ValueRange{output, parts->outputGrad.tensor}, init, maps, iterators,
      [](OpBuilder &inside, Location loc, ValueRange elements) {
        Value product = arith::MulFOp::create(inside, loc, widen(inside, loc, elements[0]),
                                              widen(inside, loc, elements[1]));
        Value sum = arith::AddFOp::create(inside, loc, elements[2], product);
        linalg::YieldOp::create(inside, loc, sum);
      });
  return {generic.getResult(0), row.map};
}

/// Adds the block of a region: the index of the row and of the key, if there is one, floats, and elements of
/// inputs.
Block *AttentionFusion::addBlock(Region &region, bool hasKey, unsigned numFloats, ValueRange inputs) {
  SmallVector<Type> types(parts->dims.outer.size() + hasKey, rewriter.getIndexType());
  types.append(numFloats, rewriter.getF32Type());
  for (Value input : inputs)
    types.push_back(getElementTypeOrSelf(input));
  return rewriter.createBlock(&region, {}, types, SmallVector<Location>(types.size(), region.getLoc()));
}

/// Builds the forward operation; sets the maximum and the sum if backward reads them.
OnlineAttentionOp AttentionFusion::buildOnlineForward(MutableArrayRef<Operand> numbers) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(site.output);
  Location loc = site.output->getLoc();
  SmallVector<Operand> results = getForwardResults();
  std::optional<Operand> sink = site.form.sink ? std::optional(buildSink()) : std::nullopt;
  Operands all = gather(online->getOperands().take_front(3), online->getScore().inputs, results);
  if (sink)
    all.addInput(*sink);
  std::optional<uint64_t> sinkNumber = sink ? std::optional<uint64_t>(all.inputs.size() - 1) : std::nullopt;
  SmallVector<Kind> further;
  SmallVector<std::optional<unsigned>> positions; // among the results
  for (Kind kind : {Kind::maximum, Kind::sum}) {
    positions.emplace_back();
    if (!online->readsInBackward(kind))
      continue;
    if (std::optional<unsigned> statistic = online->findStatistic(kind)) {
      positions.back() = *statistic + 1;
      continue;
    }
    positions.back() = all.outs.size();
    all.addOut(buildRowTensor());
    further.push_back(kind);
  }
  SmallVector<const CodeNode *> outputs{site.probability};
  outputs.append(statisticNodes);
  KeyLimit limit = limitKeys(site.raw, outputs);
  if (limit.condition)
    all.addInput(*limit.condition);
  auto op =
      OnlineAttentionOp::create(rewriter, loc, all.tensors, all.inputs, all.outs, all.maps, describeForward(),
                                limit.visible, site.form.isBaseTwo, online->hasZeroEmptyRows());
  op.setSink(sinkNumber);
  if (limit.condition)
    op.setVisibleIf(all.inputs.size() - 1);
  online->writeScore(rewriter, addBlock(op.getScore(), /*hasKey=*/true, /*numFloats=*/1, all.inputs));
  if (all.outs.size() > 1)
    online->writeStatistics(rewriter, addBlock(op.getStatistics(), /*hasKey=*/false, /*numFloats=*/2, {}),
                            further);
  SmallVector<AffineMap> outMaps = op.getOutMaps();
  for (auto [number, position] : llvm::zip(numbers, positions))
    if (position)
      number = {op->getResult(*position), outMaps[*position]};
  return op;
}

/// Builds the backward operation, which reads `numbers` of rows.
OnlineAttentionGradOp AttentionFusion::buildOnlineBackward(ArrayRef<Operand> numbers) {
  OpBuilder::InsertionGuard guard(rewriter);
  const RowsPlan &plan = online->getElements();
  Operands all = gather(online->getOperands(), plan.inputs, getBackwardResults());
  for (const Operand &number : numbers)
    if (number.tensor)
      all.addInput(number);
  if (online->sumsProducts())
    all.addOut(buildRowTensor());
  const CodeNode *matmuls[] = {site.raw, parts->probabilityGradNode};
  KeyLimit limit = limitKeys(matmuls, plan.getOutputs());
  if (limit.condition)
    all.addInput(*limit.condition);
  auto op = OnlineAttentionGradOp::create(rewriter, firstGradient->getLoc(), all.tensors, all.inputs,
                                          all.outs, all.maps, describeBackward(), limit.visible);
  if (limit.condition)
    op.setVisibleIf(all.inputs.size() - 1);
  online->writeElements(rewriter, addBlock(op.getElements(), /*hasKey=*/true, /*numFloats=*/2, all.inputs));
  return op;
}

void AttentionFusion::buildOnline() {
  Operand numbers[3]; // in the order of their kinds
  OnlineAttentionOp forwardOp = buildOnlineForward(numbers);
  OnlineAttentionGradOp backwardOp;
  if (parts->hasGradients) {
    rewriter.setInsertionPoint(firstGradient);
    if (online->readsInBackward(Kind::product))
      numbers[2] = buildProduct(forwardOp->getResult(0));
    backwardOp = buildOnlineBackward(numbers);
    if (online->sumsProducts())
      numbers[2] = {backwardOp->getResults().back(), backwardOp.getOutMaps().back()};
    for (unsigned number : llvm::seq<unsigned>(gradientStatistics.size()))
      buildGradientStatistic(number, numbers);
    replace(getBackwardResults(), backwardOp);
  }
  replace(getForwardResults(), forwardOp);
}
