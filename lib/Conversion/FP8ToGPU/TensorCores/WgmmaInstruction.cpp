// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma.mma_async.

#include "WgmmaInstruction.h"
#include "MmaInstruction.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp8;

static constexpr int64_t kGroupRows = 64, kGroupBytes = 8 * 128;

NVVM::WGMMATypes fp8::toWgmmaType(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return NVVM::WGMMATypes::e4m3;
  if (isa<Float8E5M2Type>(type))
    return NVVM::WGMMATypes::e5m2;
  if (type.isF32())
    return NVVM::WGMMATypes::tf32;
  return type.isF16() ? NVVM::WGMMATypes::f16 : NVVM::WGMMATypes::bf16;
}

/// PTX ISA, "Matrix Descriptor" of wgmma: distances in units of 16 bytes, bit 62 the 128-byte swizzle.
Expr fp8::describeMatrix(KernelBuilder &b, Value address, int64_t columnsDistance) {
  uint64_t leading = columnsDistance ? columnsDistance / 16 : 1;
  Expr start = b.expr(LLVM::PtrToIntOp::create(b, b.getI64Type(), address));
  return start / 16 | b.number(uint64_t(1) << 62 | uint64_t(kGroupBytes / 16) << 32 | leading << 16, 64);
}

void fp8::fenceGroup(KernelBuilder &b) { NVVM::WgmmaFenceAlignedOp::create(b); }

static LLVM::LLVMStructType getSumsType(KernelBuilder &b, int64_t count) {
  return LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(count, b.getF32Type()));
}

SmallVector<Value> fp8::unpackSums(KernelBuilder &b, Value sums) {
  int64_t count = cast<LLVM::LLVMStructType>(sums.getType()).getBody().size();
  return llvm::map_to_vector(llvm::seq<int64_t>(count),
                             [&](int64_t i) -> Value { return LLVM::ExtractValueOp::create(b, sums, i); });
}

Value fp8::startProduct(KernelBuilder &b, Type type, int64_t columns,
                        ArrayRef<std::pair<Expr, Expr>> descriptors) {
  Type sumsType = getSumsType(b, columns / 2);
  auto shape = NVVM::MMAShapeAttr::get(b.getContext(), kGroupRows, columns, 16);
  Value sums = LLVM::UndefOp::create(b, sumsType);
  bool isFirst = true;
  for (auto [lhs, rhs] : descriptors) {
    sums = NVVM::WgmmaMmaAsyncOp::create(
        b, sumsType, sums, lhs.getValue(), rhs.getValue(), shape, toWgmmaType(type), toWgmmaType(type),
        NVVM::WGMMATypes::f32, isFirst ? NVVM::WGMMAScaleOut::zero : NVVM::WGMMAScaleOut::one,
        NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row, NVVM::MMALayout::col,
        /*satfinite=*/nullptr);
    isFirst = false;
  }
  return sums;
}

/// Creates a statement of inline PTX that changes `values`, its operands 0, 1, …, of which it is in registers
/// of their own; `further` are its next ones.
static SmallVector<Value> changeValues(KernelBuilder &b, ValueRange values, ValueRange further,
                                       StringRef furtherConstraints, StringRef text) {
  SmallVector<std::string> constraints;
  for (Value value : values)
    constraints.push_back(isa<FloatType>(value.getType()) ? "=&f" : "=&r");
  for (unsigned i = 0; i < values.size(); ++i)
    constraints.push_back(std::to_string(i));
  if (!furtherConstraints.empty())
    constraints.push_back(furtherConstraints.str());
  constraints.push_back("~{memory}");
  SmallVector<Value> operands(values);
  llvm::append_range(operands, further);
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), llvm::to_vector(values.getTypes()));
  auto statement = LLVM::InlineAsmOp::create(
      b, type, operands, text, llvm::join(constraints, ","), /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT), /*operand_attrs=*/ArrayAttr());
  return unpackSums(b, statement.getResult(0));
}

/// The operation of the nvvm dialect has no form with registers on the left.
SmallVector<Value> fp8::addProduct(KernelBuilder &b, Type type, ArrayRef<Value> lhs, Expr rhs,
                                   ValueRange sums) {
  unsigned count = sums.size(), next = 2 * count;
  auto list = [](unsigned first, unsigned count) {
    return llvm::join(
        llvm::map_range(llvm::seq(first, first + count), [](unsigned i) { return "$" + std::to_string(i); }),
        ", ");
  };
  std::string name = getNameInPTX(type).str(), shape = "m64n" + std::to_string(count * 2) + "k16";
  std::string text = "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." + shape + ".f32." +
                     name + "." + name + " {" + list(0, count) + "}, {" + list(next, 4) + "}, " +
                     list(next + 4, 1) + ", p, 1, 1, 1; }";
  SmallVector<Value> further(lhs);
  further.push_back(rhs.getValue());
  return changeValues(b, sums, further, "r,r,r,r,l", text);
}

void fp8::waitForGroup(KernelBuilder &b) {
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  NVVM::WgmmaWaitGroupSyncOp::create(b, 0);
}

SmallVector<Value> fp8::tieToWait(KernelBuilder &b, ValueRange sums) {
  return changeValues(b, sums, {}, "", "// sums are there");
}

SmallVector<Value> fp8::holdInRegisters(KernelBuilder &b, ValueRange values) {
  return changeValues(b, values, {}, "", "// values are in registers");
}
