// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers matmuls to a packed f32 matmul, followed by an epilogue per element.

#include "MatmulLowering.h"
#include "../Cast/CastLowering.h"
#include "LoopMatmul.h"
#include "MatmulScales.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"
#include "fp8/Conversion/TakingLoop.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fp8;

using BodyBuilder = function_ref<void(OpBuilder &, Location, ValueRange)>;

/// Builds a generic over the elements of `output` that reads `inputs` at `maps`.
static void buildElementwise(OpBuilder &builder, Location loc, ValueRange inputs, ArrayRef<AffineMap> maps,
                             Value output, BodyBuilder body) {
  int64_t rank = cast<MemRefType>(output.getType()).getRank();
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(builder.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  linalg::GenericOp::create(builder, loc, inputs, ValueRange{output}, allMaps, iterators, body);
}

/// Lowers a matmul with an f64 operand or result to loops that sum in f64; such matmuls are rare
/// and not worth packing. Two operands of narrower types are multiplied in f32, as in other matmuls.
static LogicalResult lowerF64Matmul(OpBuilder &builder, MatmulOp op) {
  Location loc = op.getLoc();
  Value out = op.getInit(), sums = out;
  auto type = cast<MemRefType>(sums.getType());
  bool isNarrow = !type.getElementType().isF64();
  if (isNarrow) {
    SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.isDynamicDim(d))
        sizes.push_back(memref::DimOp::create(builder, loc, out, d));
    sums =
        memref::AllocOp::create(builder, loc, MemRefType::get(type.getShape(), builder.getF64Type()), sizes);
  }
  if (isNarrow || !op.getAccumulate()) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(0.0));
    linalg::FillOp::create(builder, loc, zero, sums);
  }
  ContractionDims dims = op.getContractionDims();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<utils::IteratorType> iterators(maps[0].getNumDims(), utils::IteratorType::parallel);
  for (unsigned k : dims.k)
    iterators[k] = utils::IteratorType::reduction;
  auto widen = [](OpBuilder &b, Location loc, Value value, Type type) -> Value {
    return value.getType() == type ? value : arith::ExtFOp::create(b, loc, type, value).getResult();
  };
  bool wideMatmul = llvm::any_of(ValueRange{op.getLhs(), op.getRhs()},
                                 [](Value value) { return getElementTypeOrSelf(value).isF64(); });
  Type productType = wideMatmul ? builder.getF64Type() : builder.getF32Type();
  auto products = linalg::GenericOp::create(
      builder, loc, ValueRange{op.getLhs(), op.getRhs()}, ValueRange{sums}, maps, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value product = arith::MulFOp::create(b, loc, widen(b, loc, args[0], productType),
                                              widen(b, loc, args[1], productType));
        Value sum = arith::AddFOp::create(b, loc, args[2], widen(b, loc, product, b.getF64Type()));
        linalg::YieldOp::create(b, loc, sum);
      });
  products->setAttr(kMatmulsAttrName, markMatmul(op, "f64 loops (CPU)"));
  if (!isNarrow)
    return success();
  buildElementwise(builder, loc, sums, builder.getMultiDimIdentityMap(type.getRank()), out,
                   [&](OpBuilder &b, Location loc, ValueRange args) {
                     Value value = args[0];
                     if (op.getAccumulate())
                       value = arith::AddFOp::create(b, loc, value, widen(b, loc, args[1], b.getF64Type()));
                     linalg::YieldOp::create(
                         b, loc, arith::TruncFOp::create(b, loc, args[1].getType(), value).getResult());
                   });
  return success();
}

namespace {
/// The parts of one element of the result before its epilogue.
struct Sum {
  Value sums;                      ///< the buffer of the sums of products
  Value scale;                     ///< the product of the scale_inv of whole operands; null without
  SmallVector<TensorScale> scales; ///< other scale_inv that a sum is multiplied by, per row or block
  Value addend;                    ///< C; null without `accumulate`

