// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns our attributes of kernels into those with which LLVM writes PTX: the entry, the size of a block and
// of a cluster, and tensor maps and tables of operands, which are parameters of many bytes.

#include "DeviceCode.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_FINISHKERNELS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// CUtensorMap: its bytes, and the alignment that the hardware needs.
static constexpr int64_t kTensorMapBytes = 128, kTensorMapAlignment = 64;

/// The bytes of an operand in a table.
static constexpr int64_t kOperandBytes = 8;

/// Makes argument `index` a parameter of `bytes` that the kernel gets by value and only reads.
static void passByValue(LLVM::LLVMFuncOp kernel, unsigned index, int64_t bytes, int64_t alignment) {
  Builder builder(kernel.getContext());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes);
  kernel.setArgAttr(index, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(type));
  kernel.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(alignment));
  kernel.setArgAttr(index, NVVM::NVVMDialect::getGridConstantAttrName(), builder.getUnitAttr());
}

/// Removes the attributes of an argument that LLVM does not know.
static void removeOwnAttributes(LLVM::LLVMFuncOp kernel, unsigned index) {
  NamedAttrList attributes(kernel.getArgAttrDict(index));
  for (NamedAttribute attribute : FunctionOpInterface(kernel).getArgAttrs(index))
    if (attribute.getName().strref().starts_with("fp8."))
      attributes.erase(attribute.getName());
  kernel.setArgAttrs(index, attributes);
}

static void finish(LLVM::LLVMFuncOp kernel) {
  Builder builder(kernel.getContext());
  auto read = [&](StringRef name) {
    auto attribute = kernel->getAttrOfType<IntegerAttr>(name);
    return attribute ? static_cast<int32_t>(attribute.getInt()) : 1;
  };
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  builder.getDenseI32ArrayAttr({read(kThreadsAttrName), 1, 1}));
  // ptxas ignores setmaxnreg unless it knows with how many registers a kernel begins, which this decides.
  bool setsRegisters =
      kernel.walk([](NVVM::SetMaxRegisterOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (setsRegisters || kernel->hasAttr(kBlocksAttrName))
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(read(kBlocksAttrName)));
  if (kernel->hasAttr(kClusterAttrName))
    kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                    builder.getDenseI32ArrayAttr({read(kClusterAttrName), 1, 1}));
  for (unsigned index : llvm::seq(kernel.getNumArguments())) {
    if (kernel.getArgAttr(index, kTensorMapAttrName))
      passByValue(kernel, index, kTensorMapBytes, kTensorMapAlignment);
    if (auto slots = kernel.getArgAttrOfType<IntegerAttr>(index, kOperandTableAttrName))
      passByValue(kernel, index, slots.getInt() * kOperandBytes, kOperandBytes);
    removeOwnAttributes(kernel, index);
  }
}

namespace {
struct FinishKernelsPass : public fp8::impl::FinishKernelsBase<FinishKernelsPass> {
  void runOnOperation() override {
    for (FunctionOpInterface function : getKernels(getOperation())) {
      auto kernel = dyn_cast<LLVM::LLVMFuncOp>(*function);
      if (!kernel) {
        function.emitError()
            << "kernel '" << function.getName()
            << "' has arguments that upstream cannot lower: a buffer whose shape, strides or "
               "offset are dynamic is no plain pointer (llvm.bareptr)";
        return signalPassFailure();
      }
      finish(kernel);
    }
  }
};
} // namespace
