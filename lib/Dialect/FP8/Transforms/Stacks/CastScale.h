// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that computes the scale of a cast: from the state, the tensor itself, or both. Private
// to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSCALE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSCALE_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace fp8 {

/// The code that computes the scale of a cast from its tensor and from arguments of the function.
class CastScale {
public:
  /// Finds the code for `op`; unset if the scale is computed from other values than these.
  static std::optional<CastScale> of(QuantizeOp op);

  mlir::Value getValue() const { return scale; }
  /// Whether every tensor has a scale of its own.
  bool followsFromTensor() const { return !ofTensor.empty(); }
  /// The operations that compute the scale from the tensor: they read the tensor, or each other.
  llvm::ArrayRef<mlir::Operation *> getTensorCode() const { return ofTensor.getArrayRef(); }
  /// Whether the other scale is the same function of its tensor.
  bool isAlike(const CastScale &other) const;

  /// Moves the operations that compute the scale from arguments alone to the start of the
  /// function; returns the last of them, null where there are none.
  mlir::Operation *moveToStart();
  /// The scale of `other`, which may be of another shape, where `builder` stands.
  mlir::Value cloneFor(mlir::OpBuilder &builder, mlir::Value other) const;

private:
  explicit CastScale(QuantizeOp op) : tensor(op.getInputs().front()), scale(op.getScale()) {}
  bool add(mlir::Value value);

  mlir::Value tensor, scale;
  llvm::SetVector<mlir::Operation *> ofArguments, ofTensor; ///< in an order in which they can run
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSCALE_H
