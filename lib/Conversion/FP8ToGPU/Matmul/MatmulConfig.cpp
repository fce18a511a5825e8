// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the kernel for a matmul.

#include "MatmulConfig.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "fp8/Dialect/FP8/IR/GroupedMatmulSupport.h"
#include "fp8/Dialect/FP8/IR/KernelTime.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

/// Returns whether tensor cores multiply the two types: FP8 of both formats, bf16 · bf16, f16 · f16, and
/// TF32.
static bool haveTensorCores(const MatmulProblem &problem) {
  Type lhs = problem.lhs, rhs = problem.rhs;
  auto isFP8 = [](Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); };
  return (isFP8(lhs) && isFP8(rhs)) ||
         (lhs == rhs && (lhs.isBF16() || lhs.isF16() || (lhs.isF32() && problem.isTF32)));
}

MatmulProblem fp8::describeProblem(const MatmulView &matmul) {
  MatmulProblem problem{getElementTypeOrSelf(matmul.lhs),
                        getElementTypeOrSelf(matmul.rhs),
                        matmul.split || matmul.scalesAlongK == ScalesAlongK::blocks,
                        hasModuleAttr(matmul.op, kStrictAccumulationAttrName),
                        matmul.scalesAlongK,
                        matmul.groups ? ShapedType::kDynamic : matmul.knownSize(matmul.dims.batch),
                        matmul.knownSize(matmul.dims.m),
                        matmul.knownSize(matmul.dims.n),
                        matmul.knownSize(matmul.dims.k),
                        matmul.isTF32,
                        /*hasGroups=*/matmul.groups.has_value(),
                        matmul.getPart()};
  ElementRegion epilogue = *ElementRegion::of(matmul.op);
  problem.hasSums = llvm::any_of(epilogue.extraMaps(), [&](AffineMap map) { return epilogue.sums(map); });
  return problem;
}

/// Returns whether a dimension is known to have at most `limit` elements.
static bool isAtMost(int64_t size, int64_t limit) { return !ShapedType::isDynamic(size) && size <= limit; }

/// The widest tile of mma.sync: two sums per element, packed scales, or sums over rows would take more than
/// half of the registers with twice as many columns.
static int64_t getWidestMmaTile(const MatmulProblem &problem) {
  return getWidestTile(MatmulFamily::mma, problem.split || problem.hasSums,
                       problem.scales == ScalesAlongK::packed);
}

/// Two blocks of 256 threads share a multiprocessor: three stages of 16 KiB each, or twice as many of half as
/// much where parts end in the middle of one. Half the tile where half of it would be empty.
static MatmulConfig chooseMma(const MatmulProblem &problem) {
  int64_t tileM = isAtMost(problem.m, 64) ? 64 : 128;
  int64_t tileN = isAtMost(problem.n, 64) ? 64 : getWidestMmaTile(problem);
  if (problem.part % 64 != 0)
    return {MatmulFamily::mma, tileM, tileN, /*tileKBytes=*/32, /*stages=*/6};
  return {MatmulFamily::mma, tileM, tileN, /*tileKBytes=*/64, /*stages=*/3};
}

static constexpr int64_t kWideTileM = 128, kWideTileKBytes = 128, kMostStages = 8;
/// Shared memory that is left for barriers.
static constexpr int64_t kBarriersBytes = 1024;

/// Returns the clocks of a wide kernel per 128 bytes of K: the tiles that a multiprocessor computes one after
/// another, times the clocks of a tile, in which it loads as well as multiplies.
static double countWideClocks(const Chip &chip, const MatmulProblem &problem, int64_t tileN, bool isSwapped) {
  auto known = [](int64_t size) -> int64_t { return ShapedType::isDynamic(size) ? 4096 : size; };
  int64_t batch = ShapedType::isDynamic(problem.batch) ? 1 : problem.batch;
  int64_t m = known(isSwapped ? problem.n : problem.m), n = known(isSwapped ? problem.m : problem.n);
  int64_t tiles = batch * llvm::divideCeil(m, kWideTileM) * llvm::divideCeil(n, tileN);
  // Of wider operands 128 bytes are fewer elements, which take as long.
  StageClocks stage =
      countStageClocks(chip, kWideTileM, tileN, kWideTileKBytes, m, n, static_cast<double>(chip.fp8Rate));
  return llvm::divideCeil(tiles, chip.multiprocessors) * stage.getLongest();
}

