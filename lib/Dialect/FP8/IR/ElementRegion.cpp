// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions of fused scalar code: one view of them, one verifier.

#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "OpVerification.h"

using namespace mlir;
using namespace fp8;

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

static SmallVector<AffineMap> readMaps(std::optional<ArrayAttr> maps) {
  return maps ? llvm::to_vector(maps->getAsValueRange<AffineMapAttr>()) : SmallVector<AffineMap>();
}

/// An amax or a quantize of `inputs`.
template <typename Op>
static ElementRegion viewProducer(Op op, unsigned rank) {
  SmallVector<AffineMap> maps = readMaps(op.getIndexingMaps());
  if (op.getProducer().empty())
    maps = {AffineMap::getMultiDimIdentityMap(rank, op.getContext())};
  if (!maps.empty())
    rank = maps[0].getNumDims();
  return {op, &op.getProducer(), /*firstArgument=*/0, op.getInputs(), maps, op.getOuts(), rank};
}

std::optional<ElementRegion> ElementRegion::of(Operation *operation) {
  if (auto op = dyn_cast<QuantizeOp>(operation))
    return viewProducer(op, shaped(op.getOuts()[0]).getRank());
  if (auto op = dyn_cast<AmaxOp>(operation))
    return viewProducer(op, shaped(op.getInputs()[0]).getRank());
  auto op = dyn_cast<ScaledMatmulOp>(operation);
  if (!op)
    return std::nullopt;
  unsigned rank = shaped(op.getOuts()[0]).getRank();
  return ElementRegion{op,
                       &op.getEpilogue(),
                       /*firstArgument=*/1,
                       op.getEpilogueInputs(),
                       readMaps(op.getEpilogueMaps()),
                       op.getOuts(),
                       rank};
}

//===----------------------------------------------------------------------===//
// Changing what is fused
//===----------------------------------------------------------------------===//

Operation *fp8::rebuildElementRegion(RewriterBase &rewriter, Operation *operation, ValueRange inputs,
                                     ValueRange outs, ArrayAttr mapsAttr) {
  ElementRegion old = *ElementRegion::of(operation);
  TypeRange types = operation->getNumResults() == 0 ? TypeRange() : TypeRange(outs);
  Location loc = operation->getLoc();
  Operation *rebuilt = nullptr;
  if (auto op = dyn_cast<QuantizeOp>(operation))
    rebuilt = QuantizeOp::create(rewriter, loc, types, inputs, op.getScale(), outs, op.getRecordAmax(),
                                 op.getTranspositionAttr(), op.getBlockAttr(), op.getColumnAttr(), mapsAttr);
  else if (auto op = dyn_cast<AmaxOp>(operation))
    rebuilt = AmaxOp::create(rewriter, loc, types, inputs, outs, op.getBlockAttr(), mapsAttr);
  else if (auto op = dyn_cast<ScaledMatmulOp>(operation))
    rebuilt = ScaledMatmulOp::create(rewriter, loc, types, op.getLhs(), op.getRhs(), op.getLhsScaleInv(),
                                     op.getRhsScaleInv(), inputs, op.getOutScale(), outs,
                                     op.getIndexingMapsAttr(), op.getAccumulationAttr(), op.getSiteAttr(),
                                     op.getRoleAttr(), op.getRecipeAttr(), op.getAccumulateAttr(),
                                     op.getLhsBlockAttr(), op.getRhsBlockAttr(), mapsAttr);
  rebuilt->setDiscardableAttrs(operation->getDiscardableAttrDictionary());
  rewriter.inlineRegionBefore(*old.region, rebuilt->getRegion(0), rebuilt->getRegion(0).begin());
  return rebuilt;
}

