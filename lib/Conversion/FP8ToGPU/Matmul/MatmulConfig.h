// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice of a kernel for a matmul: a pure function of the chip, the types and the sizes. Private to the
// library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULCONFIG_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULCONFIG_H

#include "MatmulView.h"
#include "fp8/Dialect/FP8/IR/Chips.h"

namespace fp8 {

/// The facts that decide on the kernel of a matmul; ShapedType::kDynamic stands for sizes that are not known.
struct MatmulProblem {
  mlir::Type lhs, rhs; ///< element types
  bool split;          ///< sums of 128 along K are added in order
  bool strict;         ///< so also where tensor cores are as exact without
  ScalesAlongK scales; ///< of both operands
  int64_t batch, m, n, k;
  bool isTF32 = false;    ///< whether f32 operands have the precision of TF32
  bool hasGroups = false; ///< whether the rows of M or K are divided among groups
  int64_t part = kPart;   ///< see MatmulView::getPart()
  bool hasSums = false;   ///< whether the epilogue adds up rows
};

/// Describes `matmul` as far as its sizes are known.
MatmulProblem describeProblem(const MatmulView &matmul);

/// Returns whether kernels have the scales of `matmul`: f32, one for all of K or for each part of it that
/// instructions end with, or packed ones.
bool canScale(const Chip &chip, const MatmulView &matmul);

/// How a kernel computes matmuls.
struct MatmulConfig {
  /// Null: fused multiply-adds, for types without tensor cores.
  std::optional<MatmulFamily> family;
  int64_t tileM, tileN; ///< the part of the result that a block computes at a time
  int64_t tileKBytes;   ///< the bytes along K that one stage holds
  int64_t stages;       ///< buffers that loads fill ahead of matmuls
  /// Whether the kernel computes the transposed matmul: its M is the N of the matmul.
  bool isSwapped = false;

  /// Bytes of shared memory that the stages take.
  int64_t stageBytes() const { return (tileM + tileN) * tileKBytes; }
};

/// Chooses the kernel for `problem`.
MatmulConfig chooseMatmulConfig(const Chip &chip, const MatmulProblem &problem);

/// Returns the kernel for `matmul`: as its attribute kConfigAttrName says, and chosen where that says
/// nothing. Emits an error if there is no such kernel.
mlir::FailureOr<MatmulConfig> findMatmulConfig(const Chip &chip, const MatmulView &matmul);

/// Returns it for an operation: fp8.matmul or fp8.scaled_matmul (MatmulLowering.cpp), fp8.grouped_matmul or
/// fp8.scaled_grouped_matmul (GroupedMatmul.cpp). Returns nullopt if generic code computes it.
std::optional<mlir::FailureOr<MatmulConfig>> findPlainConfig(const Chip &chip, mlir::Operation *op);
std::optional<mlir::FailureOr<MatmulConfig>> findGroupedConfig(const Chip &chip, mlir::Operation *op);

/// Adds to the cost of `launch` the clocks of `matmul` by the kernel `config`, if its sizes are known
/// (fp8/Dialect/FP8/IR/KernelTime.h); `inParts`: whether the kernel adds split sums part by part. The rows of
/// all groups of a grouped matmul count as those of one.
void addMatmulClocks(mlir::gpu::LaunchFuncOp launch, const Chip &chip, const MatmulView &matmul,
                     const MatmulConfig &config, bool inParts);

/// Returns the attribute that says all of `config`.
MatmulConfigAttr toAttribute(mlir::MLIRContext *context, const MatmulConfig &config);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULCONFIG_H
