// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products that have few tiles and a long K become several products of parts of K, whose sums are added: one
// block computes a tile, and most multiprocessors would have none.

#include "ProductConfig.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Conversion/FP8ToLinalg/ProductEpilogue.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fp8 {
#define GEN_PASS_DEF_SPLITPRODUCTS
#include "fp8/Conversion/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// A shorter K is not worth the launches that add up the parts; a part has at least so many bytes of K.
static constexpr int64_t kLongBytes = 4096, kLeastPartBytes = 1024;
/// The sums of all parts are written and read once.
static constexpr int64_t kMostParts = 16;

/// Returns whether the epilogue is of single elements: amaxes and sums over rows are better off in the
/// kernel.
static bool hasElementEpilogue(Operation *op) {
  ElementRegion region = *ElementRegion::of(op);
  bool sums = llvm::any_of(region.extraMaps(), [&](AffineMap map) { return region.sums(map); });
  return region.amaxes.empty() && !sums && !ProductResults::of(op)->outScale;
}

/// Returns into how many parts of K to divide a product; 1 for none.
static int64_t countParts(const Chip &chip, const Product &product, const ProductConfig &config) {
  int64_t m = product.knownSize(product.dims.m), n = product.knownSize(product.dims.n);
  int64_t k = product.knownSize(product.dims.k);
  if (llvm::is_contained({m, n, k}, ShapedType::kDynamic) || product.dims.k.size() != 1 ||
      !product.dims.batch.empty() || product.scalesAlongK != ScalesAlongK::none)
    return 1;
  int64_t bytes = k * getElementTypeOrSelf(product.lhs).getIntOrFloatBitWidth() / 8;
  int64_t rows = config.isSwapped ? n : m, columns = config.isSwapped ? m : n;
  int64_t tiles = llvm::divideCeil(rows, config.tileM) * llvm::divideCeil(columns, config.tileN);
  if (bytes < kLongBytes || 2 * tiles >= chip.multiprocessors)
    return 1;
  int64_t parts = std::min({chip.multiprocessors / tiles, bytes / kLeastPartBytes, kMostParts});
  while (parts > 1 && k % (parts * kPart) != 0)
    --parts;
  return parts;
}

namespace {
/// Divides one product.
class ProductSplitter {
public:
  ProductSplitter(const Product &product, int64_t parts)
      : product(product), parts(parts), builder(product.op), loc(product.op->getLoc()) {}

  LogicalResult split();

private:
  /// Returns the position of K in the operand.
  unsigned findK(bool isLhs) const {
    return *product.maps[isLhs ? 0 : 1].getResultPosition(builder.getAffineDimExpr(product.dims.k.front()));
  }
  /// Returns `memref` with dimension `at` as two, of which the first counts `count` parts.
  Value divide(Value memref, unsigned at, int64_t count);
  /// Returns the map of the operand or of the result, with the parts as dimension at `at`.
  AffineMap addParts(AffineMap map, unsigned at) const;
  /// Creates the product of each part, with f32 sums in `sums`.
  void multiply(Value sums);

  const Product &product;
  int64_t parts;
  mutable OpBuilder builder;
  Location loc;
};
} // namespace

Value ProductSplitter::divide(Value memref, unsigned at, int64_t count) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[at] /= count;
  shape.insert(shape.begin() + at, count);
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0, next = 0; dim < type.getRank(); ++dim) {
    groups.push_back({next++});
    if (dim == at)
      groups.back().push_back(next++);
  }
  return memref::ExpandShapeOp::create(builder, loc, shape, memref, groups);
}

AffineMap ProductSplitter::addParts(AffineMap map, unsigned at) const {
  SmallVector<AffineExpr> results(map.getResults());
  results.insert(results.begin() + at, builder.getAffineDimExpr(map.getNumDims()));
  return AffineMap::get(map.getNumDims() + 1, 0, results, builder.getContext());
}

