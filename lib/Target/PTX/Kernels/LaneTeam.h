// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes that share an iteration: those of a warp, or of several warps that make a block. Private to the
// library.

#ifndef FP8_LIB_TARGET_PTX_KERNELS_LANETEAM_H
#define FP8_LIB_TARGET_PTX_KERNELS_LANETEAM_H

#include "mlir/IR/Builders.h"
#include <optional>

namespace fp8 {

inline constexpr int64_t kWarpLanes = 32, kMostLanes = 1024;

/// Threads of a launch, beyond which more of them gain nothing: some of every multiprocessor of a large GPU.
inline constexpr int64_t kManyThreads = 1 << 17;

/// Returns how many lanes share each of `count` iterations over `length` elements, a power of two; nothing
/// stands for a number that is known at run time alone.
int64_t chooseLanes(std::optional<int64_t> count, std::optional<int64_t> length);

/// Returns whether lanes can exchange values of `type`.
bool isLaneType(mlir::Type type);

class LaneTeam {
public:
  LaneTeam(int64_t lanes, mlir::Value lane) : lanes(lanes), lane(lane) {}

  using Combine = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange, mlir::ValueRange)>;
  /// Combines the values of all lanes, which get the same result: `combine` builds it for the values of two
  /// lanes, whose order must not matter. Every lane passes here, and none more than once.
  llvm::SmallVector<mlir::Value> combine(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange values,
                                         Combine combine) const;

  const int64_t lanes;
  const mlir::Value lane; ///< of type index
};

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_KERNELS_LANETEAM_H
