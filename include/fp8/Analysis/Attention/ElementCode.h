// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that computes an element of a tensor, as one expression of the element's indices, through
// elementwise operations, reductions and views, however the program divides it into operations. Equal parts
// of the code are one node.

#ifndef FP8_ANALYSIS_ATTENTION_ELEMENTCODE_H
#define FP8_ANALYSIS_ATTENTION_ELEMENTCODE_H

#include "fp8/Analysis/Attention/ScalarValues.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/AffineExpr.h"
#include <deque>
#include <map>
#include <tuple>
#include <vector>

namespace fp8 {

/// A scalar that code reads or computes, as a function of the indices d0, d1, …
struct CodeNode {
  enum class Kind {
    element,    ///< the element `at` of the tensor `value`; a scalar value, if `at` is empty
    index,      ///< `at[0]`, as an integer
    constant,   ///< `constant`
    operation,  ///< the result of the operation of arith or math that defines `value`, on the `operands`
    selection,  ///< operands[1] if operands[0] is true, else operands[2]; the other is not computed
    reduction,  ///< operands[0], then operands[1] for all indices `bound`, in order: what accumulates
    accumulator ///< in operands[1] of a reduction: what has been accumulated
  };
  CodeNode(Kind kind, mlir::Type type, mlir::Value value = {},
           llvm::SmallVector<const CodeNode *> operands = {})
      : kind(kind), type(type), value(value), operands(std::move(operands)) {}

  Kind kind;
  mlir::Type type;
  mlir::Value value;
  mlir::Attribute constant;
  llvm::SmallVector<mlir::AffineExpr> at;
  llvm::SmallVector<const CodeNode *> operands;
  llvm::SmallVector<unsigned> bound;
  uint64_t dims = 0;        ///< the indices that it is a function of, a bit for each
  bool accumulates = false; ///< whether it depends on an accumulator outside of it
  /// A tensor of the program that has the scalar as its element `place`; null if none has.
  mlir::Value tensor;
  llvm::SmallVector<mlir::AffineExpr> place;

  bool isFunctionOf(unsigned dim) const { return dims >> dim & 1; }
  /// Returns the operation of arith or math, and null for other nodes.
  mlir::Operation *getOperation() const { return kind == Kind::operation ? value.getDefiningOp() : nullptr; }
};

/// More indices than a dimension has.
inline constexpr double kMostIndices = 0x1p30;

/// Finds the code of elements, and owns it.
class ElementCode {
public:
  /// The first indices range over `sizes`, ShapedType::kDynamic if unknown. The indices of reductions are the
  /// first of the same size that the reduced scalar is not a function of, from the last one on, or further
  /// ones.
  explicit ElementCode(llvm::ArrayRef<int64_t> sizes) : sizes(sizes) {}

  /// Returns the code of the element `at` of `tensor`. Operations that are more than code on elements are not
  /// looked into: their elements are read.
  const CodeNode *get(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> at);
  llvm::ArrayRef<int64_t> getSizes() const { return sizes; }
  /// A tensor of the program that has a scalar, and where.
  struct Place {
    mlir::Value tensor;
    llvm::SmallVector<mlir::AffineExpr> at;
  };
  /// Returns the tensors that have a scalar and that its code was found through, those that others are views
  /// of first.
  llvm::SmallVector<Place> getPlaces(const CodeNode *node) const;
  /// Returns the largest number that `expr`, whose parts are not negative, can be; nothing if it is not
  /// known.
  std::optional<int64_t> getLargest(mlir::AffineExpr expr) const;
  /// Returns the index that a node is, as an affine expression; null if it is none, if an integer that it is
  /// computed from may wrap in its type, or if one may be outside of ±2^31. Dimensions of unknown size have
  /// at most kMostIndices indices.
  mlir::AffineExpr toIndex(const CodeNode *node) const;

private:
  /// An iteration of a linalg operation.
  struct Frame {
    mlir::linalg::LinalgOp op;
    llvm::SmallVector<mlir::AffineExpr> loops;
    llvm::DenseMap<mlir::Value, const CodeNode *> known;
  };
  using Key = std::tuple<int, const void *, const void *, const void *, std::vector<const void *>>;