  /// Builds [scale ·] sum [+ C] from elements, and those of `scales`.
  Value build(OpBuilder &b, Location loc, Value value, ValueRange ofElement, Value c) const {
    Value factor = scale;
    for (Value other : ofElement) {
      other = buildWiden(b, loc, other);
      factor = factor ? arith::MulFOp::create(b, loc, factor, other).getResult() : other;
    }
    if (factor)
      value = arith::MulFOp::create(b, loc, factor, value);
    return c ? arith::AddFOp::create(b, loc, value, buildWiden(b, loc, c)).getResult() : value;
  }
};
} // namespace

/// Returns whether `map` reads or writes a box of an operand for a box of the output.
static bool hasBoxes(AffineMap map) {
  return llvm::all_of(map.getResults(), [](AffineExpr expr) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    return isa<AffineDimExpr>(expr) || (constant && constant.getValue() == 0);
  });
}

/// Returns the part of `operand` that `map` reads or writes for `box`, `operand` itself if that is all of it.
static Value viewBox(OpBuilder &builder, Location loc, Value operand, AffineMap map, const OutputBox &box) {
  SmallVector<OpFoldResult> offsets, sizes, strides(map.getNumResults(), builder.getIndexAttr(1));
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    offsets.push_back(dim ? box.offsets[dim.getPosition()] : builder.getIndexAttr(0));
    sizes.push_back(dim ? box.sizes[dim.getPosition()] : builder.getIndexAttr(1));
  }
  bool isWhole = sizes == memref::getMixedSizes(builder, loc, operand) &&
                 llvm::all_of(offsets, [](OpFoldResult offset) { return isZeroInteger(offset); });
  return isWhole ? operand : memref::SubViewOp::create(builder, loc, operand, offsets, sizes, strides);
}

/// Builds the epilogue of a box as one generic operation, whose loops the target orders.
static void buildGenericEpilogue(OpBuilder &builder, const ElementRegion &region, const Sum &sum,
                                 const OutputBox &box) {
  Location loc = region.op->getLoc();
  AffineMap identity = builder.getMultiDimIdentityMap(region.numDims);
  SmallVector<Value> inputs{sum.sums}, outs;
  SmallVector<AffineMap> maps{identity}, outMaps{identity};
  llvm::append_range(maps, region.inputMaps());
  llvm::append_range(outMaps, region.extraMaps());
  for (auto [input, map] : llvm::zip_equal(region.inputs, region.inputMaps()))
    inputs.push_back(viewBox(builder, loc, input, map, box));
  for (const TensorScale &scale : sum.scales) {
    maps.push_back(*scale.getMap());
    inputs.push_back(viewBox(builder, loc, scale.scaleInv, maps.back(), box));
  }
  for (auto [out, map] : llvm::zip_equal(region.outs, outMaps))
    outs.push_back(viewBox(builder, loc, out, map, box));
  llvm::append_range(maps, outMaps);
  SmallVector<utils::IteratorType> iterators(region.numDims, utils::IteratorType::parallel);
  auto indexOf = [&](OpBuilder &b, int64_t dim) -> Value {
    Value inBox = linalg::IndexOp::create(b, loc, dim);
    return getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(b, loc, b.getAffineSymbolExpr(0) + b.getAffineSymbolExpr(1),
                                              {inBox, box.offsets[dim]}));
  };
  linalg::GenericOp::create(
      builder, loc, inputs, outs, maps, iterators, [&](OpBuilder &b, Location loc, ValueRange args) {
        Value out = args[inputs.size()];
        ValueRange scales = args.slice(1 + region.inputs.size(), sum.scales.size());
        Value value = sum.build(b, loc, args[0], scales, sum.addend ? out : Value());
        if (region.isEmpty()) {
          linalg::YieldOp::create(b, loc, buildNarrow(b, loc, value, out.getType()));
          return;
        }
        IRMapping mapping;
        mapping.map(region.body().getArgument(0), value);
        mapping.map(region.body().getArguments().drop_front(), args.slice(1, region.inputs.size()));
        cloneElementCode(b, region, mapping, [&](int64_t dim) { return indexOf(b, dim); });
        linalg::YieldOp::create(b, loc, llvm::map_to_vector(region.yield()->getOperands(), [&](Value v) {
                                  return mapping.lookupOrDefault(v);
                                }));
      });
}

