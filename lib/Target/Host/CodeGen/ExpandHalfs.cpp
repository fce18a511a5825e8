// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands the widening of f16 where the processor has no instruction for it.

#include "ExpandHalfs.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/MC/MCSubtargetInfo.h"

using namespace llvm;

static bool widensHalfs(const TargetMachine &machine) {
  return machine.getTargetTriple().getArch() != Triple::x86_64 ||
         machine.getMCSubtargetInfo()->checkFeatures("+f16c");
}

/// Returns the f32, or vector of f32, that `half` is.
static Value *widen(IRBuilder<> &builder, Value *half) {
  auto like = [&](Type *element) { return half->getType()->getWithNewType(element); };
  Type *i32 = like(builder.getInt32Ty()), *f32 = like(builder.getFloatTy());
  auto integer = [&](uint32_t value) { return ConstantInt::get(i32, value); };

  Value *wide = builder.CreateSExt(builder.CreateBitCast(half, like(builder.getInt16Ty())), i32);
  // Shifted into place the bits are an f32 whose exponent has the bias of f16, 15; a multiplication corrects
  // that, also for subnormals. The last bit of the sign stays where it is.
  Value *placed = builder.CreateAnd(builder.CreateShl(wide, 13), integer(0x8FFFE000));
  Value *number = builder.CreateFMul(builder.CreateBitCast(placed, f32), ConstantFP::get(f32, 0x1p112));
  Value *exponent = builder.CreateAnd(wide, integer(0x7C00));
  Value *isSpecial = builder.CreateICmpEQ(exponent, integer(0x7C00));
  Value *special = builder.CreateSelect(isSpecial, integer(0x7F800000), integer(0));
  return builder.CreateBitCast(builder.CreateOr(builder.CreateBitCast(number, i32), special), f32);
}

void fp8::expandHalfs(Module &module, const TargetMachine &machine) {
  if (widensHalfs(machine))
    return;
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *extension = dyn_cast<FPExtInst>(&instruction);
      if (!extension || !extension->getSrcTy()->getScalarType()->isHalfTy())
        continue;
      IRBuilder<> builder(extension);
      Value *wide = widen(builder, extension->getOperand(0));
      extension->replaceAllUsesWith(builder.CreateFPExt(wide, extension->getType()));
      extension->eraseFromParent();
    }
}
