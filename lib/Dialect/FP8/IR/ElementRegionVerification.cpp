// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verifier of producer and epilogue regions.

#include "OpVerification.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"

using namespace mlir;
using namespace fp8;

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

/// Returns whether a region that works on tensors or vectors may have `type` for `part`.
static bool fitsPart(Type type, Type part) {
  auto vector = dyn_cast<VectorType>(type);
  auto tensor = dyn_cast<RankedTensorType>(part);
  if (!vector || !tensor)
    return type == part;
  return vector.getShape() == tensor.getShape() && vector.getElementType() == tensor.getElementType();
}

static LogicalResult verifyArguments(const ElementRegion &element, StringRef name) {
  Block &body = element.body();
  for (auto [i, input, map] : llvm::enumerate(element.inputs, element.inputMaps())) {
    if (static_cast<int64_t>(map.getNumResults()) != shaped(input).getRank())
      return element.op->emitOpError()
             << name << " map " << i << " must read an input of rank " << shaped(input).getRank()
             << " in the " << element.numDims << " dimensions of the tensor";
    Type wanted = element.partOf(input, map);
    if (!fitsPart(body.getArgument(element.firstArgument + i).getType(), wanted))
      return element.op->emitOpError()
             << name << " argument " << element.firstArgument + i << " must be of type " << wanted;
  }
  return success();
}

/// The map of an extra result with `rows` has all dimensions in `rows` or none of them, and the same
/// for the other dimensions; a dimension of size 1 may be 0.
static bool isExtraMapOfRows(const ElementRegion &element, AffineMap map, ShapedType out) {
  llvm::SetVector<int64_t> dims;
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool unit = expr == getAffineConstantExpr(0, map.getContext()) && out.getDimSize(position) == 1;
    if (dim ? !dims.insert(dim.getPosition()) : !unit)
      return false;
  }
  if (element.sums(map))
    return llvm::equal(dims, element.rows);
  size_t inRow = llvm::count_if(dims, [&](int64_t dim) { return llvm::is_contained(element.rows, dim); });
  return (inRow == 0 || inRow == element.rows.size()) && dims.size() == element.firstArgument + inRow;
}

/// An extra result is stored at a permutation of the dimensions, or summed over the leading ones.
static bool isExtraMap(const ElementRegion &element, AffineMap map, ShapedType out) {
  if (static_cast<int64_t>(map.getNumResults()) != out.getRank())
    return false;
  if (!element.rows.empty())
    return isExtraMapOfRows(element, map, out);
  unsigned kept = map.getNumResults();
  bool keepsLast =
      kept < element.numDims && map == AffineMap::getMultiDimIdentityMap(element.numDims, map.getContext())
                                           .getSliceMap(element.numDims - kept, kept);
  return map.isPermutation() || keepsLast;
}

static LogicalResult verifyExtras(const ElementRegion &element, YieldOp yield, StringRef name) {
  if (yield.getExtras().size() != element.numExtras())
    return element.op->emitOpError() << "the " << name << " yields " << yield.getExtras().size()
                                     << " extra values for " << element.numExtras() << " extra results";
  for (auto [i, map, out, value] :
       llvm::enumerate(element.extraMaps(), element.extras(), yield.getExtras())) {
    if (!isExtraMap(element, map, shaped(out)))
      return element.op->emitOpError()
             << name << " map " << element.inputs.size() + i << " must store an extra result of rank "
             << shaped(out).getRank() << " at a permutation of the " << element.numDims << " dimensions, "
             << (element.rows.empty()
                     ? "or keep the last ones to sum over the others"
                     : "a statistic at those outside of `rows`, or a sum at those of `rows`");
    Type wanted = element.partOf(out, map);
    if (!fitsPart(value.getType(), wanted))
      return element.op->emitOpError()
             << "the " << name << " yields " << value.getType() << " for an extra result of " << wanted;
    if (element.sums(map) && !getElementTypeOrSelf(value).isF32())
      return element.op->emitOpError() << "extra result " << i << " is a sum and must be f32";
  }
  return success();
}

