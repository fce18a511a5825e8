// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How one function becomes FP8: its operands that are to be cast, and the rewriter that
// casts them, replaces the products and threads the state. Private to the library;
// ApplyRecipe.cpp plans, this carries out.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_RECIPEREWRITER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_RECIPEREWRITER_H

#include "RegionAmaxes.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Dialect/FP8/Transforms/StateColumns.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include <map>
#include <optional>
#include <set>

namespace fp8 {

/// One operand of a product that becomes FP8.
struct QuantizedOperand {
  mutable MatmulOp product; ///< a handle, which upstream does not let one read when const
  unsigned index;           ///< 0 or 1
  RecipeAttrInterface recipe;
  /// Number of its cast in the function: operands that share a cast share it.
  unsigned castId = 0;

  mlir::Value value() const { return index == 0 ? product.getLhs() : product.getRhs(); }
  TensorKind kind() const { return index == 0 ? *product.getLhsKind() : *product.getRhsKind(); }
  mlir::FloatType format() const { return recipe.getFormat(kind()); }
  mlir::AffineMap map() const { return product.getIndexingMapsArray()[index]; }

  /// The program's own FP8 tensor that this operand reads, behind views; null for one that
  /// the recipe quantizes.
  DequantizeOp ownBytes() const;
  /// Extents of the blocks that share a scale; empty for one scale per tensor.
  llvm::SmallVector<int64_t> block() const;
  /// What is quantized: blocks lie in the operand as it is, a single scale is the
  /// same before and after a reshape, so that all views share one cast.
  mlir::Value source() const;
  ColumnKey columnKey() const;
};

/// State columns of the casts of one function, by number of the cast.
using CastColumns = std::map<unsigned, int64_t>;

/// Rewrites one function; the state's layout is complete.
class FunctionRewriter {
public:
  FunctionRewriter(mlir::func::FuncOp function, const StateLayout &layout, const CastColumns &columns,
                   bool updates)
      : function(function), pair(JoinedPair::find(function)), layout(layout), columns(columns),
        updates(updates), builder(function.getContext()) {}

  void addStateArguments();
  void rewrite(llvm::ArrayRef<QuantizedOperand> operands);
  void updateState(RecipeAttrInterface recipe);

private:
  /// The FP8 bytes of a tensor, their scale_inv, and its amax if that is recorded.
  struct Cast {
    mlir::Value data, scaleInv, amax;
  };
  struct State {
    mlir::Value scale, history;
    mlir::Value largestAmaxes = nullptr; ///< of each column's history, once something asked
  };
  Cast getOrCreateCast(const QuantizedOperand &operand);
  mlir::Value emptyLike(mlir::Location loc, mlir::Value like, mlir::Type elementType);
  mlir::Value emptyScale(mlir::Location loc, mlir::Value source, llvm::ArrayRef<int64_t> block,
                         mlir::Type elementType);
  mlir::Value scaleOfColumn(mlir::Location loc, const QuantizedOperand &operand, mlir::Value source,
                            State &from, int64_t column, bool repeats);
  mlir::Value getLargestAmaxes(State &from);
  mlir::Value scaleFromTensor(mlir::Location loc, const QuantizedOperand &operand, mlir::Value source);
  void recordAmax(const QuantizedOperand &operand, mlir::Value amax);
  mlir::Value replayViews(mlir::Value operand, mlir::Value source, mlir::Value data);
  void replaceProduct(const QuantizedOperand &lhs, const QuantizedOperand &rhs);
  void findForwardColumns(llvm::ArrayRef<QuantizedOperand> operands);
  mlir::Value reduceAmaxes(mlir::Location loc, llvm::ArrayRef<RecordedAmax> recorded,
                           RecipeAttrInterface recipe);
  State updateColumns(State from, RecipeAttrInterface recipe, bool ofForward);

  mlir::func::FuncOp function;
  std::optional<JoinedPair> pair; ///< where the function is forward and backward in one
  const StateLayout &layout;
  const CastColumns &columns;
  bool updates;
  mlir::OpBuilder builder;
  State state, backwardState; ///< as the function, and its backward part, receive it
  /// Columns that are updated at the end of the forward part of a pair.
  std::set<int64_t> forwardColumns;
  std::map<unsigned, Cast> casts;
  /// Recorded amaxes by column, for the update.
  ColumnAmaxes amaxes;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_RECIPEREWRITER_H