  /// The least and the largest number that an expression can be.
  struct Bounds {
    double least, largest;
  };
  std::optional<Bounds> getBounds(mlir::AffineExpr expr) const;
  mlir::AffineExpr readIndex(const CodeNode *node) const;
  std::optional<bool> decide(const CodeNode *condition) const;

  const CodeNode *add(CodeNode node);
  const CodeNode *addElement(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> at);
  const CodeNode *addIndex(mlir::AffineExpr index, mlir::Type type);
  const CodeNode *addConstant(mlir::Attribute constant, mlir::Type type);
  const CodeNode *expand(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> at);
  const CodeNode *expandLinalg(mlir::linalg::LinalgOp op, unsigned result,
                               llvm::ArrayRef<mlir::AffineExpr> at);
  const CodeNode *expandReduction(Frame &frame, mlir::OpOperand *init, llvm::ArrayRef<mlir::AffineExpr> at);
  const CodeNode *expandElementwise(mlir::Operation *op, llvm::ArrayRef<mlir::AffineExpr> at);
  const CodeNode *ofScalar(mlir::Value scalar, Frame &frame);
  const CodeNode *ofArgument(mlir::BlockArgument argument, Frame &frame);
  const CodeNode *ofOperation(mlir::Operation *op, mlir::Value scalar, Frame &frame);
  std::optional<llvm::SmallVector<mlir::AffineExpr>>
  stepThroughView(mlir::Operation *op, llvm::ArrayRef<mlir::AffineExpr> at) const;
  mlir::AffineExpr simplify(mlir::AffineExpr expr) const;
  std::optional<unsigned> bindLoop(int64_t size, uint64_t taken);

  llvm::SmallVector<int64_t> sizes;
  std::deque<CodeNode> nodes;
  std::map<Key, const CodeNode *> keys;
  std::map<std::pair<const void *, std::vector<const void *>>, const CodeNode *> elements;
  std::vector<std::pair<const CodeNode *, Place>> places; ///< in the order in which their code was found
};

/// Returns the indices that `exprs` are functions of, a bit for each; those from 64 on must not occur.
uint64_t getDims(llvm::ArrayRef<mlir::AffineExpr> exprs);

/// Computes code on numbers.
class CodeEvaluator {
public:
  /// Gives an element of a tensor of the program.
  using ReadElement = std::function<std::optional<ScalarValue>(const CodeNode &, llvm::ArrayRef<int64_t>)>;
  /// Gives the numbers that an index bound by a reduction takes: all of its range, or some.
  using GetRange = std::function<llvm::ArrayRef<int64_t>(unsigned)>;

  CodeEvaluator(ReadElement read, GetRange range, Rounding rounding)
      : read(std::move(read)), range(std::move(range)), rounding(rounding) {}

  /// Returns the value of `node` for these indices; nothing if it is not known or not defined.
  std::optional<ScalarValue> compute(const CodeNode *node, llvm::ArrayRef<int64_t> indices);
  /// Gives `node` a value, whatever its code is. Before anything is computed.
  void fix(const CodeNode *node, ScalarValue value) { fixed.try_emplace(node, std::move(value)); }
  /// Returns an operation that had no value, if one had none so far.
  mlir::Operation *getUnknown() const { return unknown; }

private:
  std::optional<ScalarValue> computeNode(const CodeNode *node);
  std::optional<ScalarValue> visit(const CodeNode *node);
  std::optional<ScalarValue> reduce(const CodeNode *node, unsigned number);

  ReadElement read;
  GetRange range;
  Rounding rounding;
  llvm::SmallVector<int64_t> indices;
  std::optional<ScalarValue> accumulated;
  llvm::DenseMap<const CodeNode *, ScalarValue> fixed;
  mlir::Operation *unknown = nullptr;
  std::map<std::pair<const CodeNode *, std::vector<int64_t>>, std::optional<ScalarValue>> known;
};

} // namespace fp8

#endif // FP8_ANALYSIS_ATTENTION_ELEMENTCODE_H
