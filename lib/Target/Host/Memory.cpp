// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes in bytes, and memrefs over memory that MLIR did not allocate.

#include "Memory.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

uint64_t fp8::getElementBytes(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * getElementBytes(complex.getElementType());
  if (!type.isIntOrIndexOrFloat())
    return 0;
  unsigned bits = isa<IndexType>(type) ? 64 : type.getIntOrFloatBitWidth();
  return llvm::PowerOf2Ceil(llvm::divideCeil(bits, 8));
}

/// Returns all sizes of a buffer, from its type and its dynamic sizes.
static SmallVector<Value> getAllSizes(OpBuilder &builder, Location loc, MemRefType type, ValueRange dynamic) {
  SmallVector<Value> sizes;
  for (int64_t size : type.getShape()) {
    if (ShapedType::isStatic(size)) {
      sizes.push_back(arith::ConstantIntOp::create(builder, loc, size, 64));
      continue;
    }
    sizes.push_back(dynamic.front());
    dynamic = dynamic.drop_front();
  }
  return sizes;
}

Value fp8::buildMemRef(OpBuilder &builder, Location loc, const LLVMTypeConverter &converter, MemRefType type,
                       Value pointer, ValueRange sizes) {
  SmallVector<Value> all = getAllSizes(builder, loc, type, sizes);
  Value stride = arith::ConstantIntOp::create(builder, loc, 1, 64);
  SmallVector<Value> strides(all.size());
  for (size_t dim = all.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride = arith::MulIOp::create(builder, loc, stride, all[dim]);
  }
  SmallVector<Value> parts{pointer, pointer, arith::ConstantIntOp::create(builder, loc, 0, 64)};
  parts.append(all);
  parts.append(strides);
  Value descriptor = MemRefDescriptor::pack(builder, loc, converter, type, parts);
  return UnrealizedConversionCastOp::create(builder, loc, type, descriptor).getResult(0);
}

Value fp8::buildByteCount(OpBuilder &builder, Location loc, MemRefType type, ValueRange sizes) {
  auto bytes = static_cast<int64_t>(getElementBytes(type.getElementType()));
  for (int64_t size : type.getShape())
    bytes *= ShapedType::isDynamic(size) ? 1 : size;
  Value product = arith::ConstantIntOp::create(builder, loc, bytes, 64);
  if (sizes.empty())
    return product;
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 64);
  Value most = arith::ConstantIntOp::create(builder, loc, -1, 64);
  for (Value size : sizes) {
    auto wide = arith::MulUIExtendedOp::create(builder, loc, product, size);
    Value overflows = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, wide.getHigh(), zero);
    product = arith::SelectOp::create(builder, loc, overflows, most, wide.getLow());
  }
  return product;
}
