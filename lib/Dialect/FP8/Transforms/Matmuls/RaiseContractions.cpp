// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns every contraction of floats, whatever linalg op it is written as, into one fp8.matmul.
// Contractions are recognized by their indexing maps and body, never by the name of the op.

#include "EraseUnused.h"
#include "fp8/Analysis/FloatContraction.h"
#include "fp8/Analysis/Zeros.h"
#include "fp8/Dialect/FP8/IR/MixedPrecision.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_RAISECONTRACTIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Drops extensions right before the multiplication: fp8.matmul extends its operands to f32 itself.
/// Not for matmuls in f64, because fp8.matmul multiplies in f64 only if an operand is f64.
static void dropExtensions(FloatContraction &contraction) {
  if (contraction.productType.isF64())
    return;
  for (Value &factor : contraction.factors)
    while (auto extension = factor.getDefiningOp<arith::ExtFOp>())
      factor = extension.getIn();
}

/// Creates a linalg.generic that computes `factor`, a value of the body of `op`, for every element
/// of operand `index`, broadcast along the dimensions `added` of `op`, which become its last ones.
static Value computeFactor(RewriterBase &rewriter, linalg::LinalgOp op, unsigned index, Value factor,
                           ArrayRef<unsigned> added) {
  Value operand = op.getDpsInputs()[index], other = op.getDpsInputs()[1 - index];
  AffineMap otherMap = op.getIndexingMapsArray()[1 - index];
  std::optional<BodySlice> slice = sliceOfOneArgument(factor, op.getBlock());
  if (slice->ops.empty() && added.empty())
    return operand;
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, operand);
  unsigned rank = sizes.size();
  for (unsigned d : added)
    sizes.push_back(tensor::getMixedSize(
        rewriter, loc, other, *otherMap.getResultPosition(getAffineDimExpr(d, rewriter.getContext()))));
  Value init = tensor::EmptyOp::create(rewriter, loc, sizes, factor.getType());
  SmallVector<AffineMap> maps{AffineMap::getMultiDimIdentityMap(sizes.size(), rewriter.getContext())};
  maps.insert(maps.begin(), maps[0].getMajorSubMap(rank));
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  auto clone = [&](OpBuilder &builder, Location bodyLoc, ValueRange arguments) {
    IRMapping mapping;
    mapping.map(slice->argument, arguments[0]);
    for (Operation *inner : slice->ops)
      builder.clone(*inner, mapping);
    linalg::YieldOp::create(builder, bodyLoc, mapping.lookup(factor));
  };
  return linalg::GenericOp::create(rewriter, loc, init.getType(), operand, init, maps, iterators, clone)
      .getResult(0);
}

/// Returns the iteration dimensions that occur in the map number `has` only.
static SmallVector<unsigned> findLoneDims(ArrayRef<AffineMap> maps, unsigned has) {
  SmallVector<unsigned> dims;
  for (unsigned d = 0; d < maps[0].getNumDims(); ++d)
    if (llvm::all_of(llvm::enumerate(maps),
                     [&](auto entry) { return entry.value().isFunctionOfDim(d) == (entry.index() == has); }))
      dims.push_back(d);
  return dims;
}

static AffineMap appendDims(AffineMap map, ArrayRef<unsigned> dims) {
  for (unsigned d : dims)
    map = map.insertResult(getAffineDimExpr(d, map.getContext()), map.getNumResults());
  return map;
}

//===----------------------------------------------------------------------===//
// The initial value of the sums
//===----------------------------------------------------------------------===//

