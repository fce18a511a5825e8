// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the kernels of a program and its chip.

#include "DeviceCode.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace fp8;

gpu::GPUModuleOp fp8::getKernelModule(ModuleOp module) {
  return module.lookupSymbol<gpu::GPUModuleOp>(kKernelModuleName);
}

SmallVector<FunctionOpInterface> fp8::getKernels(gpu::GPUModuleOp kernels) {
  SmallVector<FunctionOpInterface> list;
  for (auto function : kernels.getOps<FunctionOpInterface>())
    if (function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
      list.push_back(function);
  return list;
}

unsigned fp8::getPTXVersion(gpu::GPUModuleOp kernels, const Chip &chip) {
  auto isFP8Matmul = [](LLVM::CallIntrinsicOp call) {
    return call.getIntrin().starts_with("llvm.nvvm.mma.m16n8k32.row.col.f32.e") ? WalkResult::interrupt()
                                                                                : WalkResult::advance();
  };
  return kernels.walk(isFP8Matmul).wasInterrupted() ? std::max(chip.ptxVersion, 84u) : chip.ptxVersion;
}

FailureOr<ChipAttr> fp8::getChipOf(Operation *op) {
  TargetAttrInterface target = getTarget(op);
  if (auto chip = dyn_cast<ChipAttr>(target))
    return chip;
  return op->emitError() << "kernels of a GPU in a module for " << target.getTargetName()
                         << ": set its attribute " << kTargetAttrName << " to a #fp8.chip";
}
