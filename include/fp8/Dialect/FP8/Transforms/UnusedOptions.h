// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options of the user's that choose matmuls and that no matmul of the program fits. An option is then
// probably misspelt, and would silently do nothing. A caller that compiles a model in several programs can
// have them reported instead of refused, because an option may fit a matmul of another program.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_UNUSEDOPTIONS_H
#define FP8_DIALECT_FP8_TRANSFORMS_UNUSEDOPTIONS_H

#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace fp8 {

/// An option that no matmul fits.
struct UnusedOption {
  std::string option;                ///< "sites"
  std::optional<int64_t> place = {}; ///< of several options of this name, from 0
  std::string message;               ///< "no site matches --sites=head"
};

/// Adds an option to those that takeUnusedOptions returns.
void noteUnused(mlir::ModuleOp module, const UnusedOption &unused);

/// Notes the option if `isAllowed`; otherwise reports it as an error, which ends with `advice`.
mlir::LogicalResult checkUnused(mlir::ModuleOp module, bool isAllowed, const UnusedOption &unused,
                                llvm::StringRef advice);

/// Returns the options that passes have noted on the module, and removes the notes.
std::vector<UnusedOption> takeUnusedOptions(mlir::ModuleOp module);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_UNUSEDOPTIONS_H