/// Creates a destination with the type and sizes of `init`, without contents.
static Value createDestination(RewriterBase &rewriter, Location loc, Value init) {
  while (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getOutputs().front();
  auto empty = init.getDefiningOp<tensor::EmptyOp>();
  return tensor::EmptyOp::create(rewriter, loc,
                                 empty ? empty.getMixedSizes() : tensor::getMixedSizes(rewriter, loc, init),
                                 getElementTypeOrSelf(init));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Copies the user's attributes from a contraction to its fp8.matmul.
static void copyUserAttributes(Operation *from, Operation *to) {
  for (StringRef name :
       {StringRef(kSiteAttrName), StringRef(kRoleAttrName), StringRef(kMixedPrecisionAttrName)})
    if (Attribute attribute = from->getAttr(name))
      to->setAttr(name, attribute);
}

/// Creates the fp8.matmul of `op`, which is added to `init` or written to it.
static MatmulOp createMatmul(RewriterBase &rewriter, linalg::LinalgOp op, Value lhs, Value rhs, Value init,
                             ArrayRef<AffineMap> maps, bool accumulate) {
  MatmulOp::Properties properties;
  properties.setIndexingMaps(rewriter.getAffineMapArrayAttr(maps));
  properties.setAccumulate(accumulate ? rewriter.getUnitAttr() : nullptr);
  auto matmul = MatmulOp::create(rewriter, op.getLoc(), {lhs, rhs, init}, properties);
  copyUserAttributes(op, matmul);
  return matmul;
}

/// Creates an fp8.matmul without the `repeated` dimensions, which only the result has, and
/// broadcasts the sums along them; with `accumulate` they are added to `init`.
static Value createRepeated(RewriterBase &rewriter, linalg::LinalgOp op, Value lhs, Value rhs, Value init,
                            SmallVector<AffineMap> maps, ArrayRef<unsigned> repeated, bool accumulate) {
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(init), wide = element.isF64() ? element : rewriter.getF32Type();
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> kept;
  AffineMap sumMap = AffineMap::get(maps[2].getNumDims(), 0, rewriter.getContext());
  for (auto [i, size] : llvm::enumerate(tensor::getMixedSizes(rewriter, loc, init))) {
    if (llvm::is_contained(repeated, maps[2].getDimPosition(i)))
      continue;
    sizes.push_back(size);
    kept.push_back(rewriter.getAffineDimExpr(i));
    sumMap = appendDims(sumMap, maps[2].getDimPosition(i));
  }
  AffineMap read = AffineMap::get(maps[2].getNumResults(), 0, kept, rewriter.getContext());
  Value sumInit = tensor::EmptyOp::create(rewriter, loc, sizes, accumulate ? wide : element);
  maps[2] = sumMap;
  Value sums = createMatmul(rewriter, op, lhs, rhs, sumInit, compressUnusedDims(maps), false)->getResult(0);

  AffineMap identity = rewriter.getMultiDimIdentityMap(read.getNumDims());
  SmallVector<utils::IteratorType> iterators(read.getNumDims(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location bodyLoc, ValueRange arguments) {
    Value value = arguments[0];
    if (accumulate) {
      Value old = element == wide ? arguments[1] : arith::ExtFOp::create(b, bodyLoc, wide, arguments[1]);
      value = arith::AddFOp::create(b, bodyLoc, old, value);
    }
    if (value.getType() != element)
      value = arith::TruncFOp::create(b, bodyLoc, element, value);
    linalg::YieldOp::create(b, bodyLoc, value);
  };
  return linalg::GenericOp::create(rewriter, loc, init.getType(), sums, init, ArrayRef{read, identity},
                                   iterators, body)
      .getResult(0);
}

static void raise(RewriterBase &rewriter, linalg::LinalgOp op, FloatContraction &contraction) {
  rewriter.setInsertionPoint(op);
  dropExtensions(contraction);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<unsigned> ofLhs = findLoneDims(maps, 0), ofRhs = findLoneDims(maps, 1);
  Value lhs = computeFactor(rewriter, op, 0, contraction.factors[0], ofRhs);
  Value rhs = computeFactor(rewriter, op, 1, contraction.factors[1], ofLhs);
  if (contraction.negates)
    lhs = arith::NegFOp::create(rewriter, op.getLoc(), lhs);
  maps[0] = appendDims(maps[0], ofRhs);
  maps[1] = appendDims(maps[1], ofLhs);

  Value init = op.getDpsInits()[0];
  Operation *oldInit = init.getDefiningOp();
  bool accumulate = !isFilledWithZeros(init);
  if (!accumulate)
    init = createDestination(rewriter, op.getLoc(), init);
  // A destination may have static sizes where the result has dynamic ones.
  if (init.getType() != op->getResult(0).getType())
    init = tensor::CastOp::create(rewriter, op.getLoc(), op->getResult(0).getType(), init);
  SmallVector<unsigned> repeated = findLoneDims(maps, 2);
  Value result = repeated.empty() ? createMatmul(rewriter, op, lhs, rhs, init, maps, accumulate)->getResult(0)
                                  : createRepeated(rewriter, op, lhs, rhs, init, maps, repeated, accumulate);
  rewriter.replaceOp(op, result);
  if (oldInit)
    fp8::detail::eraseUnused(rewriter, oldInit);
}

namespace {

struct RaiseContractions : fp8::impl::RaiseContractionsBase<RaiseContractions> {
  void runOnOperation() final {
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      if (std::optional<FloatContraction> contraction = matchFloatContraction(op))
        raise(rewriter, op, *contraction);
  }
};

} // namespace
