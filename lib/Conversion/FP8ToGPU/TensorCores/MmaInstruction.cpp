// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix and mma.sync.

#include "MmaInstruction.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp8;

StringRef fp8::getNameInPTX(Type type) {
  return isa<Float8E4M3FNType>(type) ? "e4m3"
         : isa<Float8E5M2Type>(type) ? "e5m2"
         : type.isBF16()             ? "bf16"
         : type.isF32()              ? "tf32"
                                     : "f16";
}

/// Returns the `count` members of a struct.
static SmallVector<Value> extract(KernelBuilder &b, Value members, int64_t count) {
  return llvm::map_to_vector(llvm::seq<int64_t>(count),
                             [&](int64_t i) -> Value { return LLVM::ExtractValueOp::create(b, members, i); });
}

SmallVector<Value> fp8::loadMatrices(KernelBuilder &b, Value address, bool transposes) {
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  Value matrices = NVVM::LdMatrixOp::create(
      b, type, address, /*num=*/4, transposes ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  return extract(b, matrices, 4);
}

SmallVector<Value> fp8::multiplyMatrices(KernelBuilder &b, Type type, ArrayRef<Value> lhs,
                                         ArrayRef<Value> rhs, ArrayRef<Value> sums) {
  auto pairs = [&](ArrayRef<Value> words) { // f16 goes by pairs, others by words
    return llvm::map_to_vector(words, [&](Value word) -> Value {
      return type.isF16() ? LLVM::BitcastOp::create(b, VectorType::get(2, type), word).getResult() : word;
    });
  };
  auto result = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  NVVM::MMATypes name = *NVVM::symbolizeMMATypes(getNameInPTX(type));
  int64_t depth = type.isF32() ? 8 : 16;
  Value product =
      NVVM::MmaOp::create(b, result, pairs(lhs), pairs(rhs), sums, {16, 8, depth}, std::nullopt, std::nullopt,
                          std::array{name, name}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  return extract(b, product, 4);
}
