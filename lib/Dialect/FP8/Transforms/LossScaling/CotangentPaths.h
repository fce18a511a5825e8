// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a backward pass takes in the loss scale, and where it has to be divided out again. Private to the
// room.
//
// A backward pass is linear in the gradient of the loss, which is 1, and which exporters fold into the code:
// into a constant 1/N, a sign, or nothing at all. So there is no one value to multiply by the loss scale.
// Instead, every value of the function has a degree in the scale: 1 if it is multiplied by the scale, 0 if it
// is not. A sum, slice, cast or choice has the degree of what it reads, and a matmul the sum of the degrees.
// The reads where the degree changes from 0 to 1 are the seeds, those from 1 to 0 the ends. Any choice of
// seeds leaves the program's values what they were, because all that is not linear reads values of degree 0.
//
// The choice: the operand of every matmul that is a gradient has degree 1, and the seeds are as early as
// that allows, but nothing that the loss is computed from is scaled. The ends are the gradients of the
// parameters, or what the optimizer makes of them by linear operations only.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_COTANGENTPATHS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_COTANGENTPATHS_H

#include "fp8/Analysis/Reachability.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace fp8 {

/// The degree of a value in the loss scale; `any` is that of zeros: both 0 and 1.
enum class Degree { any, zero, one };

/// How the degree of a value follows from those of reads.
struct DegreeRule {
  enum class Kind {
    same,     ///< that of all reads, which must be equal
    product,  ///< the sum of those of the two reads
    quotient, ///< the difference of those of the two reads
    fixed     ///< `degree`
  };
  Kind kind = Kind::fixed;
  llvm::SmallVector<mlir::OpOperand *> reads;
  mlir::OpOperand *addend = nullptr; ///< of a matmul that is added to something
  Degree degree = Degree::zero;
};

/// Returns the rule of a value of floats, also of one in the body of a linalg op or in a loop.
DegreeRule getDegreeRule(mlir::Value value);

/// Returns whether rules say all about the reads of `op`. The others, such as exp or a comparison, must read
/// values of degree 0.
bool isLinear(mlir::Operation *op);

/// Returns whether a positive factor of what `op` reads is one of its result, but the result for a sum is not
/// the sum of the results: of a maximum, a minimum and a magnitude.
bool isOnlyHomogeneous(mlir::Operation *op);

/// Finds seeds and ends in one function, whose matmuls have roles.
class CotangentPaths {
public:
  /// `loss` is what the function returns as the loss. Where one read of a value is a seed, others may not be:
  /// a bias gradient need not be scaled.
  ///
  /// With `varies`, which says what differs from rank to rank, the paths are for means over the ranks: of
  /// values that vary, all reads are seeds; operations that are only homogeneous are not linear; ends stay
  /// where they are.
  CotangentPaths(mlir::func::FuncOp function, mlir::Value loss, std::function<bool(mlir::Value)> varies = {});

  /// Reads that get the value times the scale: operands of operations, also inside bodies of linalg ops.
  const llvm::SetVector<mlir::OpOperand *> &getSeeds() const { return seeds; }
  /// Reads that get the value divided by the scale. They are not in bodies of linalg ops.
  const llvm::SetVector<mlir::OpOperand *> &getEnds() const { return ends; }
  /// Whether a matmul reads a gradient.
  bool hasGradients() const { return !gradients.empty(); }
  /// Whether the loss is computed from `value`.
  bool isForward(mlir::Value value) const { return forward.contains(value); }
  Degree getDegree(mlir::OpOperand &read) const;

private:
  void findForwardValues(mlir::Value loss);
  bool isTainted(mlir::Value value);
  bool isBackward(mlir::Value value);

  void demand(mlir::OpOperand &read);
  void addSeed(mlir::OpOperand &read);

  DegreeRule getRule(mlir::Value value) const;
  bool isLinearHere(mlir::Operation *op) const;
  Degree evaluate(mlir::Value value);
  void evaluate(mlir::Block &block);
  void addEndsOf(mlir::Operation *op);
  mlir::OpOperand *findScaledRead(mlir::Operation *op) const;
  Degree joinReads(mlir::Value value, llvm::ArrayRef<mlir::OpOperand *> reads);
  void addEnd(mlir::OpOperand &read);
  void evaluateAll();
  void moveEndsUp();

  mlir::func::FuncOp function;
  std::function<bool(mlir::Value)> varies; ///< null for the scale of the loss
  llvm::SmallVector<mlir::OpOperand *> gradients;
  llvm::DenseSet<mlir::Value> forward; ///< what the loss is computed from
  std::optional<Reachability> reachability;
  llvm::DenseMap<mlir::Value, bool> tainted; ///< in bodies of linalg ops: computed from a gradient
  llvm::DenseSet<mlir::Value> demanded;
  llvm::SmallVector<mlir::OpOperand *> open;
  llvm::SetVector<mlir::OpOperand *> seeds, ends;
  llvm::DenseMap<mlir::Value, Degree> degrees;
  llvm::DenseSet<mlir::Value> unscaled;     ///< values that loops mix from both degrees
  llvm::DenseSet<mlir::Operation *> opaque; ///< linalg ops with ends in the body
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_COTANGENTPATHS_H
