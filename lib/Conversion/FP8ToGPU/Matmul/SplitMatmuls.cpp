// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls that have few tiles and a long K become several matmuls of parts of K, whose sums are added: one
// block computes a tile, and most multiprocessors would have none.

#include "MatmulConfig.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Conversion/FP8ToGPU/PartViews.h"
#include "fp8/Conversion/FP8ToLinalg/MatmulEpilogue.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fp8 {
#define GEN_PASS_DEF_SPLITMATMULS
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
  return region.amaxes.empty() && !sums && !MatmulResults::of(op)->outScale;
}

/// Returns into how many parts of K to divide a matmul; 1 for none.
static int64_t countParts(const Chip &chip, const MatmulView &matmul, const MatmulConfig &config) {
  int64_t m = matmul.knownSize(matmul.dims.m), n = matmul.knownSize(matmul.dims.n);
  int64_t k = matmul.knownSize(matmul.dims.k);
  if (llvm::is_contained({m, n, k}, ShapedType::kDynamic) || matmul.dims.k.size() != 1 ||
      !matmul.dims.batch.empty() || matmul.scalesAlongK != ScalesAlongK::none ||
      !haveStrides({matmul.lhs, matmul.rhs}))
    return 1;
  int64_t bytes = k * getElementTypeOrSelf(matmul.lhs).getIntOrFloatBitWidth() / 8;
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
/// Divides one matmul.
class MatmulSplitter {
public:
  /// `unit` is a scale of 1.
  MatmulSplitter(const MatmulView &matmul, int64_t parts, llvm::function_ref<memref::GlobalOp()> unit)
      : matmul(matmul), parts(parts), unit(unit), builder(matmul.op), loc(matmul.op->getLoc()) {}

  LogicalResult split();

private:
  AffineMap addParts(AffineMap map, unsigned at);
  void multiply(Value sums);

  const MatmulView &matmul;
  int64_t parts;
  llvm::function_ref<memref::GlobalOp()> unit;
  OpBuilder builder;
  Location loc;
};
} // namespace

/// Returns the map of an operand or of the result with the parts as dimension `at`.
AffineMap MatmulSplitter::addParts(AffineMap map, unsigned at) {
  SmallVector<AffineExpr> results(map.getResults());
  results.insert(results.begin() + at, builder.getAffineDimExpr(map.getNumDims()));
  return AffineMap::get(map.getNumDims() + 1, 0, results, builder.getContext());
}

/// Creates the matmuls of the parts, whose sums, without scales, become `sums`.
void MatmulSplitter::multiply(Value sums) {
  AffineExpr k = builder.getAffineDimExpr(matmul.dims.k.front());
  unsigned lhsAt = *matmul.maps[0].getResultPosition(k), rhsAt = *matmul.maps[1].getResultPosition(k);
  Value lhs = buildPartView(builder, loc, matmul.lhs, lhsAt, parts);
  Value rhs = buildPartView(builder, loc, matmul.rhs, rhsAt, parts);
  ArrayAttr maps = builder.getAffineMapArrayAttr(
      {addParts(matmul.maps[0], lhsAt), addParts(matmul.maps[1], rhsAt), addParts(matmul.maps[2], 0)});
  Operation *created;
  if (auto matmulOp = dyn_cast<MatmulOp>(matmul.op)) {
    MatmulOp::Properties properties;
    properties.setIndexingMaps(maps);
    properties.setSite(matmulOp.getSiteAttr());
    properties.setRole(matmulOp.getRoleAttr());
    properties.setLhsKind(matmulOp.getLhsKindAttr());
    properties.setRhsKind(matmulOp.getRhsKindAttr());
    properties.setRecipe(matmulOp.getRecipeAttr());
    properties.setKept(matmulOp.getKeptAttr());
    created = MatmulOp::create(builder, loc, {lhs, rhs, sums}, properties);
  } else {
    auto scaled = cast<ScaledMatmulOp>(matmul.op);
    memref::GlobalOp one = unit();
    Value scale = memref::GetGlobalOp::create(builder, loc, one.getType(), one.getSymName());
    ScaledMatmulOp::Properties properties;
    properties.setIndexingMaps(maps);
    properties.setAccumulation(scaled.getAccumulationAttr());
    properties.setSite(scaled.getSiteAttr());
    properties.setRole(scaled.getRoleAttr());
    properties.setRecipe(scaled.getRecipeAttr());
    created = ScaledMatmulOp::create(builder, loc, {lhs, rhs, scale, scale, sums}, properties);
  }
  created->setDiscardableAttrs(matmul.op->getDiscardableAttrDictionary());
  MatmulView(created).addNote("K in " + Twine(parts) + " parts");
}

