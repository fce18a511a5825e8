// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads (also with a mask), stores and selects bf16 values as i16. All arithmetic is in f32 by now and
// conversions are integer operations, but LLVM would vectorize the remaining operations with vectors of bf16,
// and lower selects of these by extending and rounding each element, the latter with a function that no
// linked library defines.

#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_NARROWFLOATBITS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;

static bool isBF16(Type type) { return getElementTypeOrSelf(type).isBF16(); }

/// Returns `type` with i16 in place of bf16.
static Type getBitsType(Type type) {
  Type bits = IntegerType::get(type.getContext(), 16);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(bits) : bits;
}

/// Replaces a bf16 operand by its bits.
static void readBits(OpOperand &operand) {
  OpBuilder builder(operand.getOwner());
  operand.set(LLVM::BitcastOp::create(builder, operand.getOwner()->getLoc(),
                                      getBitsType(operand.get().getType()), operand.get()));
}

/// Changes the bf16 result of `op` to its bits, and casts them back for users.
static void makeBits(Operation *op) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0);
  Type type = result.getType();
  result.setType(getBitsType(type));
  auto back = LLVM::BitcastOp::create(builder, op->getLoc(), type, result);
  result.replaceAllUsesExcept(back, back);
}

namespace {
struct NarrowFloatBitsPass : public fp8::impl::NarrowFloatBitsBase<NarrowFloatBitsPass> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto store = dyn_cast<LLVM::StoreOp>(op); store && isBF16(store.getValue().getType())) {
        readBits(store.getValueMutable());
      } else if (isa<LLVM::LoadOp>(op) && isBF16(op->getResult(0).getType())) {
        makeBits(op);
      } else if (auto select = dyn_cast<LLVM::SelectOp>(op); select && isBF16(select.getType())) {
        readBits(select.getTrueValueMutable());
        readBits(select.getFalseValueMutable());
        makeBits(op);
      } else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op); load && isBF16(load.getType())) {
        for (OpOperand &masked : load.getPassThruMutable())
          readBits(masked);
        makeBits(op);
      }
    });
  }
};
} // namespace