LogicalResult fp8::detail::dropUnusedExtras(Operation *op, PatternRewriter &rewriter) {
  ElementRegion element = *ElementRegion::of(op);
  if (op->getNumResults() == 0 || element.numExtras() == 0)
    return rewriter.notifyMatchFailure(op, "has no extra results");
  SmallVector<AffineMap> maps(element.inputMaps());
  SmallVector<Value> outs(element.outs.take_front(element.firstExtra()));
  SmallVector<Value> results(op->getResults().take_front(element.firstExtra()));
  SmallVector<Value> yielded{element.yield().getValue()};
  for (auto [i, map] : llvm::enumerate(element.extraMaps())) {
    Value result = op->getResult(element.firstExtra() + i);
    if (result.use_empty())
      continue;
    maps.push_back(map);
    outs.push_back(element.extras()[i]);
    results.push_back(result);
    yielded.push_back(element.yield().getExtras()[i]);
  }
  if (outs.size() == element.outs.size())
    return rewriter.notifyMatchFailure(op, "every extra result is used");
  rewriter.modifyOpInPlace(element.yield(), [&] { element.yield()->setOperands(yielded); });
  ArrayAttr mapsAttr = maps.empty() ? ArrayAttr() : rewriter.getAffineMapArrayAttr(maps);
  Operation *slim = rebuildElementRegion(rewriter, op, element.inputs, outs, mapsAttr);
  rewriter.replaceAllUsesWith(results, slim->getResults());
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult verifyArguments(const ElementRegion &element, StringRef name) {
  Block &body = element.body();
  for (auto [i, input, map] : llvm::enumerate(element.inputs, element.inputMaps())) {
    if (static_cast<int64_t>(map.getNumResults()) != shaped(input).getRank())
      return element.op->emitOpError()
             << name << " map " << i << " must read an input of rank " << shaped(input).getRank()
             << " in the " << element.numDims << " dimensions of the tensor";
    if (body.getArgument(element.firstArgument + i).getType() != shaped(input).getElementType())
      return element.op->emitOpError() << name << " argument " << element.firstArgument + i
                                       << " must be of type " << shaped(input).getElementType();
  }
  return success();
}

/// Stored at a permutation of the dimensions, or summed into the last ones, in f32.
static LogicalResult verifyExtras(const ElementRegion &element, YieldOp yield, StringRef name) {
  if (yield.getExtras().size() != element.numExtras())
    return element.op->emitOpError() << "the " << name << " yields " << yield.getExtras().size()
                                     << " extra values for " << element.numExtras() << " extra results";
  for (auto [i, map, out, value] :
       llvm::enumerate(element.extraMaps(), element.extras(), yield.getExtras())) {
    unsigned kept = map.getNumResults();
    bool keepsLast =
        kept < element.numDims && map == AffineMap::getMultiDimIdentityMap(element.numDims, map.getContext())
                                             .getSliceMap(element.numDims - kept, kept);
    if (static_cast<int64_t>(kept) != shaped(out).getRank() || !(map.isPermutation() || keepsLast))
      return element.op->emitOpError()
             << name << " map " << element.inputs.size() + i << " must store an extra result of rank "
             << shaped(out).getRank() << " at a permutation of the " << element.numDims
             << " dimensions, or keep the last ones to sum over the others";
    if (value.getType() != shaped(out).getElementType())
      return element.op->emitOpError() << "the " << name << " yields " << value.getType()
                                       << " for an extra result of " << shaped(out).getElementType();
    if (isSummed(map) && !value.getType().isF32())
      return element.op->emitOpError() << "extra result " << i << " is a sum and must be f32";
  }
  return success();
}

LogicalResult fp8::detail::verifyElementRegion(Operation *op, StringRef name) {
  ElementRegion element = *ElementRegion::of(op);
  unsigned inputs = element.inputs.size(), arguments = element.firstArgument + inputs;
  if (element.isEmpty())
    return success();
  if (element.maps.size() < inputs)
    return op->emitOpError() << "has " << inputs << " inputs of its " << name << " and "
                             << element.maps.size() << " maps; each input needs one";
  if (!llvm::hasSingleElement(*element.region) || element.body().getNumArguments() != arguments)
    return op->emitOpError() << "the " << name << " must be one block of " << arguments
                             << " arguments: " << (element.firstArgument ? "the scaled sum and " : "")
                             << "one element of each input";
  for (auto [i, map] : llvm::enumerate(element.maps))
    if (map.getNumSymbols() != 0 || map.getNumDims() != element.numDims)
      return op->emitOpError() << name << " map " << i << " must be in the " << element.numDims
                               << " dimensions of the tensor, without symbols";
  YieldOp yield = getYield(element.body());
  if (!yield)
    return op->emitOpError() << "the " << name << " must end in fp8.yield";
  if (failed(verifyArguments(element, name)))
    return failure();
  return verifyExtras(element, yield, name);
}
