// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention, block by block of rows, as matmuls and the code of rows between them. Private to the library.

#ifndef FP8_LIB_CONVERSION_EXPANDROWS_ATTENTIONDECOMPOSER_H
#define FP8_LIB_CONVERSION_EXPANDROWS_ATTENTIONDECOMPOSER_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8::detail {

/// A range of each dimension of the iteration space.
struct Box {
  mlir::SmallVector<mlir::OpFoldResult> offsets, sizes;
};

/// A tensor with its map from the iteration space.
struct Mapped {
  mlir::Value tensor;
  mlir::AffineMap map;
};

/// The part that a block of rows has of each outer dimension: one index of those before number `cut`, `size`
/// of that one, all of those after it.
struct Blocks {
  unsigned cut;
  int64_t size;
};

/// Row i sees the keys from i + `first` on, if that is set, and before i + `end`, if that is set.
struct Limit {
  unsigned row; ///< the outer dimension of i
  std::optional<int64_t> first, end;
  mlir::Value isValid; ///< whether the operands are such that this holds; else they see all keys
};

/// Decomposes one operation. Its methods are defined in AttentionBlocks.cpp (dimensions, blocks, matmuls),
/// AttentionKeys.cpp (the keys that a block sees), AttentionRows.cpp (the code of rows) and
/// DecomposeAttention.cpp (loops over blocks).
template <typename Op>
class AttentionDecomposer {
public:
  AttentionDecomposer(mlir::RewriterBase &rewriter, Op op)
      : rewriter(rewriter), loc(op.getLoc()), op(op), maps(op.getIndexingMapsArray()),
        outMaps(op.getOutMaps()), ranges(op.getStaticLoopRanges()), dims(op.getAttentionDims()) {}

  /// `blockElements`: the most scores in memory at a time, where a block has more than one row.
  mlir::LogicalResult run(int64_t blockElements);

private:
  static constexpr bool kIsGrad = Op::kNumMatmuls == 5;

  mlir::OpFoldResult sizeOf(unsigned dim);
  mlir::SmallVector<unsigned> scoreDims() const;
  mlir::AffineMap selectDims(mlir::ArrayRef<unsigned> selected) const;
  int64_t countRowElements() const;
  bool fitsLoop();

  std::optional<Blocks> chooseBlocks(int64_t blockElements) const;
  mlir::SmallVector<unsigned> chooseTasks(int64_t blockElements) const;
  bool isTask(unsigned dim) const { return llvm::is_contained(tasks, dim); }
  std::optional<Limit> chooseLimit();
  mlir::Value checkOperands();
  Box limitKeys(mlir::OpBuilder &b, const Box &box);
  bool isLimited(const Box &seen) const;
  bool isSplit(unsigned dim) const;
  bool isSummedOverBlocks(mlir::AffineMap map) const;
  bool isSum(unsigned result) const;
  bool canResume(unsigned result);

  mlir::Value slice(mlir::OpBuilder &b, const Mapped &mapped, const Box &box);
  mlir::Value insert(mlir::OpBuilder &b, mlir::Value part, const Mapped &mapped, const Box &box);
  mlir::Value emptyScores(mlir::OpBuilder &b, mlir::Type element, const Box &box, const Box &seen);
  mlir::Value multiply(mlir::OpBuilder &b, unsigned number, const Mapped &lhs, const Mapped &rhs,
                       const Mapped &out, bool resume);
  mlir::Value multiplyScores(mlir::OpBuilder &b, unsigned number, unsigned lhs, unsigned rhs,
                             mlir::Type element, const Box &box, const Box &seen);
  mlir::Value multiplyInto(mlir::OpBuilder &b, unsigned number, mlir::Value scores, unsigned operand,
                           unsigned result, mlir::Value out, const Box &seen);

  mlir::SmallVector<mlir::Value> runRow(mlir::OpBuilder &b, mlir::ValueRange position,
                                        mlir::ArrayRef<mlir::Value> matmuls,
                                        mlir::ArrayRef<mlir::Value> slots, const Box &seen);
  void shiftKeys(mlir::OpBuilder &b, mlir::Operation *clone, const Box &seen);
  void cloneLimited(mlir::OpBuilder &b, mlir::Operation &inner, mlir::IRMapping &mapping,
                    mlir::ArrayRef<mlir::Value> slots, const Box &seen);
  mlir::SmallVector<mlir::Value> runRows(mlir::OpBuilder &b, mlir::ArrayRef<mlir::Value> matmuls,
                                         mlir::ValueRange further, const Box &box, const Box &seen);
  mlir::AffineMap mapToPart(mlir::AffineMap map) const;
  mlir::FailureOr<mlir::SmallVector<mlir::Value>>
  liftRows(mlir::OpBuilder &b, mlir::ArrayRef<mlir::Value> matmuls, mlir::ValueRange further, const Box &box);
  mlir::Value addRows(mlir::OpBuilder &b, mlir::Value rows, unsigned result, mlir::Value out,
                      const Box &seen);
  mlir::SmallVector<mlir::Value> runBlock(mlir::OpBuilder &b, mlir::ValueRange outs, const Box &box);
  mlir::SmallVector<mlir::Value> runOuter(mlir::OpBuilder &b, unsigned outer, mlir::ValueRange outs, Box box);
  mlir::SmallVector<mlir::Value> runBlocks(mlir::OpBuilder &b, mlir::ValueRange outs, const Box &box);
  mlir::SmallVector<mlir::Value> runTasks(mlir::ValueRange outs, Box box);
  mlir::SmallVector<mlir::Value> runCut(mlir::OpBuilder &b, mlir::ValueRange outs, Box box);
  mlir::SmallVector<mlir::Value> buildLoop(
      mlir::OpBuilder &b, mlir::OpFoldResult end, int64_t step, mlir::ValueRange outs,
      llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Value, mlir::ValueRange)>
          body);
  mlir::Value begin(unsigned result);
  mlir::Value finish(unsigned result, mlir::Value sums);

  mlir::RewriterBase &rewriter;
  mlir::Location loc;
  Op op;
  mlir::SmallVector<mlir::AffineMap> maps, outMaps;
  mlir::SmallVector<int64_t> ranges;
  AttentionDims dims;
  mlir::SmallVector<unsigned> tasks; ///< outer dimensions whose indices are independent tasks
  std::optional<Blocks> blocks;      ///< none: all rows, of a task if there are tasks, are one block
  std::optional<Limit> limit;        ///< none: rows see all keys
  bool isLoop = true;                ///< whether a loop runs the code of the rows
  bool hasFailed = false;
};

} // namespace fp8::detail

#endif // FP8_LIB_CONVERSION_EXPANDROWS_ATTENTIONDECOMPOSER_H
