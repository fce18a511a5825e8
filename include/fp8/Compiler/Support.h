// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recipes that each target has matmuls for, with their code or instruction, as the targets answer.

#ifndef FP8_COMPILER_SUPPORT_H
#define FP8_COMPILER_SUPPORT_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include <string>
#include <vector>

namespace fp8 {

/// A recipe with a format on a target, in the words of the options, and its matmuls of one role, or those of
/// groups of rows (mixture of experts).
struct SupportRecord {
  std::string target, recipe, format;
  bool isGrouped;
  Role role;
  MatmulSupport support;
};

/// Lists every target that the loaded dialects have, with every recipe, format and role of a site with a
/// weight, first of plain matmuls, then of grouped ones.
std::vector<SupportRecord> listSupport(mlir::MLIRContext &context);

/// Returns the list as indented JSON, one object per record: target, recipe, format, matmul (plain or
/// grouped), role, code and reason, of which one is null.
std::string printSupportJSON(llvm::ArrayRef<SupportRecord> records);

/// Returns the list as a table for each target.
std::string printSupportText(llvm::ArrayRef<SupportRecord> records);

} // namespace fp8

#endif // FP8_COMPILER_SUPPORT_H