/// Builds the epilogue as loops, which can sum over rows and compute an amax.
static void buildLoopEpilogue(OpBuilder &builder, Operation *op, const Sum &sum) {
  auto buildSum = [&](OpBuilder &b, Location loc, ValueRange indices) {
    Value c;
    if (sum.addend)
      c = memref::LoadOp::create(b, loc, sum.addend, indices);
    auto scales = llvm::map_to_vector(
        sum.scales, [&](const TensorScale &scale) { return scale.load(b, loc, llvm::to_vector(indices)); });
    return sum.build(b, loc, memref::LoadOp::create(b, loc, sum.sums, indices), scales, c);
  };
  MatmulResults results = *MatmulResults::of(op);
  ElementRegion region = *ElementRegion::of(op);
  if (results.outScale)
    return lowerQuantizedEpilogue(builder, op, results.outScale, buildSum);
  Value out = region.outs.front();
  Type element = getElementTypeOrSelf(out);
  auto buildStored = [&](OpBuilder &b, Location loc, ValueRange indices) {
    Value value = buildSum(b, loc, indices);
    return region.isEmpty() ? buildNarrow(b, loc, value, element) : value;
  };
  auto store = [&](OpBuilder &b, Location loc, Value value, ValueRange indices) {
    memref::StoreOp::create(b, loc, value, out, indices);
  };
  ElementLoops(builder, op).run(store, buildStored);
}

/// Returns what the report says about the code of a matmul.
template <typename AnyMatmulOp>
static std::string describeCode(AnyMatmulOp op, StringRef products, StringRef where,
                                const MatmulScales &scales, bool split) {
  bool isFP8 = llvm::any_of(ValueRange{op.getLhs(), op.getRhs()}, [](Value value) {
    return getElementTypeOrSelf(value).getIntOrFloatBitWidth() == 8;
  });
  return (products + (isFP8 ? " of decoded FP8" : "") + scales.describeSums(split) + " (" + where + ")")
      .str();
}

/// Returns whether the epilogue of a box of the result needs no more than boxes of its operands.
static bool isByBoxes(const ElementRegion &region, const Sum &sum) {
  return region.amaxes.empty() && llvm::none_of(region.extraMaps(), isSummed) &&
         llvm::all_of(region.maps, hasBoxes) &&
         llvm::all_of(sum.scales, [](const TensorScale &scale) { return scale.getMap().has_value(); });
}

/// Returns whether the result of a matmul is the sums, without scales and code.
static bool isSumItself(const ElementRegion &region, const Sum &sum) {
  return region.isEmpty() && region.outs.size() == 1 && getElementTypeOrSelf(region.outs.front()).isF32() &&
         !sum.scale && sum.scales.empty() && !sum.addend;
}

/// Returns `map`, from the result of a matmul, in which dimension i is result i of `out`.
static AffineMap toDimsOfResult(AffineMap map, AffineMap out) {
  SmallVector<AffineExpr> dims(out.getNumDims(), getAffineConstantExpr(0, map.getContext()));
  for (auto [i, expr] : llvm::enumerate(out.getResults()))
    dims[cast<AffineDimExpr>(expr).getPosition()] = getAffineDimExpr(i, map.getContext());
  return map.replaceDimsAndSymbols(dims, {}, out.getNumResults(), 0);
}

