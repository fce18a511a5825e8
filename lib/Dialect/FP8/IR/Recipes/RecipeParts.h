// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that several recipes share, and the list of a recipe's parameters for reports.
// Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_IR_RECIPES_RECIPEPARTS_H
#define FP8_LIB_DIALECT_FP8_IR_RECIPES_RECIPEPARTS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/ScalarBuilder.h"
#include "mlir/IR/Builders.h"

namespace fp8::detail {

mlir::FloatType formatOf(mlir::MLIRContext *context, FormatPolicy policy, TensorKind kind);

/// Returns how matmuls of a role accumulate. By role that is `split` for dgrad and wgrad, `fast` for
/// other roles: `fast` sums keep fewer bits on Hopper's tensor cores, which matters for gradients.
Accumulation accumulationOf(AccumulationPolicy policy, Role role);

/// Returns blocks of `extent` along the last contracted dimension and of `other` along
/// the last dimension of the others; every other dimension has blocks of one element.
llvm::SmallVector<int64_t> blocksAlong(llvm::ArrayRef<bool> contracted, int64_t extent, int64_t other);

/// Returns what reports say about the sums of products with `recipe` in code that decodes FP8: ", split
/// sums".
std::string describeSums(RecipeAttrInterface recipe, Role role);

/// Checks that the dimension of blocks, the value of `parameter`, is 1 or 2.
mlir::LogicalResult verifyBlockDim(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                   llvm::StringRef parameter, int64_t dim);

mlir::LogicalResult verifyEps(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                              const llvm::APFloat &eps);

/// Builds fp8_max / max(amax, eps), limited to `largest`, and with `power2` floored to a power of
/// two; the result is `inputs.old` where max(amax, eps) is 0, Inf or NaN.
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

#endif // FP8_LIB_DIALECT_FP8_IR_RECIPES_RECIPEPARTS_H
