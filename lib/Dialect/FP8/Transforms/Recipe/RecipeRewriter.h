// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites one function to FP8: the operands to cast, and the rewriter that casts them, replaces
// the matmuls and threads the state through the function. ApplyRecipe.cpp decides. Private to
// the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_RECIPEREWRITER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_RECIPEREWRITER_H

#include "RegionAmaxes.h"
#include "fp8/Analysis/RowGroups.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Dialect/FP8/Transforms/StateColumns.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include <map>
#include <optional>
#include <set>

namespace fp8 {

/// One operand of a matmul that becomes FP8.
struct QuantizedOperand {
  mutable MatmulOp matmul; ///< mutable, because upstream's accessors of operations are not const
  unsigned index;          ///< 0 or 1
  RecipeAttrInterface recipe;
  /// The number of its cast in the function; operands may share a cast.
  unsigned castId = 0;

  mlir::Value value() const { return index == 0 ? matmul.getLhs() : matmul.getRhs(); }
  TensorKind kind() const { return index == 0 ? *matmul.getLhsKind() : *matmul.getRhsKind(); }
  mlir::FloatType format() const { return recipe.getFormat(kind()); }
  /// The grouped matmul that the matmul becomes at once: of groups of rows, with scales per row. Unset for
  /// other matmuls; groups of rows with one scale per tensor are a view like others.
  std::optional<GroupedMatmul> grouped() const;
  /// The tensor that is cast with blocks, and its map: the operand, or the rows of all groups.
  mlir::Value tensor() const;
  mlir::AffineMap map() const;
  /// The dimensions of the matmul; the groups of a grouped one are batches.
  ContractionDims dims() const;

  /// The program's own FP8 tensor that this operand reads, possibly through views; null if the
  /// recipe quantizes the operand.
  DequantizeOp ownBytes() const;
  /// Groups of adjacent dimensions of one kind, which count as one dimension: contracted ones, or free
  /// ones (M or N). A batch dimension is a group of its own.
  llvm::SmallVector<mlir::ReassociationIndices> groups() const;
  /// Extents of the blocks that share a scale, one for each group; empty for one scale per tensor.
  llvm::SmallVector<int64_t> block() const;
  /// The same for each dimension. A group of several dimensions has extents of 0 or 1.
  llvm::SmallVector<int64_t> blockOfDims() const;
  /// The tensor to quantize: the operand itself with blocks, which depend on its shape; the tensor
  /// behind all views with a single scale, so that all views share one cast.
  mlir::Value source() const;
  ColumnKey columnKey() const;
};

/// State columns of the casts of one function, by number of the cast.
using CastColumns = std::map<unsigned, int64_t>;
/// The streams of random bits of the casts that round stochastically, in the same way.
using CastStreams = std::map<unsigned, int64_t>;

/// Adds the state tensor `rounding` (i64 [2]: seed and step) to a function, or to the backward of `pair`,
/// with the next step as a result; returns its value. An error if the program has state of that name.
mlir::FailureOr<mlir::Value> addRoundingState(mlir::func::FuncOp function, std::optional<JoinedPair> &pair);

/// Rewrites one function. The layout of the state must be complete.
class FunctionRewriter {
public:
  FunctionRewriter(mlir::func::FuncOp function, const StateLayout &layout, const CastColumns &columns,
                   const CastStreams &streams, bool updates, bool markWeights)
      : function(function), pair(JoinedPair::find(function)), layout(layout), columns(columns),
        streams(streams), updates(updates), markWeights(markWeights), builder(function.getContext()) {}

  /// Adds the state of stochastic rounding, which comes before the other state.
  mlir::LogicalResult addRounding();
  void addStateArguments();
  void rewrite(llvm::ArrayRef<QuantizedOperand> operands);
  /// Appends results per cast, of a pair to the function that casts: the root mean square error of the FP8
  /// tensor over that of the tensor, the elements that are lost, the amax.
  void measureErrors();
  void updateState();

private:
  /// The FP8 data of a tensor, its scale_inv, and its amax if that is recorded.
  struct Cast {
    mlir::Value data, scaleInv, amax;
  };
  /// A cast, as results describe it.
  struct MeasuredCast {
    mlir::Value tensor;
    Cast cast;
    llvm::SmallVector<int64_t> block; ///< empty: one scale
    std::string name;                 ///< "site.kind"
  };
  struct State {
    mlir::Value scale, history;
    mlir::Value largestAmaxes = nullptr; ///< of each column's history; created on first use
  };
  Cast getOrCreateCast(const QuantizedOperand &operand);
  Cast castBlocks(const QuantizedOperand &operand);
  /// Casts `source` by the recipe's own code; records its amax with `record`.
  Cast castByRecipe(const QuantizedOperand &operand, mlir::Value source, mlir::Value scale, bool record);
  /// Returns the f32 values that `data`, an operand of a matmul, stands for.
  mlir::Value dequantize(const QuantizedOperand &operand, mlir::Value data, mlir::Value scaleInv);
  /// Lets the matmul multiply what the recipe's own code dequantizes, in f32.
  void multiplyDequantized(const QuantizedOperand &lhs, const QuantizedOperand &rhs, mlir::Value lhsData,
                           mlir::Value rhsData);
  mlir::Value getRandom();
  /// Returns the stream of random bits of a cast that rounds stochastically; null for others.
  mlir::IntegerAttr streamOf(const QuantizedOperand &operand);
  /// Lets the cast of `operand` round stochastically if it has a stream.
  void roundRandomly(CastParts &parts, const QuantizedOperand &operand);
  mlir::Value emptyLike(mlir::Location loc, mlir::Value like, mlir::Type elementType);
  mlir::Value scaleOfColumn(mlir::Location loc, const QuantizedOperand &operand, mlir::Value source,
                            State &from, int64_t column, bool repeats);
  mlir::Value getLargestAmaxes(State &from);
  mlir::Value scaleFromTensor(mlir::Location loc, const QuantizedOperand &operand, mlir::Value source);
  void recordAmax(const QuantizedOperand &operand, mlir::Value amax);
  mlir::Value replayViews(mlir::Value operand, mlir::Value source, mlir::Value data);
  void replaceMatmul(const QuantizedOperand &lhs, const QuantizedOperand &rhs);
  void findForwardColumns(llvm::ArrayRef<QuantizedOperand> operands);
  mlir::Value reduceAmaxes(mlir::Location loc, llvm::ArrayRef<RecordedAmax> recorded,
                           RecipeAttrInterface recipe);
  State updateColumns(State from, bool ofForward);
  State updateColumn(State from, int64_t column);

  mlir::func::FuncOp function;
  std::optional<JoinedPair> pair; ///< set if the function is a joined forward and backward
  const StateLayout &layout;
  const CastColumns &columns;
  const CastStreams &streams;
  /// The number of the state of stochastic rounding among the arguments, or of what backward receives.
  std::optional<unsigned> randomNumber;
  bool updates;
  bool markWeights; ///< sets kWeightAttrName on the casts of weights
  mlir::OpBuilder builder;
  State state, backwardState; ///< the state that the function, and its backward part, receive
  /// Columns that are updated at the end of the forward part of a pair.
  std::set<int64_t> forwardColumns;
  std::map<unsigned, Cast> casts;
  std::vector<MeasuredCast> measured; ///< in the order of creation
  /// The recorded amaxes by column, for the update.
  ColumnAmaxes amaxes;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_RECIPEREWRITER_H