/// The narrowest tile of wgmma or tcgen05: packed scales of 128 rows are read from the first row, or from the
/// middle.
static int64_t getNarrowestTile(const MatmulProblem &problem) {
  return problem.scales == ScalesAlongK::packed ? 64 : 16;
}

static int64_t getWidestWideTile(const Chip &chip, const MatmulProblem &problem) {
  return getWidestTile(chip.family, problem.split, problem.scales != ScalesAlongK::none);
}

/// The bytes in a stage of the scales along K: a word for each row, or wide kernels' packed ones, tile by
/// tile.
static int64_t countScaleBytes(const MatmulConfig &config, ScalesAlongK scales) {
  if (scales == ScalesAlongK::none)
    return 0;
  if (scales == ScalesAlongK::blocks || config.family == MatmulFamily::mma)
    return (config.tileM + config.tileN) * 4;
  return (llvm::divideCeil(config.tileM, kPackedRows) + llvm::divideCeil(config.tileN, kPackedRows)) *
         kPackedBytes;
}

/// The most stages that shared memory holds.
static int64_t countStages(const Chip &chip, const MatmulConfig &config, ScalesAlongK scales) {
  int64_t stage = config.stageBytes() + countScaleBytes(config, scales);
  return std::min(kMostStages, (chip.sharedBytes - kBarriersBytes) / stage);
}

/// The widest tile of the fastest.
static MatmulConfig chooseWide(const Chip &chip, const MatmulProblem &problem) {
  int64_t widest = getWidestWideTile(chip, problem);
  MatmulConfig best{chip.family, kWideTileM, widest, kWideTileKBytes, /*stages=*/0};
  double fewest = countWideClocks(chip, problem, widest, /*isSwapped=*/false);
  for (bool isSwapped : {false, true}) {
    if (isSwapped && problem.hasGroups)
      break; // tiles of rows begin where groups do
    for (int64_t tileN = widest; tileN >= getNarrowestTile(problem); tileN /= 2)
      if (double clocks = countWideClocks(chip, problem, tileN, isSwapped); clocks < fewest) {
        fewest = clocks;
        best.tileN = tileN;
        best.isSwapped = isSwapped;
      }
  }
  best.stages = countStages(chip, best, problem.scales);
  return best;
}

static MatmulConfig chooseSimt() {
  return {std::nullopt, /*tileM=*/64, /*tileN=*/64, /*tileKBytes=*/64, /*stages=*/1};
}

MatmulConfig fp8::chooseMatmulConfig(const Chip &chip, const MatmulProblem &problem) {
  if (!haveTensorCores(problem))
    return chooseSimt();
  // The instructions of the mma family run on every chip; tcgen05 has sums in parts only with scales along K.
  bool needsParts = chip.family == MatmulFamily::tcgen05 && problem.split && problem.strict &&
                    problem.scales == ScalesAlongK::none;
  bool isFP8 = problem.lhs.getIntOrFloatBitWidth() == 8;
  bool isMma = getBlockFamily(chip, problem.part) == MatmulFamily::mma ||
               (problem.hasGroups && getGroupedFamily(chip, isFP8) == MatmulFamily::mma);
  return isMma || needsParts ? chooseMma(problem) : chooseWide(chip, problem);
}

//===----------------------------------------------------------------------===//
// Configurations that are given
//===----------------------------------------------------------------------===//

namespace {
/// Changes a configuration as the attribute of an operation says.
class GivenConfig {
public:
  GivenConfig(MatmulConfigAttr given, const Chip &chip, const MatmulView &matmul,
              const MatmulProblem &problem)
      : given(given), chip(chip), matmul(matmul), problem(problem) {}

  LogicalResult apply(MatmulConfig &config) const {
    return success(succeeded(applyFamily(config)) && succeeded(applyOrder(config)) &&
                   succeeded(applyTile(config)) && succeeded(applyStages(config)));
  }

private:
  LogicalResult refuse(const Twine &what) const {
    return matmul.op->emitOpError() << "has " << what << " in " << kConfigAttrName;
  }

  LogicalResult applyFamily(MatmulConfig &config) const {
    if (!config.family)
      return refuse("a configuration, which kernels without tensor cores do not have,");
    std::optional<MatmulFamily> family = given.getFamily();
    if (!family || family == config.family)
      return success();
    // Kernels of mma.sync read packed scales on the chips alone whose matmuls of FP8 they compute.
    if (family != MatmulFamily::mma || problem.scales == ScalesAlongK::packed)
      return refuse("family = " + stringifyMatmulFamily(*family) + ", but this chip computes it by " +
                    stringifyMatmulFamily(*config.family) + ",");
    config = chooseMma(problem);
    return success();
  }

