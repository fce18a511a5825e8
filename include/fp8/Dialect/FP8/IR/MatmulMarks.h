// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mark on generated code that lists the matmuls it computes. The report reads it after
// code generation.

#ifndef FP8_DIALECT_FP8_IR_MATMULMARKS_H
#define FP8_DIALECT_FP8_IR_MATMULMARKS_H

#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// Returns the mark for the code of `matmul`, an fp8.matmul or fp8.scaled_matmul; `code` describes
/// that code in words.
template <typename AnyMatmulOp>
mlir::ArrayAttr markMatmul(AnyMatmulOp matmul, const llvm::Twine &code) {
  mlir::Builder builder(matmul.getContext());
  llvm::SmallVector<mlir::NamedAttribute> fields = {
      builder.getNamedAttr("site", builder.getStringAttr(matmul.getSite().value_or(""))),
      builder.getNamedAttr("role",
                           builder.getStringAttr(stringifyRole(matmul.getRole().value_or(Role::other)))),
      builder.getNamedAttr("code", builder.getStringAttr(code))};
  auto shape = [](mlir::Value value) { return llvm::cast<mlir::ShapedType>(value.getType()).getShape(); };
  if (auto operations = countMatmulOperations(matmul.getIndexingMapsArray(), shape(matmul.getLhs()),
                                              shape(matmul.getRhs())))
    fields.push_back(builder.getNamedAttr("operations", builder.getI64IntegerAttr(*operations)));
  return builder.getArrayAttr(builder.getDictionaryAttr(fields));
}

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_MATMULMARKS_H
