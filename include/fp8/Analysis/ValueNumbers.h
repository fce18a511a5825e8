// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When two values are equal because they are computed alike: what the backward pass computes
// again is what the forward pass had.

#ifndef FP8_ANALYSIS_VALUENUMBERS_H
#define FP8_ANALYSIS_VALUENUMBERS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace fp8 {

/// Numbers the values of a function: equal numbers for equal operations on equal values,
/// also in different regions, where common subexpressions are not eliminated. Values that loops hand on
/// unchanged are those they hand on, what one loop stacks is what another reads of the stack at an index of
/// its own, and all slices of one tensor at varying offsets count as equal. Matrix products and transposes
/// are equal also where a transpose is folded into one product and not into the other, and casts however
/// they are written.
class ValueNumbers {
public:
  explicit ValueNumbers(mlir::FunctionOpInterface function);
  unsigned get(mlir::Value value);

  /// A value is a tensor with its dimensions in some order: dimension i is dimension
  /// dims[i] of the tensor of number `tensor`.
  struct Layout {
    unsigned tensor;
    std::vector<unsigned> dims;
    bool operator<(const Layout &other) const {
      return std::tie(tensor, dims) < std::tie(other.tensor, other.dims);
    }
  };
  Layout getLayout(mlir::Value value);

private:
  void visit(mlir::Operation *op);
  unsigned numberOf(Layout layout);
  std::optional<Layout> layOut(mlir::Operation *op);
  Layout layOutProduct(MatmulOp op);
  mlir::Operation *findEqual(mlir::Operation *op);
  bool areEqual(mlir::Operation *a, mlir::Operation *b);

  llvm::DenseMap<mlir::Value, unsigned> numbers;
  std::unordered_map<size_t, std::vector<mlir::Operation *>> operations; ///< by their hash
  /// Slices at varying offsets: of what, static offsets, sizes and strides.
  std::map<std::pair<unsigned, std::vector<int64_t>>, mlir::Operation *> slices;
  /// Products: both operands with the loop of each dimension, and those of the result.
  std::map<std::tuple<Layout, Layout, std::vector<unsigned>, const void *>, unsigned> products;
  std::map<std::pair<unsigned, const void *>, unsigned> casts; ///< of a tensor, to a type
  std::map<Layout, unsigned> numbersOfLayouts;
  llvm::DenseMap<unsigned, Layout> layouts; ///< of numbers that are another tensor's transpose
  unsigned count = 0;
};

/// What an earlier loop inserted into the stack that `value`, a slice, reads, if it reads as
/// much at an index of its own; null for every other value.
mlir::Value getStackedValue(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_VALUENUMBERS_H
