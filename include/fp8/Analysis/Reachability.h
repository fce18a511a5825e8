// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the operations and values that a value is computed from.

#ifndef FP8_ANALYSIS_REACHABILITY_H
#define FP8_ANALYSIS_REACHABILITY_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fp8 {

/// The sources of a value that Reachability finds.
enum class Reach {
  /// All sources that are before the value in the program: inside a loop those of its own iteration and of
  /// the code before the loop, not those of other iterations.
  before,
  /// As `before`, but only sources that the value reaches without passing another source.
  direct,
  /// All sources, also those of other iterations of a loop.
  everything
};

/// For every value of a function, the set of sources that it is computed from. Sources are operations and
/// values, numbered in this order. A size (tensor.dim) does not depend on what its tensor is computed from.
class Reachability {
public:
  /// A value that is a source has only itself as source.
  Reachability(mlir::FunctionOpInterface function, llvm::ArrayRef<mlir::Operation *> sources,
               Reach reach = Reach::before, llvm::ArrayRef<mlir::Value> sourceValues = {});

  /// Returns whether `value` is computed from source number `source`.
  bool reaches(unsigned source, mlir::Value value) const {
    auto it = reached.find(value);
    return it != reached.end() && it->second.test(source);
  }
  /// Returns all sources that `value` is computed from, one bit per source.
  llvm::BitVector getSources(mlir::Value value) const {
    auto it = reached.find(value);
    return it == reached.end() ? llvm::BitVector(count) : it->second;
  }
  /// Returns whether `value` is computed from any source in `set`, which has a bit per source.
  bool reachesAny(const llvm::BitVector &set, mlir::Value value) const {
    auto it = reached.find(value);
    return it != reached.end() && it->second.anyCommon(set);
  }

private:
  void visit(mlir::Region &region);
  void visit(mlir::Operation *op);
  void visitPlain(mlir::Operation *op);
  void visitControlFlow(mlir::Operation *op);
  void add(llvm::BitVector &set, mlir::Value value) const;
  void addAllReadInside(llvm::BitVector &set, mlir::Operation *op) const;
  void store(mlir::Value value, const llvm::BitVector &set);

  Reach reach;
  unsigned count; ///< of sources
  bool changed = false;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  llvm::DenseSet<mlir::Value> sourceValues;
  llvm::DenseSet<mlir::Operation *> holders; ///< ops with a source in a region
  llvm::DenseMap<mlir::Value, llvm::BitVector> reached;
};

} // namespace fp8

#endif // FP8_ANALYSIS_REACHABILITY_H
