// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The amaxes that kernels compute by atomic maxima, which start from 0. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_AMAXBUFFERS_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_AMAXBUFFERS_H

#include "KernelBuilder.h"

namespace fp8 {

/// Collects launches that compute an amax, then inserts what clears the amaxes before them.
class AmaxBuffers {
public:
  /// Operand `number` of the kernel is an amax, a memref<f32>, or a vector of amaxes.
  void add(mlir::gpu::LaunchFuncOp launch, unsigned number) { uses.push_back({launch, number}); }

  /// Clears vectors whose elements are amaxes right after their allocation, by one launch each. Makes other
  /// amaxes that a block allocates elements of such a vector. The amaxes that are left are cleared one by
  /// one, each before its launch.
  void clear(KernelTable &kernels);

private:
  struct Use {
    mlir::gpu::LaunchFuncOp launch;
    unsigned number;
    mlir::Value getAmax() { return launch.getKernelOperand(number); }
  };
  bool canJoin(Use use);
  mlir::Operation *findVector(Use use);

  llvm::SmallVector<Use> uses;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_AMAXBUFFERS_H
