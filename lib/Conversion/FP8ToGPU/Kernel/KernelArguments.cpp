// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types of a kernel's arguments, and the values that a launch passes.

#include "KernelArguments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

using namespace mlir;
using namespace fp8;

unsigned KernelArguments::add(Type type, Value operand) {
  types.push_back(type);
  operands.push_back(operand);
  return types.size() - 1;
}

unsigned KernelArguments::addPointer(Value memref) {
  return add(LLVM::LLVMPointerType::get(host.getContext()), memref);
}

unsigned KernelArguments::addI32(Value index) {
  return add(host.getI32Type(), host.createOrFold<arith::IndexCastOp>(loc, host.getI32Type(), index));
}

unsigned KernelArguments::addI64(Value index) {
  return add(host.getI64Type(), host.createOrFold<arith::IndexCastOp>(loc, host.getI64Type(), index));
}
