// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registry of targets: a dialect lists its own, and --target= finds them by name.

#ifndef FP8_DIALECT_FP8_IR_TARGETNAMES_H
#define FP8_DIALECT_FP8_IR_TARGETNAMES_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/DialectInterface.h"

namespace fp8 {

/// The interface of a dialect that declares targets; `--target=` finds them by name.
class TargetDialectInterface : public mlir::DialectInterface::Base<TargetDialectInterface> {
public:
  explicit TargetDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// Returns the targets of the dialect. Their names must be unique among all targets.
  virtual llvm::SmallVector<TargetAttrInterface> getTargets() const = 0;
};

/// Returns the targets of all dialects that `context` has loaded, sorted by name.
llvm::SmallVector<TargetAttrInterface> listTargets(mlir::MLIRContext &context);

/// Returns the target named `text`, or the target attribute that `text` spells, as "#my.target".
/// The error lists the names of all targets.
llvm::Expected<TargetAttrInterface> findTarget(llvm::StringRef text, mlir::MLIRContext &context);

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_TARGETNAMES_H
