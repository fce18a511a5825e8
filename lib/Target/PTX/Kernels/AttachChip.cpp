// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names the GPU that a module is compiled for, for programs that run the pipelines of a GPU on a module
// without a target.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace fp8 {
#define GEN_PASS_DEF_ATTACHCHIP
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
struct AttachChipPass : public fp8::impl::AttachChipBase<AttachChipPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (chip.empty() || module->hasAttr(kTargetAttrName))
      return;
    auto emitError = [&] { return module.emitError(); };
    auto attribute = ChipAttr::getChecked(emitError, &getContext(), StringRef(chip.getValue()));
    if (!attribute)
      return signalPassFailure();
    module->setAttr(kTargetAttrName, attribute);
  }
};
} // namespace
