// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which matrix products a value depends on.

#ifndef FP8_ANALYSIS_REACHABILITY_H
#define FP8_ANALYSIS_REACHABILITY_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fp8 {

/// For every value of a function, the set of `sources` (a number each) that it was
/// computed from. One pass over the function: inside a loop a value depends on what
/// its own iteration and the code before the loop computed, not on later iterations. Sizes
/// (tensor.dim) carry nothing on.
class Reachability {
public:
  /// What a source is computed from counts for its result as well, unless `direct`: then
  /// the sources of a value are those with no other one between.
  Reachability(mlir::FunctionOpInterface function, llvm::ArrayRef<mlir::Operation *> sources,
               bool direct = false);

  /// True if `value` was computed from source number `source`.
  bool reaches(unsigned source, mlir::Value value) const {
    auto it = reached.find(value);
    return it != reached.end() && it->second.test(source);
  }
  /// All sources that `value` was computed from.
  llvm::BitVector getSources(mlir::Value value) const {
    auto it = reached.find(value);
    return it == reached.end() ? llvm::BitVector(numbers.size()) : it->second;
  }
  /// True if `value` was computed from one of `set`, which has a bit per source.
  bool reachesAny(const llvm::BitVector &set, mlir::Value value) const {
    auto it = reached.find(value);
    return it != reached.end() && it->second.anyCommon(set);
  }

private:
  void visit(mlir::Region &region);
  void visit(mlir::Operation *op);
  void add(llvm::BitVector &set, mlir::Value value) const;
  void addAllReadInside(llvm::BitVector &set, mlir::Operation *op) const;
  void store(mlir::Value value, const llvm::BitVector &set);

  bool direct;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  llvm::DenseSet<mlir::Operation *> holders; ///< ops with a source in a region
  llvm::DenseMap<mlir::Value, llvm::BitVector> reached;
};

} // namespace fp8

#endif // FP8_ANALYSIS_REACHABILITY_H
