// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which operations and values a value is computed from.

#ifndef FP8_ANALYSIS_REACHABILITY_H
#define FP8_ANALYSIS_REACHABILITY_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fp8 {

/// How far Reachability looks back.
enum class Reach {
  /// All sources before the value in the program: inside a loop what its own iteration and the code before
  /// the
  /// loop computed, not what later iterations hand on.
  before,
  /// Of those the ones with no other source in between.
  direct,
  /// All sources, those of every iteration of a loop too.
  everything
};

/// For every value of a function, the set of sources that it was computed from. Sources are operations and
/// values, numbered in this order. Sizes (tensor.dim) carry nothing on.
class Reachability {
public:
  /// A value that is a source is computed from itself alone.
  Reachability(mlir::FunctionOpInterface function, llvm::ArrayRef<mlir::Operation *> sources,
               Reach reach = Reach::before, llvm::ArrayRef<mlir::Value> sourceValues = {});

  /// True if `value` was computed from source number `source`.
  bool reaches(unsigned source, mlir::Value value) const {
    auto it = reached.find(value);
    return it != reached.end() && it->second.test(source);
  }
  /// All sources that `value` was computed from.
  llvm::BitVector getSources(mlir::Value value) const {
    auto it = reached.find(value);
    return it == reached.end() ? llvm::BitVector(count) : it->second;
  }
  /// True if `value` was computed from one of `set`, which has a bit per source.
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