/// Returns how elements are computed from sums, without the buffer of the sums. Scales of whole operands
/// are loaded and multiplied here.
static FailureOr<Sum> describeSum(OpBuilder &b, Operation *op, const MatmulScales &scales = {}) {
  MatmulResults results = *MatmulResults::of(op);
  if (results.outScale && results.accumulate)
    return op->emitOpError("cannot add to an FP8 result");
  Sum sum;
  Location loc = op->getLoc();
  for (const TensorScale *scale : scales.ofResult()) {
    if (!scale->extents.empty()) {
      sum.scales.push_back(*scale);
      sum.scales.back().map = toDimsOfResult(scale->map, cast<ScaledMatmulOp>(op).getIndexingMapsArray()[2]);
      continue;
    }
    Value other = scale->load(b, loc, {});
    sum.scale = sum.scale ? arith::MulFOp::create(b, loc, sum.scale, other).getResult() : other;
  }
  if (results.accumulate)
    sum.addend = ElementRegion::of(op)->outs.front();
  return sum;
}

/// Builds the epilogue of the whole result.
static void buildWholeEpilogue(OpBuilder &builder, Operation *op, const Sum &sum) {
  ElementRegion region = *ElementRegion::of(op);
  if (!isByBoxes(region, sum))
    return buildLoopEpilogue(builder, op, sum);
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, op->getLoc(), sum.sums);
  SmallVector<OpFoldResult> zeros(sizes.size(), builder.getIndexAttr(0));
  buildGenericEpilogue(builder, region, sum, {zeros, sizes});
}

LogicalResult fp8::buildMatmulEpilogue(OpBuilder &builder, Operation *op, Value sums, bool isScaled) {
  auto scaled = dyn_cast<ScaledMatmulOp>(op);
  FailureOr<Sum> sum = describeSum(builder, op, scaled && !isScaled ? MatmulScales(scaled) : MatmulScales());
  if (failed(sum))
    return failure();
  sum->sums = sums;
  buildWholeEpilogue(builder, op, *sum);
  return success();
}

/// Returns the sums that those of `op` begin with; null if they begin with zero.
static Value getStart(Operation *op) {
  auto matmul = dyn_cast<MatmulOp>(op);
  return matmul && matmul.getResume() ? matmul.getInit() : Value();
}

/// Lowers `op`, an fp8.matmul or fp8.scaled_matmul, to loops and its epilogue after them.
template <typename AnyMatmulOp>
static LogicalResult lowerToLoops(OpBuilder &builder, AnyMatmulOp op, const MatmulScales &scales,
                                  bool split) {
  FailureOr<Sum> sum = describeSum(builder, op, scales);
  if (failed(sum))
    return failure();
  ArrayAttr marks = markMatmul(op, describeCode(op, "f32 loops", "GPU threads", scales, split));
  sum->sums = buildLoopMatmul(builder, op.getLoc(), op.getLhs(), op.getRhs(), op.getIndexingMapsArray(),
                              scales, split, marks, getStart(op));
  buildWholeEpilogue(builder, op, *sum);
  return success();
}

/// Returns the product of the sizes of `group` in `type`, the operand that `map` reads; nullopt if one is
/// dynamic.
static std::optional<int64_t> countIndices(MemRefType type, AffineMap map, ArrayRef<unsigned> group) {
  int64_t count = 1;
  for (unsigned dim : group) {
    unsigned position = *map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
    if (type.isDynamicDim(position))
      return std::nullopt;
    count *= type.getDimSize(position);
  }
  return count;
}

/// Rows, columns and indices of K below which tile registers, which are 16 x 16 sums of 32 products, would
/// mostly multiply zeros.
static constexpr int64_t kLeastTileSide = 8, kLeastTileDepth = 32;

/// Returns what `op` is multiplied with, where the processor offers `available`: that takes operands that are
/// exact in bf16, and a known even K.
template <typename AnyMatmulOp>
static MatrixInstruction chooseInstruction(AnyMatmulOp op, const MatmulScales &scales,
                                           MatrixInstruction available) {
  for (Value operand : {op.getLhs(), op.getRhs()})
    if (!isa<BFloat16Type, Float8E4M3FNType, Float8E5M2Type>(getElementTypeOrSelf(operand)))
      return MatrixInstruction::fma;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  ContractionDims dims = op.getContractionDims();
  auto lhs = cast<MemRefType>(op.getLhs().getType()), rhs = cast<MemRefType>(op.getRhs().getType());
  std::optional<int64_t> depth = countIndices(lhs, maps[0], dims.k);
  if (!depth || *depth % 2 || scales.length % 2)
    return MatrixInstruction::fma;
  bool isThin = countIndices(lhs, maps[0], dims.m).value_or(kLeastTileSide) < kLeastTileSide ||
                countIndices(rhs, maps[1], dims.n).value_or(kLeastTileSide) < kLeastTileSide ||
                *depth < kLeastTileDepth;
  if (available == MatrixInstruction::amx && (isThin || scales.length % kLeastTileDepth))
    return MatrixInstruction::bf16Dots;
  return available;
}

