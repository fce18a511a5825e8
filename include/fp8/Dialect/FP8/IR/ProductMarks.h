// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How generated code says which products it computes: what the report reads after code
// generation.

#ifndef FP8_DIALECT_FP8_IR_PRODUCTMARKS_H
#define FP8_DIALECT_FP8_IR_PRODUCTMARKS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// On the operation that computes products of the program, a call or a launch in an entry in
/// the end: an array of dictionaries {site, role, code}, one per product, `code` being what
/// computes it in words. The lowering that replaces a product writes it, whoever moves
/// operations into functions or kernels of their own moves it to the call, and it goes where
/// the operation goes: what is not in the code at the end has no mark either.
inline constexpr llvm::StringLiteral kProductsAttrName = "fp8.products";

/// The mark of what `product`, an fp8.matmul or fp8.scaled_matmul, becomes.
template <typename ProductOp>
mlir::ArrayAttr markProduct(ProductOp product, const llvm::Twine &code) {
  mlir::Builder builder(product.getContext());
  mlir::NamedAttribute fields[] = {
      builder.getNamedAttr("site", builder.getStringAttr(product.getSite().value_or(""))),
      builder.getNamedAttr("role",
                           builder.getStringAttr(stringifyRole(product.getRole().value_or(Role::other)))),
      builder.getNamedAttr("code", builder.getStringAttr(code))};
  return builder.getArrayAttr(builder.getDictionaryAttr(fields));
}

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_PRODUCTMARKS_H
