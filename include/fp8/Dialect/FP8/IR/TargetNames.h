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

/// A dialect with this interface has targets that can be named by a word.
class TargetDialectInterface : public mlir::DialectInterface::Base<TargetDialectInterface> {
public:
  explicit TargetDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// The targets of the dialect; their names differ from those of all other targets.
  virtual llvm::SmallVector<TargetAttrInterface> getTargets() const = 0;
};

/// The targets of all dialects that `context` has loaded, by name.
llvm::SmallVector<TargetAttrInterface> listTargets(mlir::MLIRContext &context);

/// The target of that name, or the one that `text` is as an attribute, "#my.target". An error
/// names the targets there are.
llvm::Expected<TargetAttrInterface> findTarget(llvm::StringRef text, mlir::MLIRContext &context);

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_TARGETNAMES_H
