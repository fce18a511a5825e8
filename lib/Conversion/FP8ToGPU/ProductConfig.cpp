// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the kernel for a product.

#include "ProductConfig.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

/// Returns whether tensor cores multiply the two types: FP8 of both formats, bf16 · bf16, f16 · f16, and
/// TF32.
static bool haveTensorCores(const ProductProblem &problem) {
  Type lhs = problem.lhs, rhs = problem.rhs;
  auto isFP8 = [](Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); };
  return (isFP8(lhs) && isFP8(rhs)) ||
         (lhs == rhs && (lhs.isBF16() || lhs.isF16() || (lhs.isF32() && problem.isTF32)));
}

/// Returns whether a dimension is known to have at most `limit` elements.
static bool isAtMost(int64_t size, int64_t limit) { return !ShapedType::isDynamic(size) && size <= limit; }

/// Two blocks of 256 threads share a multiprocessor: three stages of 16 KiB each, or twice as many of half as
/// much where parts end in the middle of one. Half the tile where half of it would be empty, or where two
/// sums per element, packed scales, or sums over rows would take more than half of the registers.
static ProductConfig chooseMma(const ProductProblem &problem) {
  int64_t tileM = isAtMost(problem.m, 64) ? 64 : 128;
  bool needsRegisters = problem.split || problem.scales == ScalesAlongK::packed || problem.hasSums;
  int64_t tileN = isAtMost(problem.n, 64) || needsRegisters ? 64 : 128;
  if (problem.part % 64 != 0)
    return {ProductFamily::mma, tileM, tileN, /*tileKBytes=*/32, /*stages=*/6};
  return {ProductFamily::mma, tileM, tileN, /*tileKBytes=*/64, /*stages=*/3};
}

/// The bytes that a multiprocessor of an H100 gets from the L2 cache per clock.
static constexpr double kBytesPerClock = 46.6;
static constexpr int64_t kWideTileM = 128, kWideTileKBytes = 128, kMostStages = 8;
/// Shared memory that is left for barriers.
static constexpr int64_t kBarriersBytes = 1024;

/// Returns the clocks of a wide kernel per 128 bytes of K: the tiles that a multiprocessor computes one after
/// another, times the clocks of a tile, in which it loads as well as multiplies.
static double countWideClocks(const Chip &chip, const ProductProblem &problem, int64_t tileN,
                              bool isSwapped) {
  auto known = [](int64_t size) -> int64_t { return ShapedType::isDynamic(size) ? 4096 : size; };
  int64_t batch = ShapedType::isDynamic(problem.batch) ? 1 : problem.batch;
  int64_t m = known(isSwapped ? problem.n : problem.m), n = known(isSwapped ? problem.m : problem.n);
  int64_t tiles = batch * llvm::divideCeil(m, kWideTileM) * llvm::divideCeil(n, tileN);
  // m64nNk32 takes N / 2 clocks of sm_90a; sm_100a has twice the rate.
  double multiply = (chip.family == ProductFamily::wgmma ? 4 : 2) * tileN;
  double load = (std::min(m, kWideTileM) + std::min(n, tileN)) * kWideTileKBytes / kBytesPerClock;
  return llvm::divideCeil(tiles, chip.multiprocessors) * std::max(multiply, load);
}

/// Packed scales of 128 rows are read from the first row, or from the middle.
int64_t fp8::getNarrowestTile(const ProductProblem &problem) {
  return problem.scales == ScalesAlongK::packed ? 64 : 16;
}

/// Sums of parts take as many registers as the sums; tensor memory has to hold packed scales too.
int64_t fp8::getWidestTile(const Chip &chip, const ProductProblem &problem) {
  bool hasParts = problem.split && chip.family == ProductFamily::wgmma;
  return hasParts || problem.scales != ScalesAlongK::none ? 128 : 256;
}

int64_t fp8::countWideStages(const Chip &chip, const ProductConfig &config) {
  return std::min(kMostStages, (chip.sharedBytes - kBarriersBytes) / config.stageBytes());
}

/// The widest tile of the fastest.
static ProductConfig chooseWide(const Chip &chip, const ProductProblem &problem) {
  int64_t widest = getWidestTile(chip, problem);
  ProductConfig best{chip.family, kWideTileM, widest, kWideTileKBytes, /*stages=*/0};
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
  best.stages = countWideStages(chip, best);
  return best;
}

static ProductConfig chooseSimt() {
  return {std::nullopt, /*tileM=*/64, /*tileN=*/64, /*tileKBytes=*/64, /*stages=*/1};
}

ProductConfig fp8::chooseMmaConfig(const ProductProblem &problem) {
  return haveTensorCores(problem) ? chooseMma(problem) : chooseSimt();
}

ProductConfig fp8::chooseProductConfig(const Chip &chip, const ProductProblem &problem) {
  if (!haveTensorCores(problem))
    return chooseSimt();
  // The instructions of the mma family run on every chip; tcgen05 has sums in parts only with scales along K.
  bool needsParts = chip.family == ProductFamily::tcgen05 && problem.split && problem.strict &&
                    problem.scales == ScalesAlongK::none;
  bool isMma = getBlockFamily(chip, problem.part) == ProductFamily::mma;
  return isMma || needsParts ? chooseMma(problem) : chooseWide(chip, problem);
}
