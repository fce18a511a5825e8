// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What several recipes answer alike, and the parameters of a recipe for reports. Private to
// the library.

#ifndef FP8_LIB_DIALECT_FP8_IR_RECIPEPARTS_H
#define FP8_LIB_DIALECT_FP8_IR_RECIPEPARTS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/ScalarBuilder.h"
#include "mlir/IR/Builders.h"

namespace fp8::detail {

mlir::FloatType formatOf(mlir::MLIRContext *context, FormatPolicy policy, TensorKind kind);

/// The forward may run fast; gradients sum in parts, where few bits would show.
Accumulation accumulationOf(Role role);

/// Blocks of `extent` along the last contracted dimension and of `other` along
/// the last of the rest; every other dimension has one block per index.
llvm::SmallVector<int64_t> blocksAlong(llvm::ArrayRef<bool> contracted, int64_t extent, int64_t other);

mlir::LogicalResult verifyEps(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                              const llvm::APFloat &eps);

/// fp8_max / max(amax, eps), `largest` where that overflows, floored to a power of two where
/// asked for; the old scale where the amax is 0, Inf or NaN.
mlir::Value buildQuotient(ScalarBuilder s, const ScaleInputs &inputs, const llvm::APFloat &eps, bool power2,
                          float largest = FLT_MAX);

/// The parameters of a recipe, for reports.
class ParameterList {
public:
  explicit ParameterList(mlir::MLIRContext *context) : builder(context) {}

  ParameterList &add(llvm::StringRef name, mlir::Attribute value) {
    list.push_back(builder.getNamedAttr(name, value));
    return *this;
  }
  ParameterList &add(llvm::StringRef name, bool value) { return add(name, builder.getBoolAttr(value)); }
  ParameterList &add(llvm::StringRef name, int64_t value) {
    return add(name, builder.getI64IntegerAttr(value));
  }
  ParameterList &add(llvm::StringRef name, const llvm::APFloat &value) {
    return add(name, builder.getF32FloatAttr(value.convertToFloat()));
  }
  template <typename Enum, typename = std::enable_if_t<std::is_enum_v<Enum>>>
  ParameterList &add(llvm::StringRef name, Enum value) {
    return add(name, builder.getStringAttr(stringifyEnum(value)));
  }
  operator llvm::SmallVector<mlir::NamedAttribute>() const { return list; }

private:
  mlir::Builder builder;
  llvm::SmallVector<mlir::NamedAttribute> list;
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_IR_RECIPEPARTS_H
