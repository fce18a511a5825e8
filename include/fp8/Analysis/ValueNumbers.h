// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Global value numbering: finds values that are equal because they are computed alike, such as
// those that the backward pass computes again.

#ifndef FP8_ANALYSIS_VALUENUMBERS_H
#define FP8_ANALYSIS_VALUENUMBERS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace fp8 {

/// Numbers the values of a function: equal operations on equal values get equal numbers, also in
/// different regions, across which common subexpressions are not eliminated. In addition:
/// - a value that a loop forwards unchanged equals the value before the loop;
/// - a result of a branch equals, in another branch of an equal selector, what the first one yields there;
/// - a slice that one loop inserts into a stack equals the slice that another loop reads there;
/// - all slices of one tensor at varying offsets count as equal;
/// - the only element of a tensor is equal in all of its shapes;
/// - matmuls are equal also if a transpose is folded into only one of them;
/// - casts are equal in any form.
class ValueNumbers {
public:
  explicit ValueNumbers(mlir::FunctionOpInterface function);
  /// The number of `value` as `reader`, an operand of which it is, reads it; without a reader that of the
  /// value anywhere.
  unsigned get(mlir::Value value, mlir::Operation *reader = nullptr);
  /// The value of the same type that control flow forwards to `value` as `reader` reads it; null if there is
  /// none, or more than one.
  mlir::Value getForwarded(mlir::Value value, mlir::Operation *reader);

  /// A value as a transpose of a tensor: dimension i of the value is dimension dims[i] of the
  /// tensor with number `tensor`.
  struct Layout {
    unsigned tensor;
    std::vector<unsigned> dims;
    bool operator<(const Layout &other) const {
      return std::tie(tensor, dims) < std::tie(other.tensor, other.dims);
    }
  };
  Layout getLayout(mlir::Value value, mlir::Operation *reader = nullptr);

private:
  mlir::Value getTaken(mlir::Value value, mlir::Operation *reader);
  mlir::Value getCopied(mlir::Value value, mlir::Operation *reader);
  mlir::Value getReshaped(mlir::Value tensor, mlir::Operation *reader);
  unsigned numberElement(mlir::Value tensor, mlir::Operation *reader);
  void visit(mlir::Operation *op);
  unsigned numberOf(Layout layout);
  std::optional<Layout> layOut(mlir::Operation *op);
  Layout layOutMatmul(MatmulOp op);
  mlir::Operation *findEqual(mlir::Operation *op);
  bool areEqual(mlir::Operation *a, mlir::Operation *b);

  llvm::DenseMap<mlir::Value, unsigned> numbers;
  std::unordered_map<size_t, std::vector<mlir::Operation *>> operations; ///< by their hash
  /// Slices at varying offsets, by source number and static offsets, sizes and strides.
  std::map<std::pair<unsigned, std::vector<int64_t>>, mlir::Operation *> slices;
  /// Matmuls, by both operands with the loop of each of their dimensions, the loops of the result,
  /// and its element type.
  std::map<std::tuple<Layout, Layout, std::vector<unsigned>, const void *>, unsigned> matmuls;
  std::map<std::pair<unsigned, const void *>, unsigned> casts; ///< by source number and type
  llvm::DenseMap<unsigned, unsigned> elements; ///< of tensors of one element, by the tensor's number
  std::map<Layout, unsigned> numbersOfLayouts;
  llvm::DenseMap<unsigned, Layout> layouts;     ///< for numbers of transposes of another tensor
  llvm::SmallPtrSet<mlir::Operation *, 4> open; ///< branches whose selectors are being compared
  unsigned count = 0;
};

/// If `value` is a slice of a stack, read at a varying offset, returns the slice of the same size
/// that another loop inserted into the stack; null for every other value.
mlir::Value getStackedValue(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_VALUENUMBERS_H
