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
#include <map>
#include <tuple>

namespace fp8 {

/// One quantized tensor in one format.
struct StateColumn {
  llvm::SmallVector<std::string> sites; ///< the sites that read it, in program order
  TensorKind kind;
  mlir::FloatType format;
};

/// All columns of a module's programs.
class StateLayout {
public:
  /// What identifies a column: a site's operand. `operand` tells the two inputs
  /// of a product without weight apart and is 0 otherwise.
  struct Key {
    std::string site;
    TensorKind kind;
    mlir::FloatType format;
    unsigned operand;
  };

  /// The column of `key`, made where there is none.
  int64_t getOrCreate(const Key &key);
  /// Adds a site to a column: it reads the same tensor.
  void addReader(int64_t column, const Key &key);

  llvm::ArrayRef<StateColumn> getColumns() const { return columns; }
  int64_t getHistoryLength() const { return historyLength; }
  void setHistoryLength(int64_t length) { historyLength = length; }

  /// Sixteen hexadecimal digits that change whenever a column changes its
  /// meaning or the history its length: state files carry it.
  std::string getHash() const;

  void writeTo(mlir::ModuleOp module) const;
  /// Empty where the module has no state.
  static StateLayout readFrom(mlir::ModuleOp module);

private:
  llvm::SmallVector<StateColumn> columns;
  std::map<std::tuple<std::string, unsigned, const void *, unsigned>, int64_t> index;
  int64_t historyLength = 0;
};

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_STATECOLUMNS_H
