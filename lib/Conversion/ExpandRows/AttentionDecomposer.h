// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention, block by block of rows, as matmuls and the code of rows between them. Private to the library.

#ifndef FP8_LIB_CONVERSION_EXPANDROWS_ATTENTIONDECOMPOSER_H
#define FP8_LIB_CONVERSION_EXPANDROWS_ATTENTIONDECOMPOSER_H

#include "fp8/Dialect/FP8/IR/FP8.h"
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

/// Decomposes one operation. Its methods are defined in AttentionBlocks.cpp (dimensions, blocks, matmuls),
/// AttentionRows.cpp (the code of rows) and DecomposeAttention.cpp (loops over blocks).
template <typename Op>
class AttentionDecomposer {
public:
  AttentionDecomposer(mlir::RewriterBase &rewriter, Op op)
      : rewriter(rewriter), loc(op.getLoc()), op(op), maps(op.getIndexingMapsArray()),
        outMaps(op.getOutMaps()), ranges(op.getStaticLoopRanges()), dims(op.getAttentionDims()) {}

  /// `blockElements`: the most scores in memory at a time, where a block has more than one row.
  mlir::LogicalResult run(int64_t blockElements);

private:
  static constexpr bool isGrad = Op::kNumMatmuls == 5;

  mlir::OpFoldResult sizeOf(unsigned dim);
  mlir::SmallVector<unsigned> scoreDims() const;
  mlir::AffineMap selectDims(mlir::ArrayRef<unsigned> selected) const;
  int64_t countRowElements() const;
  bool fitsLoop();

  std::optional<Blocks> chooseBlocks(int64_t blockElements) const;
  bool isSplit(unsigned dim) const;
  bool isSummedOverBlocks(mlir::AffineMap map) const;
  bool canResume(unsigned result);

  mlir::Value slice(mlir::OpBuilder &b, const Mapped &mapped, const Box &box);
  mlir::Value insert(mlir::OpBuilder &b, mlir::Value part, const Mapped &mapped, const Box &box);
  mlir::Value emptyScores(mlir::OpBuilder &b, mlir::Type element, const Box &box);
  mlir::Value multiply(mlir::OpBuilder &b, unsigned number, const Mapped &lhs, const Mapped &rhs,
                       const Mapped &out, bool resume);
  mlir::Value multiplyScores(mlir::OpBuilder &b, unsigned number, unsigned lhs, unsigned rhs,
                             mlir::Type element, const Box &box);
  mlir::Value multiplyInto(mlir::OpBuilder &b, unsigned number, const Mapped &scores, unsigned operand,
                           unsigned result, mlir::Value out, const Box &box);

  mlir::SmallVector<mlir::Value> runRow(mlir::OpBuilder &b, mlir::ValueRange position,
                                        mlir::ArrayRef<mlir::Value> matmuls, const Box &box);
  mlir::SmallVector<mlir::Value> runRows(mlir::OpBuilder &b, mlir::ArrayRef<mlir::Value> matmuls,
                                         mlir::ValueRange further, const Box &box);
  mlir::AffineMap mapToPart(mlir::AffineMap map) const;
  mlir::FailureOr<mlir::SmallVector<mlir::Value>>
  liftRows(mlir::OpBuilder &b, mlir::ArrayRef<mlir::Value> matmuls, mlir::ValueRange further, const Box &box);
  mlir::SmallVector<mlir::Value> runBlock(mlir::OpBuilder &b, mlir::ValueRange outs, const Box &box);
  mlir::SmallVector<mlir::Value> runOuter(mlir::OpBuilder &b, unsigned outer, mlir::ValueRange outs, Box box);
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
  std::optional<Blocks> blocks; ///< none: all rows are one block
  bool isLoop = true;           ///< whether a loop runs the code of the rows
  bool hasFailed = false;
};

} // namespace fp8::detail

#endif // FP8_LIB_CONVERSION_EXPANDROWS_ATTENTIONDECOMPOSER_H
