// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts of weights that a step can leave to the step before: what they are computed from. Private to the
// library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_PARAMETERCASTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_PARAMETERCASTS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include <string>
#include <vector>

namespace fp8 {

/// A cast of a weight, outside of loops, that is computed from arguments alone.
struct ParameterCast {
  ParameterCast(mlir::Operation *op, std::string site) : op(op), site(std::move(site)) {}

  mlir::Operation *op; ///< an fp8.quantize or fp8.quantize_blocks
  std::string site;    ///< the first that reads it
  /// The operations that compute the cast, in program order, without `op`.
  llvm::SmallVector<mlir::Operation *> code;
  llvm::SmallVector<mlir::BlockArgument> arguments; ///< the user's that it is computed from
  bool readsScales = false;                         ///< whether it reads the FP8 state as well
  llvm::SmallVector<unsigned> results;              ///< the numbers of those that are read
  /// Equal for casts, also of different functions, that compute the same of arguments of the same names.
  std::string key;
  bool isKept = true;
  std::string reason; ///< why it is not kept

  /// Returns the word for a result: "data", "scale_inv" or "amax", with blocks and with the order of the
  /// dimensions if that is not the tensor's: "data(128x128)(1,0)".
  std::string getResultName(unsigned result) const;
  /// Bytes of the copy of the weight that is cast; 0 where an argument itself is.
  int64_t getCopyBytes() const;
  /// Clones the cast, and its code unless `mapping` has it already; `mapping` has values for its arguments.
  mlir::Operation *clone(mlir::OpBuilder &builder, mlir::IRMapping &mapping) const;
};

/// Casts stacked weights before the loops that cast their slices (SliceCasts.cpp).
void castStacksOfWeights(mlir::func::FuncOp function);

/// Returns the casts in `function` that have the mark kWeightAttrName. A cast that cannot be kept says why.
std::vector<ParameterCast> findParameterCasts(mlir::func::FuncOp function);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_PARAMETERCASTS_H