/// Lowers `op`, an fp8.matmul or fp8.scaled_matmul, to a packed matmul with its mark (MatmulMarks.h)
/// and its epilogue: by boxes as part of the matmul, or in loops after it if the epilogue sums over rows
/// or computes an amax.
template <typename AnyMatmulOp>
static LogicalResult lowerToPackedGemm(OpBuilder &builder, AnyMatmulOp op, const MatmulScales &scales,
                                       PackedMatmulOptions options) {
  options.registers.instruction = chooseInstruction(op, scales, options.registers.instruction);
  options.marks = markMatmul(op, describeCode(op, options.traits().products, "CPU", scales, options.split));
  options.start = getStart(op);
  options.onOneThread = isInTask(op);
  options.scales = scales.buildPanelScales(builder, op.getLoc(), {op.getLhs(), op.getRhs()});

  FailureOr<Sum> sum = describeSum(builder, op, scales);
  if (failed(sum))
    return failure();
  ElementRegion region = *ElementRegion::of(op);
  bool byBoxes = isByBoxes(region, *sum);
  if (byBoxes && isSumItself(region, *sum))
    options.result = region.outs.front();
  auto epilogue = [&](OpBuilder &b, Location, const OutputBox &box, Value sums) {
    sum->sums = sums;
    buildGenericEpilogue(b, region, *sum, box);
  };
  FailureOr<Value> sums =
      buildPackedMatmul(builder, op.getLoc(), op.getLhs(), op.getRhs(), op.getIndexingMapsArray(), options,
                        byBoxes ? EpilogueBuilder(epilogue) : EpilogueBuilder());
  if (failed(sums))
    return failure();
  if (!byBoxes) {
    sum->sums = *sums;
    buildLoopEpilogue(builder, op, *sum);
  }
  return success();
}

LogicalResult fp8::lowerMatmul(OpBuilder &builder, MatmulOp op, const VectorRegisters *registers) {
  // An epilogue may read and write f64 beside a matmul in f32; a matmul of f64 has none.
  if (llvm::any_of(ValueRange{op.getLhs(), op.getRhs(), op.getInit()},
                   [](Value value) { return getElementTypeOrSelf(value).isF64(); }))
    return lowerF64Matmul(builder, op);
  if (!registers)
    return lowerToLoops(builder, op, /*scales=*/{}, /*split=*/false);
  return lowerToPackedGemm(builder, op, /*scales=*/{}, {/*split=*/false, *registers, {}, {}, {}});
}

LogicalResult fp8::lowerScaledMatmul(OpBuilder &builder, ScaledMatmulOp op,
                                     const VectorRegisters *registers) {
  auto isPacked = [](Value scaleInv, std::optional<ArrayRef<int64_t>> block) {
    return block && cast<MemRefType>(scaleInv.getType()).getRank() != int64_t(block->size());
  };
  if (isPacked(op.getLhsScaleInv(), op.getLhsBlock()) || isPacked(op.getRhsScaleInv(), op.getRhsBlock()))
    return op.emitOpError(
        "reads packed scales, for which the target has no kernel; leave out fp8-pack-scales");
  MatmulScales scales(op);
  bool split = op.getAccumulation() == Accumulation::split;
  return registers ? lowerToPackedGemm(builder, op, scales, {split, *registers, {}, {}, {}})
                   : lowerToLoops(builder, op, scales, split);
}
