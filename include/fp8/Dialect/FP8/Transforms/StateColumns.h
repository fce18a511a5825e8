// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout of a program's FP8 state: which quantized tensor each column of
// `scale` and `amax_history` belongs to. fp8-apply-recipe writes it as attributes of the
// module, the manifest reads it.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_STATECOLUMNS_H
#define FP8_DIALECT_FP8_TRANSFORMS_STATECOLUMNS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/IntEqClasses.h"
#include <map>
#include <tuple>
#include <vector>

namespace fp8 {

/// A column: one quantized tensor in one format with one recipe.
struct StateColumn {
  llvm::SmallVector<std::string> sites; ///< the sites that read it, in the order of columns
  TensorKind kind;
  mlir::FloatType format;
  /// The recipe without its formats; null in a layout that is read from a module.
  RecipeAttrInterface recipe;
};

/// An operand of a site, which identifies a column. `operand` distinguishes the two inputs of a
/// matmul without a weight and is 0 for all others.
struct ColumnKey {
  std::string site;
  TensorKind kind;
  mlir::FloatType format;
  RecipeAttrInterface recipe; ///< without its formats
  unsigned operand;
};

/// The columns of a module; its functions share them.
class StateLayout {
public:
  llvm::ArrayRef<StateColumn> getColumns() const { return columns; }
  int64_t getHistoryLength() const { return historyLength; }
  void setHistoryLength(int64_t length) { historyLength = length; }

  /// Returns sixteen hexadecimal digits that change whenever the meaning of a column changes;
  /// state files contain them. The hash does not depend on the length of the history.
  std::string getHash() const;

  /// Adds a column and returns its index.
  int64_t add(StateColumn column) {
    columns.push_back(std::move(column));
    return columns.size() - 1;
  }

  void writeTo(mlir::ModuleOp module) const;
  /// Reads the attributes that writeTo set; without them the layout is empty. They are not
  /// checked: fp8-compile rejects input that has such attributes.
  static StateLayout readFrom(mlir::ModuleOp module);

private:
  llvm::SmallVector<StateColumn> columns;
  int64_t historyLength = 0;
};

/// Finds the columns of a module: operands that are the same tensor in one of its functions
/// share a column in all of them.
class ColumnFinder {
public:
  /// Records that all of `keys` are the same tensor.
  void addTensor(llvm::ArrayRef<ColumnKey> keys);
  /// Appends the columns to `layout`, ordered by site name and tensor kind, so that edits
  /// elsewhere in the program do not change the order. Call once, after the last addTensor.
  void appendTo(StateLayout &layout);
  /// Returns the column of a key that was passed to addTensor.
  int64_t getColumn(const ColumnKey &key) const;

private:
  unsigned indexOf(const ColumnKey &key);

  std::map<std::tuple<std::string, unsigned, const void *, const void *, unsigned>, unsigned> index;
  std::vector<ColumnKey> keys;
  llvm::IntEqClasses classes;
  std::vector<int64_t> columns; ///< by equivalence class
};

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_STATECOLUMNS_H
