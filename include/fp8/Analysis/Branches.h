// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tells what a branch yields where its selector is known. Branches are scf.if, scf.index_switch, and
// arith.select of whole tensors by one bit, which is an scf.if without code.
//
// A backward pass reads what its forward pass saved in a branch inside another branch of the same selector.
// The forward branches that are not taken yield zeros, or what they saved themselves, in the place of that
// value.

#ifndef FP8_ANALYSIS_BRANCHES_H
#define FP8_ANALYSIS_BRANCHES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace fp8 {

/// Facts about a selector: the number that it is (of a bit 0 or 1), or those that it is not.
struct SelectorValue {
  mlir::Value selector;
  std::optional<int64_t> number;
  llvm::ArrayRef<int64_t> excluded = {};
};

/// Returns what is known of its selector inside `region`, a region of a branch; unset for other regions.
std::optional<SelectorValue> getSelectorValue(mlir::Region &region);

/// Returns the selector of a branch, and null for null and for other operations. A negated bit counts as the
/// bit.
mlir::Value getSelector(mlir::Operation *op);

/// Returns what the branch that `value` is a result of yields for it where its selector is as `known`; null
/// where that is not certain.
mlir::Value getYielded(mlir::Value value, const SelectorValue &known);

} // namespace fp8

#endif // FP8_ANALYSIS_BRANCHES_H
