// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bf16 is moved and chosen as i16. All arithmetic is in f32 by now and conversions are integer
// operations; but of what is left LLVM would make vectors of bf16, and choose among their
// elements by extending and rounding each, the latter by a function that nothing provides.

#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_NARROWFLOATBITS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;

static bool isBF16(Type type) { return getElementTypeOrSelf(type).isBF16(); }

/// `type` with i16 for bf16.
static Type getBitsType(Type type) {
  Type bits = IntegerType::get(type.getContext(), 16);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(bits) : bits;
}

/// Has `op` read the bits of an operand that is bf16.
static void readBits(OpOperand &operand) {
  OpBuilder builder(operand.getOwner());
  operand.set(LLVM::BitcastOp::create(builder, operand.getOwner()->getLoc(),
                                      getBitsType(operand.get().getType()), operand.get()));
}

/// Has `op` make bits; who uses the result sees bf16 as before.
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
      }
    });
  }
};
} // namespace
