// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes down which kernel computes each matmul, where a user or a tuner may change it.

#include "MatmulConfig.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Conversion/Passes.h"

namespace fp8 {
#define GEN_PASS_DEF_CHOOSECONFIGS
#include "fp8/Conversion/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Returns the configuration of a matmul; nullopt for other operations, and for matmuls without a kernel.
static std::optional<FailureOr<MatmulConfig>> findConfig(const Chip &chip, Operation *op) {
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
    return std::nullopt;
  if (isa<MatmulOp, ScaledMatmulOp>(op))
    return findPlainConfig(chip, op);
  if (isa<GroupedMatmulOp, ScaledGroupedMatmulOp>(op))
    return findGroupedConfig(chip, op);
  return std::nullopt;
}

namespace {
struct ChooseConfigsPass : public fp8::impl::ChooseConfigsBase<ChooseConfigsPass> {
  void runOnOperation() override {
    auto attribute = dyn_cast<ChipAttr>(getTarget(getOperation()));
    if (!attribute)
      return; // kernels are chosen for GPUs alone
    const Chip &chip = getChip(attribute);
    SmallVector<Operation *> matmuls;
    getOperation()->walk([&](Operation *op) { matmuls.push_back(op); });
    for (Operation *op : matmuls) {
      std::optional<FailureOr<MatmulConfig>> config = findConfig(chip, op);
      if (!config)
        continue;
      if (failed(*config))
        return signalPassFailure();
      if ((*config)->family)
        op->setAttr(kConfigAttrName, toAttribute(&getContext(), **config));
    }
  }
};
} // namespace
