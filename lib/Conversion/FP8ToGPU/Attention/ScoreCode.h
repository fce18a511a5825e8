// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program's code on one score inside of a kernel. Private to the library.
//
// A thread has scores of some of its tile's own rows and of some rows of the streamed tile: queries and keys,
// or keys and queries. Code that depends on neither is computed once, code that depends on one of them once
// for each row, and only what depends on the score, or on both, once for each score.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_SCORECODE_H
#define FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_SCORECODE_H

#include "AttentionView.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fp8 {

/// The first and the last index of a tile's rows.
struct IndexRange {
  Expr first, last;
};

/// Returns e^power of an f32, or 2^power, by the processor's approximation of powers of two: at most 2 ulp
/// (PTX ISA, `ex2`); 0 below 2^-126.
Expr exponential(KernelBuilder &b, Expr power, bool isBaseTwo);
/// Returns the larger of two f32, and NaN if one is NaN.
Expr maximum(KernelBuilder &b, Expr lhs, Expr rhs);
/// Returns 1 / value of an f32, by the processor's approximation: at most 1 ulp (PTX ISA, `rcp`).
Expr reciprocal(KernelBuilder &b, Expr value);

/// Writes the code of one kernel.
class ScoreCode {
public:
  /// `isTransposed`: the tile's own rows are keys, and queries are streamed.
  ScoreCode(KernelBuilder &b, const AttentionView &view, bool isTransposed);

  /// Begins with tiles at `outer`, the indices of the outer dimensions besides that of the queries, and with
  /// own rows of these indices. Writes what the scores of the rows share.
  void start(const Indices &outer, llvm::ArrayRef<Expr> own);
  /// Returns whether input number `number` has one word of 32 bits for each streamed row, so that it can be
  /// streamed as well.
  bool isStreamed(unsigned number) const;
  /// Goes on to streamed rows of these indices: rows 2 i and 2 i + 1 are adjacent, and the first of them is
  /// even. `load` returns the element of a streamed input, by its number and that of the row.
  using LoadStreamed = std::function<mlir::Value(unsigned input, unsigned row)>;
  void stream(llvm::ArrayRef<Expr> rows, LoadStreamed load);
  /// Returns the condition under which all comparisons of the index of the query with that of the key have,
  /// for all scores of two tiles, the result that they have in the middle of what a mask lets pass; nullopt
  /// if there are none.
  std::optional<Expr> isInside(const IndexRange &own, const IndexRange &streamed);
  /// Returns the values `numbers` that the code yields for own row `own` and streamed row `streamed`, by
  /// their numbers. `scores`: the score and, in the backward pass, its gradient. `inside`: whether isInside()
  /// holds.
  llvm::SmallVector<mlir::Value, 2> compute(unsigned own, unsigned streamed,
                                            llvm::ArrayRef<mlir::Value> scores, bool inside,
                                            llvm::ArrayRef<unsigned> numbers);
  /// Returns the number of values that the code yields.
  unsigned countValues() const { return block.getTerminator()->getNumOperands(); }
  /// Returns whether value number `i` that the code yields is always 1.
  bool isOne(unsigned i) const;

private:
  /// The rows and scores that a value depends on.
  enum Level : unsigned { onQuery = 1, onKey = 2, onScore = 4 };
  /// query · row + key · column + constant.
  struct Linear {
    int64_t query, key, constant;
  };
  /// A comparison of both indices: its result inside, where the difference of its operands is less than 0 or
  /// greater, or maybe 0.
  struct Comparison {
    mlir::arith::CmpIOp op;
    Linear difference;
    bool isLess, isStrict, inside;
  };
  struct Cell {
    int own, streamed; ///< numbers of rows; -1 for none
    llvm::ArrayRef<mlir::Value> scores;
    bool inside;
  };

  /// The values of the code, and the reciprocals of divisors, that have been written, by the rows that they
  /// are of.
  struct Written {
    using Key = std::tuple<mlir::Value, int, int>;
    llvm::DenseMap<Key, mlir::Value> values, reciprocals;
  };

  unsigned getLevel(mlir::Value value) const { return levels.lookup(value); }
  void findLevels();
  bool dividesByRow(mlir::Operation *op) const;
  std::optional<Linear> findLinear(mlir::Value value) const;
  void findComparisons();
  void precompute(unsigned level, const Cell &cell);
  Written &getWritten(unsigned level);
  Written::Key getKey(mlir::Value value, const Cell &cell) const;
  mlir::Value get(mlir::Value value, const Cell &cell);
  mlir::Value write(mlir::Value value, const Cell &cell);
  mlir::Value writeArgument(mlir::BlockArgument argument, const Cell &cell);
  mlir::Value writeOperation(mlir::Operation *op, const Cell &cell);
  mlir::Value loadInput(unsigned number, const Cell &cell);
  bool hasPairs(const AttentionTensor &input) const;
  mlir::Value getReciprocal(mlir::Value value, const Cell &cell);
  Expr getIndex(unsigned dim, const Cell &cell);

  KernelBuilder &b;
  const AttentionView &view;
  unsigned ownDim, streamedDim, ownLevel, streamedLevel;
  mlir::Block &block;
  unsigned numScores;
  llvm::DenseMap<mlir::Value, unsigned> levels;
  llvm::SmallVector<Comparison> comparisons;
  llvm::SmallVector<mlir::Value> divisors; ///< by which scores are divided, and which depend on none
  Indices outer;
  llvm::SmallVector<Expr> ownRows, streamedRows;
  LoadStreamed loadStreamed;
  /// Elements of an input for an own row and two adjacent streamed ones, by the number of the input, that of
  /// the own row, that of the first streamed one, and whether isInside() holds.
  llvm::DenseMap<std::tuple<unsigned, int, int, int>, llvm::SmallVector<mlir::Value>> pairs;
  Written ofOwn, ofStreamed,
      ofScore; ///< of own rows or of none; of streamed rows; of the score being computed
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_SCORECODE_H
