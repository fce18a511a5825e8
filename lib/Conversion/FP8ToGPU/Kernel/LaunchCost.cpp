// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts the bytes of a launch from the buffers that its kernel reads and writes. The kernels of this folder
// access every buffer that they are given in full.

#include "KernelBuilder.h"
#include "fp8/Dialect/FP8/IR/KernelCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

namespace {
struct Access {
  bool reads = false, writes = false;
};
} // namespace

/// Adds what the kernel does with the memory at `pointer`. Transfers and copies to shared memory, which have
/// an operand for their source in global memory, read it.
static void findAccess(Value pointer, Access &access) {
  for (OpOperand &use : pointer.getUses()) {
    Operation *user = use.getOwner();
    if (isa<LLVM::AddrSpaceCastOp, LLVM::GEPOp, LLVM::SelectOp, arith::SelectOp>(user))
      findAccess(user->getResult(0), access);
    else if (auto store = dyn_cast<LLVM::StoreOp>(user))
      access.writes |= store.getAddr() == pointer;
    else if (isa<LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp>(user))
      access.reads = access.writes = true;
    else
      access.reads = true;
  }
}

/// Returns the bytes of the buffer that `memref` is or is a view of; unset if its size is dynamic.
static std::optional<int64_t> countBytes(Value memref) {
  while (auto cast = memref.getDefiningOp<memref::CastOp>())
    memref = cast.getSource();
  auto type = cast<MemRefType>(memref.getType());
  if (!type.hasStaticShape())
    return std::nullopt;
  Type element = type.getElementType();
  int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  return type.getNumElements() * static_cast<int64_t>(llvm::divideCeil(bits, 8));
}

void fp8::countLaunch(gpu::LaunchFuncOp launch, func::FuncOp kernel) {
  std::optional<int64_t> read = 0, written = 0;
  llvm::SmallDenseSet<Value> counted[2];
  for (auto [operand, argument] : llvm::zip_equal(launch.getKernelOperands(), kernel.getArguments())) {
    if (!isa<MemRefType>(operand.getType()))
      continue;
    Access access;
    findAccess(argument, access);
    std::optional<int64_t> bytes = countBytes(operand);
    if (access.reads && counted[0].insert(operand).second)
      read = read && bytes ? std::optional(*read + *bytes) : std::nullopt;
    if (access.writes && counted[1].insert(operand).second)
      written = written && bytes ? std::optional(*written + *bytes) : std::nullopt;
  }
  setKernelCost(launch, {read, written, std::nullopt});
}
