// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types that mixed precision gives to the values of a function. Private to the room.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_PRECISION_NARROWVALUES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_PRECISION_NARROWVALUES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace fp8 {

/// Returns the wider of two types of values; a null type is a constant's, which adapts to the other one.
/// Of bf16 and f16 neither is wider: their values meet in f32.
mlir::Type getWiderType(mlir::Type a, mlir::Type b);

/// Returns `type` with `element` as its (element) type.
mlir::Type withElement(mlir::Type type, mlir::Type element);

/// The narrow values of a function. For every narrow value the IR also has its extension to f32, which
/// all users read that know nothing of mixed precision.
class NarrowValues {
public:
  explicit NarrowValues(mlir::RewriterBase &rewriter) : rewriter(rewriter) {}

  /// The narrow value that `value` is the extension of; null if there is none.
  mlir::Value find(mlir::Value value) const { return narrow.lookup(value); }
  /// The type that the policy gives to `value`: that of the narrow value, null for a constant, else its own.
  mlir::Type getType(mlir::Value value) const;
  bool isConstant(mlir::Value value) const { return constants.contains(value); }
  void addConstant(mlir::Value value) { constants.insert(value); }

  /// Creates the extension of `value` to `wide`, after it.
  mlir::Value extend(mlir::Value value, mlir::Type wide);
  /// Makes `value` the narrow one of `old`, whose users get its extension.
  void replace(mlir::Value old, mlir::Value value);
  /// Returns `value`, of f32, rounded to `type`; one value for all that ask. A transposed or reshaped value
  /// is the view of the rounded one, so that a parameter is rounded once.
  mlir::Value round(mlir::Value value, mlir::FloatType type);
  /// Returns `value`, of f32, rounded to the precision of TF32: 10 bits of mantissa, nearest, ties away.
  mlir::Value roundToTF32(mlir::Value value);

  /// Erases the extensions that nobody reads.
  void eraseUnused();

private:
  mlir::Value roundAsView(mlir::Value value, llvm::function_ref<mlir::Value(mlir::Value)> roundSource);

  mlir::RewriterBase &rewriter;
  llvm::MapVector<mlir::Value, mlir::Value> narrow; ///< by the extension
  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, mlir::Value> rounded;
  llvm::DenseMap<mlir::Value, mlir::Value> roundedToTF32;
  llvm::DenseSet<mlir::Value> constants;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_PRECISION_NARROWVALUES_H
