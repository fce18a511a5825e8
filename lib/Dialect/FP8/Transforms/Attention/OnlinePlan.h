// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides whether a place of attention can be fp8.online_attention and fp8.online_attention_grad, and writes
// their regions. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ONLINEPLAN_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ONLINEPLAN_H

#include "AttentionParts.h"
#include "ElementsWriter.h"
#include "RowsRegion.h"
#include "fp8/Analysis/Attention/RowReductions.h"

namespace fp8::detail {

class OnlinePlan {
public:
  using Kind = RowReduction::Kind;

  /// `statistics` are the numbers of rows that the program needs besides the output, `gradientStatistics`
  /// those that depend on the gradients of the probabilities.
  OnlinePlan(const AttentionSite &site, const AttentionParts &parts,
             llvm::ArrayRef<const CodeNode *> statistics,
             llvm::ArrayRef<const CodeNode *> gradientStatistics);

  /// Returns why kernels cannot compute the place; nothing if they can.
  std::string plan();

  /// Returns the operands that kernels read, in the order of the operation's: 16-bit tensors, where the
  /// program has widened and scaled them.
  llvm::ArrayRef<Operand> getOperands() const { return operands; }
  const RowsPlan &getScore() const { return score; }
  const RowsPlan &getElements() const { return *elements; }
  const RowsPlan &getSink() const { return sink; }
  const RowsPlan &getGradientStatistics() const { return *rowGradients; }
  bool hasZeroEmptyRows() const { return rows->getEmptyRows() == EmptyRows::zero; }
  /// Returns whether a gradient statistic reads the sum of probabilities times gradients. The backward
  /// operation computes it for that: the sum of the output times its gradient, which the gradients of scores
  /// are made with, has the error of the output's rounding.
  bool sumsProducts() const;
  /// Returns whether the backward pass reads a number of the row of this kind.
  bool readsInBackward(Kind kind) const;
  /// Returns the statistic of the program that is exactly this number; nothing if none is.
  std::optional<unsigned> findStatistic(Kind kind) const;

  /// Writes the regions into blocks with their arguments. Statistics are those of the program, then
  /// `further` ones.
  void writeScore(mlir::OpBuilder &builder, mlir::Block *block) const;
  void writeStatistics(mlir::OpBuilder &builder, mlir::Block *block, llvm::ArrayRef<Kind> further) const;
  /// The last inputs are the numbers of the row that are read, in the order of their kinds.
  void writeElements(mlir::OpBuilder &builder, mlir::Block *block) const;
  /// Return the sink and a gradient statistic, in a block whose loops are the dimensions `dims` and whose
  /// arguments are the inputs of their plan and, for the latter, the numbers of the row as above.
  mlir::Value writeSink(mlir::OpBuilder &builder, mlir::Block *block, llvm::ArrayRef<unsigned> dims) const;
  mlir::Value writeGradientStatistic(mlir::OpBuilder &builder, mlir::Block *block, unsigned number,
                                     llvm::ArrayRef<unsigned> dims) const;

private:
  using Reductions = llvm::SmallVector<std::pair<const CodeNode *, RowReduction>>;

  void findOperands();
  std::string explainOperands() const;
  std::string explainSize(llvm::StringRef name, const Operand &operand, unsigned dim) const;
  std::string planForward();
  std::string planStatistics();
  std::string planBackward();
  void setNumbers(mlir::OpBuilder &builder, mlir::Location loc, ElementsWriter &writer,
                  const Reductions &reductions, mlir::ValueRange arguments) const;
  std::string planGradientStatistics();
  /// Returns the reductions of rows that `nodes` are computed from, the outermost ones. `takesZeros`: a
  /// number or row that is always 0 is one.
  Reductions findReductions(RowsPlan &from, llvm::ArrayRef<const CodeNode *> nodes,
                            bool takesZeros = false) const;
  /// Returns why a kernel lacks one of these reductions, of code that may read `last` and those before it.
  std::string explainReductions(const Reductions &found, Kind last, llvm::StringRef subject) const;

  const AttentionSite &site;
  const AttentionParts &parts;
  llvm::SmallVector<const CodeNode *> statistics, gradientStatistics;
  llvm::SmallVector<Operand> operands;
  llvm::SmallVector<double> factors; ///< what the program multiplies each of them by
  std::optional<RowReductions> rows;
  RowsPlan score;                         ///< the softmax is one of its matmuls
  RowsPlan sink;                          ///< its output, if there is one
  std::unique_ptr<RowsPlan> elements;     ///< reductions are matmuls, too
  std::unique_ptr<RowsPlan> rowGradients; ///< of the gradient statistics; reductions are its matmuls
  Reductions statisticReductions, gradientReductions, rowGradientReductions;
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ONLINEPLAN_H
