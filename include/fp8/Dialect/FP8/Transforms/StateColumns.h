// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout of a program's FP8 state: which quantized tensor each column of
// `scale` and `amax_history` belongs to. Written on the module by
// fp8-apply-recipe, read by whoever describes the program (the manifest).

#ifndef FP8_DIALECT_FP8_TRANSFORMS_STATECOLUMNS_H
#define FP8_DIALECT_FP8_TRANSFORMS_STATECOLUMNS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/IntEqClasses.h"
#include <map>
#include <tuple>
#include <vector>

namespace fp8 {

/// One quantized tensor in one format.
struct StateColumn {
  llvm::SmallVector<std::string> sites; ///< the sites that read it, in the order of columns
  TensorKind kind;
  mlir::FloatType format;
};

/// What identifies a column: a site's operand. `operand` tells the two inputs of a product
/// without weight apart and is 0 otherwise.
struct ColumnKey {
  std::string site;
  TensorKind kind;
  mlir::FloatType format;
  unsigned operand;
};

/// All columns of a module's programs.
class StateLayout {
public:
  llvm::ArrayRef<StateColumn> getColumns() const { return columns; }
  int64_t getHistoryLength() const { return historyLength; }
  void setHistoryLength(int64_t length) { historyLength = length; }

  /// Sixteen hexadecimal digits that change whenever a column changes its meaning: state
  /// files carry it. A history of another length is still one of the same tensors.
  std::string getHash() const;

  /// Adds a column and returns its index.
  int64_t add(StateColumn column) {
    columns.push_back(std::move(column));
    return columns.size() - 1;
  }

  void writeTo(mlir::ModuleOp module) const;
  /// Empty where the module has no state. The attributes are those of writeTo: fp8-compile
  /// refuses input that brings its own.
  static StateLayout readFrom(mlir::ModuleOp module);

private:
  llvm::SmallVector<StateColumn> columns;
  int64_t historyLength = 0;
};

/// Finds the columns of a module: operands that are one tensor in any of its functions are
/// one column in all of them.
class ColumnFinder {
public:
  /// Notes that one tensor of a function is read through all of `keys`.
  void addTensor(llvm::ArrayRef<ColumnKey> keys);
  /// Numbers the columns by the names of their sites and by what they are to them: edits
  /// elsewhere in the program do not change the order. Once, after the last addTensor.
  void appendTo(StateLayout &layout);
  /// The column of a key that was noted.
  int64_t getColumn(const ColumnKey &key) const;

private:
  unsigned indexOf(const ColumnKey &key);

  std::map<std::tuple<std::string, unsigned, const void *, unsigned>, unsigned> index;
  std::vector<ColumnKey> keys;
  llvm::IntEqClasses classes;
  std::vector<int64_t> columns; ///< by equivalence class
};

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_STATECOLUMNS_H
