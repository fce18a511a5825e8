// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers matmuls: chooses a configuration, and lets the family's builder make the kernel.

#include "MatmulLowering.h"
#include "Epilogue.h"
#include "MatmulConfig.h"
#include "fp8/Conversion/GenericCode.h"
#include "fp8/Conversion/Kernel.h"

using namespace mlir;
using namespace fp8;

/// Returns whether the scales of lhs or rhs are packed: one for each 32 elements along K. Packed scales of
/// a vector are told apart from other scales of rank 1 by their number, where it is known.
static bool isPacked(const MatmulView &matmul, bool isLhs) {
  auto type = cast<MemRefType>((isLhs ? matmul.lhsScaleInv : matmul.rhsScaleInv).getType());
  AffineMap map = matmul.maps[isLhs ? 0 : 1];
  auto fits = [&](auto entry) {
    return entry.value() == (llvm::is_contained(matmul.dims.k, map.getDimPosition(entry.index())) ? 32 : 1);
  };
  int64_t k = matmul.knownSize(matmul.dims.k);
  bool isPlain =
      map.getNumResults() == 1 &&
      (ShapedType::isDynamic(k) || type.getDimSize(0) != int64_t(llvm::divideCeil(k, kPart)) * kPackedBytes);
  return isa<Float8E8M0FNUType>(type.getElementType()) && type.getRank() == 1 && !isPlain &&
         llvm::all_of(llvm::enumerate(isLhs ? matmul.lhsBlock : matmul.rhsBlock), fits);
}

bool fp8::canScale(const Chip &chip, const MatmulView &matmul) {
  if (!matmul.lhsScaleInv)
    return true;
  if (matmul.scalesAlongK == ScalesAlongK::packed)
    return chip.hasMXScales && isPacked(matmul, true) && isPacked(matmul, false);
  int64_t block = matmul.getBlockOfK();
  return block % kSmallestBlock == 0 && getElementTypeOrSelf(matmul.lhsScaleInv).isF32() &&
         getElementTypeOrSelf(matmul.rhsScaleInv).isF32();
}

/// Returns whether kernels can number rows, columns, bytes along K and tiles, as far as sizes are known.
static bool isCountable(const MatmulProblem &problem) {
  auto known = [](int64_t size) { return std::max<int64_t>(size, 1); };
  int64_t batch = known(problem.batch), m = known(problem.m), n = known(problem.n);
  double smallestTiles = double(batch) * double(m) * double(n) / (64 * 16);
  return std::max({batch, m, n, known(problem.k)}) <= kMostOfDimension &&
         known(problem.k) * problem.lhs.getIntOrFloatBitWidth() / 8 <= kMostOfDimension &&
         smallestTiles <= double(kMostOfDimension);
}

/// Returns whether there is nothing to sum, or sums in f64: generic code computes the epilogue then.
static bool hasNoKernel(const MatmulProblem &problem, const MatmulView &matmul) {
  return getElementTypeOrSelf(matmul.out).isF64() ||
         llvm::is_contained({problem.batch, problem.m, problem.n, problem.k}, 0);
}

bool fp8::lowerMatmul(OpBuilder &builder, Operation *op, LoweringContext &context) {
  if (!Epilogue::isValid(op))
    return false;
  MatmulView matmul(op);
  if (!canScale(context.chip, matmul)) {
    remarkGeneric(op, "stays generic code on the GPU",
                  "kernels have an f32 scale for each multiple of " + Twine(kSmallestBlock) +
                      " elements along K, or E8M0 scales as fp8.pack_scales arranges them");
    return false;
  }
  MatmulProblem problem = describeProblem(matmul);
  if (hasNoKernel(problem, matmul))
    return false;
  if (!isCountable(problem)) {
    remarkGeneric(op, "stays generic code on the GPU", kTooLarge);
    return false;
  }
  FailureOr<MatmulConfig> config = findMatmulConfig(context.chip, matmul);
  if (failed(config)) {
    context.hasErrors = true;
    return false;
  }
  if (!config->family)
    return lowerSimtMatmul(builder, matmul, *config, context);
  switch (*config->family) {
  case MatmulFamily::mma:
    return lowerMmaMatmul(builder, matmul, *config, context);
  case MatmulFamily::wgmma:
  case MatmulFamily::tcgen05:
    return lowerWideMatmul(builder, matmul, *config, context);
  }
  llvm_unreachable("all families are listed");
}

std::optional<FailureOr<MatmulConfig>> fp8::findPlainConfig(const Chip &chip, Operation *op) {
  MatmulView matmul(op);
  if (!canScale(chip, matmul))
    return std::nullopt;
  MatmulProblem problem = describeProblem(matmul);
  if (hasNoKernel(problem, matmul) || !isCountable(problem))
    return std::nullopt;
  return findMatmulConfig(chip, matmul);
}