  LogicalResult applyOrder(MatmulConfig &config) const {
    if (!given.getSwapped())
      return success();
    if (*given.getSwapped() && (config.family == MatmulFamily::mma || problem.hasGroups))
      return refuse("swapped = true, which kernels of mma and grouped matmuls do not know,");
    config.isSwapped = *given.getSwapped();
    return success();
  }

  LogicalResult applyTile(MatmulConfig &config) const {
    bool isMma = config.family == MatmulFamily::mma;
    if (int64_t rows = given.getTileM()) {
      if (rows != kWideTileM && !(isMma && rows == 64))
        return refuse("tile_m = " + Twine(rows) + ", which must be " + (isMma ? "64 or 128" : "128") + ",");
      config.tileM = rows;
    }
    if (int64_t columns = given.getTileN()) {
      int64_t narrowest = isMma ? 64 : getNarrowestTile(problem);
      int64_t widest = isMma ? getWidestMmaTile(problem) : getWidestWideTile(chip, problem);
      if (columns < narrowest || columns > widest || !llvm::isPowerOf2_64(columns))
        return refuse("tile_n = " + Twine(columns) + ", which must be a power of two from " +
                      Twine(narrowest) + " to " + Twine(widest) + ",");
      config.tileN = columns;
    }
    if (!isMma)
      config.stages = countStages(chip, config, problem.scales);
    return success();
  }

  LogicalResult applyStages(MatmulConfig &config) const {
    int64_t stages = given.getStages();
    if (!stages)
      return success();
    int64_t most = countStages(chip, config, problem.scales);
    if (stages < 2 || stages > most)
      return refuse("stages = " + Twine(stages) + ", which must be from 2 to " + Twine(most) + ",");
    config.stages = stages;
    return success();
  }

  MatmulConfigAttr given;
  const Chip &chip;
  const MatmulView &matmul;
  const MatmulProblem &problem;
};
} // namespace

FailureOr<MatmulConfig> fp8::findMatmulConfig(const Chip &chip, const MatmulView &matmul) {
  MatmulProblem problem = describeProblem(matmul);
  MatmulConfig config = chooseMatmulConfig(chip, problem);
  Attribute attribute = matmul.op->getAttr(kConfigAttrName);
  if (!attribute)
    return config;
  auto given = dyn_cast<MatmulConfigAttr>(attribute);
  if (!given)
    return matmul.op->emitOpError() << "has " << attribute << " as " << kConfigAttrName
                                    << ", which must be a #fp8.product_config<…>";
  if (failed(GivenConfig(given, chip, matmul, problem).apply(config)))
    return failure();
  return config;
}

void fp8::addMatmulClocks(gpu::LaunchFuncOp launch, const Chip &chip, const MatmulView &matmul,
                          const MatmulConfig &config, bool inParts) {
  int64_t batch = matmul.groups ? 1 : matmul.knownSize(matmul.dims.batch);
  int64_t m = matmul.knownSize(matmul.dims.m), n = matmul.knownSize(matmul.dims.n);
  int64_t k = matmul.knownSize(matmul.dims.k);
  if (llvm::is_contained({batch, m, n, k}, ShapedType::kDynamic))
    return;
  MatmulWork work{batch,
                  m,
                  n,
                  k,
                  getElementTypeOrSelf(matmul.lhs).getIntOrFloatBitWidth() / 8,
                  config.family.has_value(),
                  config.tileM,
                  config.tileN,
                  config.tileKBytes,
                  config.isSwapped};
  work.hasScaledParts = matmul.scalesAlongK == ScalesAlongK::blocks;
  if (work.hasScaledParts || (matmul.split && inParts))
    work.part = matmul.getPart();
  work.hasRowScales =
      matmul.scalesAlongK == ScalesAlongK::none && !(matmul.lhsBlock.empty() && matmul.rhsBlock.empty());
  KernelCost cost = getKernelCost(launch);
  cost.matmul = countMatmulClocks(chip, work);
  setKernelCost(launch, cost);
}

MatmulConfigAttr fp8::toAttribute(MLIRContext *context, const MatmulConfig &config) {
  return MatmulConfigAttr::get(context, config.family, config.tileM, config.tileN, config.stages,
                               config.isSwapped);
}