/// Checks that `rows` are some dimensions of the tensor, in order and of static size, and that each
/// input has all of a dimension in `rows` or nothing of it.
static LogicalResult verifyRows(const ElementRegion &element, StringRef name) {
  Operation *op = element.op;
  if (!llvm::is_sorted(element.rows, std::less_equal<int64_t>()) || element.rows.front() < 0 ||
      element.rows.back() >= element.numDims || element.rows.size() >= element.numDims)
    return op->emitOpError() << "`rows` must be some of the " << element.numDims
                             << " dimensions of the tensor, not all, in increasing order";
  bool hasTensors = llvm::any_of(element.body().getArgumentTypes(), llvm::IsaPred<TensorType>);
  if (!isa<TensorType>(element.outs[0].getType()) && hasTensors)
    return op->emitOpError(
        "with `rows` on memrefs computes with vectors, not tensors; run fp8-expand-rows or "
        "fp8-vectorize-rows before bufferization");
  for (auto [i, operand, map] : llvm::enumerate(element.inputs, element.inputMaps())) {
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      bool usesRow =
          llvm::any_of(element.rows, [expr = expr](int64_t dim) { return expr.isFunctionOfDim(dim); });
      if (usesRow && !isRowDim(expr, element.rows))
        return op->emitOpError() << name << " map " << i << " computes with a dimension in `rows`; "
                                 << "those are read whole";
      if (usesRow && shaped(operand).isDynamicDim(position))
        return op->emitOpError() << "dimension d" << cast<AffineDimExpr>(expr).getPosition()
                                 << " is in `rows` and of unknown size";
    }
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
  for (auto [i, map] : llvm::enumerate(element.maps))
    if (map.getNumSymbols() != 0 || map.getNumDims() != element.numDims)
      return op->emitOpError() << name << " map " << i << " must be in the " << element.numDims
                               << " dimensions of the tensor, without symbols";
  if (!element.rows.empty() && failed(verifyRows(element, name)))
    return failure();
  if (!llvm::hasSingleElement(*element.region) || element.body().getNumArguments() != arguments)
    return op->emitOpError() << "the " << name << " must be one block of " << arguments << " arguments: "
                             << (!element.rows.empty()   ? "the index of the row in each other dimension and "
                                 : element.firstArgument ? "the scaled sum and "
                                                         : "")
                             << (element.rows.empty() ? "one element of each input"
                                                      : "the slice of each input along `rows`");
  if (!element.rows.empty() && !llvm::all_of(element.body().getArguments().take_front(element.firstArgument),
                                             [](Value argument) { return argument.getType().isIndex(); }))
    return op->emitOpError() << "the first " << element.firstArgument << " arguments of the " << name
                             << " are the index of the row and must be of type index";
  YieldOp yield = getYield(element.body());
  if (!yield)
    return op->emitOpError() << "the " << name << " must end in fp8.yield";
  if (failed(verifyArguments(element, name)))
    return failure();
  return verifyExtras(element, yield, name);
}

LogicalResult fp8::detail::verifyYieldedPart(Operation *op, ShapedType tensor) {
  ElementRegion element = *ElementRegion::of(op);
  SmallVector<int64_t> sizes =
      llvm::map_to_vector(element.rows, [&](int64_t dim) { return tensor.getDimSize(dim); });
  auto type = dyn_cast<ShapedType>(element.yield().getValue().getType());
  if (sizes.empty() ? !type : type && llvm::equal(type.getShape(), sizes))
    return verifyCastType(op, "the producer yields", getElementTypeOrSelf(element.yield().getValue()));
  InFlightDiagnostic diag = op->emitOpError() << "the producer yields "
                                              << element.yield().getValue().getType() << ", expected ";
  if (sizes.empty())
    return diag << "one element";
  diag << "a row of shape [";
  llvm::interleaveComma(sizes, diag);
  return diag << "]";
}