void ProductSplitter::multiply(Value sums) {
  unsigned lhsAt = findK(true), rhsAt = findK(false);
  Value lhs = divide(product.lhs, lhsAt, parts), rhs = divide(product.rhs, rhsAt, parts);
  ArrayAttr maps = builder.getAffineMapArrayAttr(
      {addParts(product.maps[0], lhsAt), addParts(product.maps[1], rhsAt), addParts(product.maps[2], 0)});
  Operation *created;
  if (auto matmul = dyn_cast<MatmulOp>(product.op)) {
    created = MatmulOp::create(builder, loc, TypeRange(), lhs, rhs, ValueRange(), Value(), sums, maps,
                               matmul.getSiteAttr(), matmul.getRoleAttr(), matmul.getLhsKindAttr(),
                               matmul.getRhsKindAttr(), matmul.getRecipeAttr(), matmul.getKeptAttr(),
                               UnitAttr(), DenseI64ArrayAttr(), ArrayAttr());
  } else {
    auto scaled = cast<ScaledMatmulOp>(product.op);
    // All of K has one scale, in which the parts are one more dimension of size 1.
    auto ofParts = [&](Value scale, ArrayRef<int64_t> block, unsigned at) {
      SmallVector<int64_t> extended(block);
      if (block.empty())
        return std::pair(scale, DenseI64ArrayAttr());
      extended.insert(extended.begin() + at, 0);
      return std::pair(divide(scale, at, 1), builder.getDenseI64ArrayAttr(extended));
    };
    auto [lhsScale, lhsBlock] = ofParts(product.lhsScaleInv, product.lhsBlock, lhsAt);
    auto [rhsScale, rhsBlock] = ofParts(product.rhsScaleInv, product.rhsBlock, rhsAt);
    created = ScaledMatmulOp::create(builder, loc, TypeRange(), lhs, rhs, lhsScale, rhsScale, ValueRange(),
                                     Value(), sums, maps, scaled.getAccumulationAttr(), scaled.getSiteAttr(),
                                     scaled.getRoleAttr(), scaled.getRecipeAttr(), UnitAttr(),
                                     DenseI64ArrayAttr(), lhsBlock, rhsBlock, ArrayAttr());
  }
  created->setDiscardableAttrs(product.op->getDiscardableAttrDictionary());
  Product(created).addNote("K in " + Twine(parts) + " parts");
}

LogicalResult ProductSplitter::split() {
  Operation *op = product.op, *before = op->getPrevNode();
  SmallVector<int64_t> shape(cast<MemRefType>(product.out.getType()).getShape());
  SmallVector<int64_t> allShape{parts};
  llvm::append_range(allShape, shape);
  Value sums = memref::AllocOp::create(builder, loc, MemRefType::get(allShape, builder.getF32Type()));
  multiply(sums);

  // The others are added to the first part.
  auto viewOf = [&](int64_t first, int64_t count, bool isReduced) -> Value {
    SmallVector<OpFoldResult> offsets(allShape.size(), builder.getIndexAttr(0)), strides, sizes;
    strides.assign(allShape.size(), builder.getIndexAttr(1));
    for (int64_t size : allShape)
      sizes.push_back(builder.getIndexAttr(size));
    offsets[0] = builder.getIndexAttr(first);
    sizes[0] = builder.getIndexAttr(count);
    if (!isReduced)
      return memref::SubViewOp::create(builder, loc, sums, offsets, sizes, strides);
    MemRefType type = memref::SubViewOp::inferRankReducedResultType(shape, cast<MemRefType>(sums.getType()),
                                                                    offsets, sizes, strides);
    return memref::SubViewOp::create(builder, loc, type, sums, offsets, sizes, strides);
  };
  Value all = viewOf(0, 1, /*isReduced=*/true), others = viewOf(1, parts - 1, /*isReduced=*/false);
  linalg::ReduceOp::create(builder, loc, others, all, ArrayRef<int64_t>{0},
                           [](OpBuilder &b, Location loc, ValueRange values) {
                             Value sum = arith::AddFOp::create(b, loc, values[1], values[0]);
                             linalg::YieldOp::create(b, loc, sum);
                           });
  if (failed(buildProductEpilogue(builder, op, all)))
    return failure();
  markCode(before, op);
  op->erase();
  return success();
}

namespace {
struct SplitProductsPass : public fp8::impl::SplitProductsBase<SplitProductsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    auto attribute = dyn_cast<ChipAttr>(getTarget(func));
    if (!attribute || hasModuleAttr(func, kProgramOrderAttrName))
      return;
    const Chip &chip = getChip(attribute);
    SmallVector<Operation *> products;
    func.walk([&](Operation *op) {
      bool isOnMemRefs = llvm::none_of(op->getOperandTypes(), llvm::IsaPred<TensorType>);
      // A configuration that is written down is of the whole product.
      if (isa<MatmulOp, ScaledMatmulOp>(op) && isOnMemRefs && !op->hasAttr(kConfigAttrName))
        products.push_back(op);
    });
    for (Operation *op : products) {
      std::optional<FailureOr<ProductConfig>> config = findPlainConfig(chip, op);
      if (!config || failed(*config) || !hasElementEpilogue(op))
        continue;
      Product product(op);
      int64_t parts = countParts(chip, product, **config);
      if (parts > 1 && failed(ProductSplitter(product, parts).split()))
        return signalPassFailure();
    }
  }
};
} // namespace
