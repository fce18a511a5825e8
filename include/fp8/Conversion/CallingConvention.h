// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How compiled functions pass buffers to each other: as plain pointers if the types determine
// sizes and strides, else as upstream's descriptors of pointer, sizes and strides.

#ifndef FP8_CONVERSION_CALLINGCONVENTION_H
#define FP8_CONVERSION_CALLINGCONVENTION_H

#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeRange.h"

namespace fp8 {

/// Upstream's attribute on a function whose buffers are passed as plain pointers.
inline constexpr llvm::StringLiteral kBarePointersAttrName = "llvm.bareptr";

/// Prefix of the private function `fp8_entry_<entry>`, which holds the code of an entry point and
/// which `fp8_call_<entry>` calls.
inline constexpr llvm::StringLiteral kEntryPrefix = "fp8_entry_";

/// Returns whether `types` determine the sizes, strides and offset of every buffer. Strides of 0,
/// which buffers without elements can have, return false because upstream rejects them.
inline bool canPassPointers(mlir::TypeRange types) {
  return llvm::all_of(types, [](mlir::Type type) {
    auto memref = mlir::dyn_cast<mlir::MemRefType>(type);
    if (!memref)
      return !mlir::isa<mlir::UnrankedMemRefType>(type);
    int64_t offset;
    mlir::SmallVector<int64_t> strides;
    return memref.hasStaticShape() && mlir::succeeded(memref.getStridesAndOffset(strides, offset)) &&
           !mlir::ShapedType::isDynamic(offset) && llvm::none_of(strides, [](int64_t stride) {
             return mlir::ShapedType::isDynamic(stride) || stride == 0;
           });
  });
}

} // namespace fp8

#endif // FP8_CONVERSION_CALLINGCONVENTION_H