LogicalResult MatmulSplitter::split() {
  Operation *op = matmul.op, *before = op->getPrevNode();
  ArrayRef<int64_t> shape = cast<MemRefType>(matmul.out.getType()).getShape();
  SmallVector<int64_t> sizes{parts};
  llvm::append_range(sizes, shape);
  Value sums = memref::AllocOp::create(builder, loc, MemRefType::get(sizes, builder.getF32Type()));
  multiply(sums);

  // The sums of the other parts are added to those of the first.
  SmallVector<int64_t> offsets(sizes.size(), 0), strides(sizes.size(), 1);
  sizes[0] = 1;
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(shape, cast<MemRefType>(sums.getType()),
                                                                  offsets, sizes, strides);
  Value first = memref::SubViewOp::create(builder, loc, type, sums, offsets, sizes, strides);
  offsets[0] = 1;
  sizes[0] = parts - 1;
  Value others = memref::SubViewOp::create(builder, loc, sums, offsets, sizes, strides);
  linalg::ReduceOp::create(builder, loc, others, first, ArrayRef<int64_t>{0},
                           [](OpBuilder &b, Location loc, ValueRange values) {
                             Value sum = arith::AddFOp::create(b, loc, values[1], values[0]);
                             linalg::YieldOp::create(b, loc, sum);
                           });
  if (failed(buildMatmulEpilogue(builder, op, first, /*isScaled=*/false)))
    return failure();
  markCode(before, op);
  op->erase();
  return success();
}

/// Creates a scale of 1.
static memref::GlobalOp createUnitScale(ModuleOp module) {
  OpBuilder builder(module.getContext());
  auto type = MemRefType::get({}, builder.getF32Type());
  auto one = DenseElementsAttr::get(RankedTensorType::get({}, builder.getF32Type()), 1.0f);
  auto global = memref::GlobalOp::create(builder, module.getLoc(), "unit_scale",
                                         builder.getStringAttr("private"), type, one, /*constant=*/true,
                                         /*alignment=*/IntegerAttr());
  SymbolTable(module).insert(global);
  return global;
}

namespace {
struct SplitMatmulsPass : public fp8::impl::SplitMatmulsBase<SplitMatmulsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto attribute = dyn_cast<ChipAttr>(getTarget(module));
    if (!attribute || module->hasAttr(kProgramOrderAttrName))
      return;
    const Chip &chip = getChip(attribute);
    SmallVector<Operation *> matmuls;
    module.walk([&](Operation *op) {
      bool isOnMemRefs = llvm::none_of(op->getOperandTypes(), llvm::IsaPred<TensorType>);
      // A configuration that is written down is of the whole matmul.
      if (isa<MatmulOp, ScaledMatmulOp>(op) && isOnMemRefs && !op->hasAttr(kConfigAttrName))
        matmuls.push_back(op);
    });
    memref::GlobalOp one;
    auto unit = [&] { return one ? one : one = createUnitScale(module); };
    for (Operation *op : matmuls) {
      std::optional<FailureOr<MatmulConfig>> config = findPlainConfig(chip, op);
      if (!config || failed(*config) || !hasElementEpilogue(op))
        continue;
      MatmulView matmul(op);
      int64_t parts = countParts(chip, matmul, **config);
      if (parts > 1 && failed(MatmulSplitter(matmul, parts, unit).split()))
        return signalPassFailure();
    }
  }
};
} // namespace
