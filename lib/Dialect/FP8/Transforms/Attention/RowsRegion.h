// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes code on elements as the region of fp8.attention or fp8.attention_grad, which computes one row.
// Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWSREGION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWSREGION_H

#include "fp8/Analysis/Attention/ElementCode.h"
#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8::detail {

/// An input of the region: elements of a tensor.
struct RowInput {
  mlir::Value tensor;
  llvm::SmallVector<mlir::AffineExpr> at;
};

/// Plans the region: which tensors it reads.
class RowsPlan {
public:
  /// `matmuls` are the elements of results of matmuls that the region gets as rows; `outputs` what it
  /// yields. The rows are along `keys`.
  RowsPlan(const ElementCode &code, llvm::ArrayRef<unsigned> keys, llvm::ArrayRef<const CodeNode *> matmuls,
           llvm::ArrayRef<const CodeNode *> outputs);

  /// Chooses the inputs. A scalar that does not depend on the matmuls is computed again where that is cheap,
  /// so that no tensor of masks is needed; otherwise the program's tensor is read. Statistics of rows for
  /// which `isKnown` are read, too. On failure returns why.
  std::string chooseInputs(llvm::function_ref<bool(const CodeNode *)> isKnown = {});

  llvm::ArrayRef<const CodeNode *> getMatmuls() const { return matmuls; }
  llvm::ArrayRef<const CodeNode *> getOutputs() const { return outputs; }
  /// Returns the input of each node that is one.
  const llvm::DenseMap<const CodeNode *, unsigned> &getInputNumbers() const { return inputNumbers; }
  bool dependsOnMatmuls(const CodeNode *node);

  llvm::SmallVector<RowInput> inputs;

private:
  friend class RowsWriter;
  bool isRow(const CodeNode *node) const { return node->dims & keyDims; }
  std::string visit(const CodeNode *node, llvm::function_ref<bool(const CodeNode *)> isKnown);
  std::string visitIndependent(const CodeNode *node, bool isInlined);
  bool canRead(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> at) const;
  bool isCheap(const CodeNode *node, unsigned &cost, bool &readsFloats) const;
  void addInput(const CodeNode *node, mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> at);

  const ElementCode &code;
  llvm::SmallVector<unsigned> keys;
  llvm::SmallVector<const CodeNode *> matmuls, outputs;
  uint64_t keyDims = 0;
  llvm::DenseMap<const CodeNode *, bool> dependent;
  llvm::DenseMap<const CodeNode *, unsigned> inputNumbers;
  llvm::SmallPtrSet<const CodeNode *, 32> visited;
};

/// Writes a node that is an index. `getDim` gives that of a dimension.
mlir::Value writeIndex(mlir::OpBuilder &builder, const CodeNode *node, mlir::Location loc,
                       llvm::function_ref<mlir::Value(unsigned)> getDim);

/// Writes a planned region.
class RowsWriter {
public:
  /// Writes the body of `region`, whose block has the arguments: indices of `outer`, the rows of the
  /// matmuls, the inputs.
  RowsWriter(mlir::OpBuilder &builder, RowsPlan &plan, llvm::ArrayRef<unsigned> outer, mlir::Block *block);
  /// Returns what the region yields.
  llvm::SmallVector<mlir::Value> write();

private:
  using Readers = llvm::SmallPtrSet<const CodeNode *, 4>;
  /// The values that the body of a linalg.generic on rows reads.
  struct Body {
    llvm::SmallVector<const CodeNode *> reads; ///< rows
    llvm::SmallVector<mlir::Value> rows;
    const CodeNode *accumulator = nullptr;
    llvm::DenseMap<const CodeNode *, mlir::Value> values;
  };

  void order(const CodeNode *node, llvm::SmallPtrSetImpl<const CodeNode *> &seen);
  void chooseStored();
  mlir::Value writeOperation(mlir::OpBuilder &at, const CodeNode *node, llvm::ArrayRef<mlir::Value> operands);
  mlir::Value writeScalar(const CodeNode *node);
  mlir::Value writeReduction(const CodeNode *node);
  mlir::AffineMap getRowMap(const CodeNode *node) const;
  void gather(const CodeNode *node, const CodeNode *root, Body &body);
  mlir::Value writeElement(mlir::OpBuilder &inside, const CodeNode *node, Body &body);
  mlir::Value writeGeneric(const CodeNode *root, mlir::Value init, bool reduces, mlir::Location loc);
  mlir::Value writeRow(const CodeNode *node);

  mlir::OpBuilder &builder;
  RowsPlan &plan;
  mlir::Block *block;
  llvm::DenseMap<unsigned, mlir::Value> indices;           ///< of outer dimensions
  llvm::DenseMap<const CodeNode *, mlir::Value> arguments; ///< matmuls and inputs
  llvm::DenseMap<const CodeNode *, mlir::Value> scalars, rows;
  llvm::SmallVector<const CodeNode *> nodes; ///< operands first
  llvm::SmallPtrSet<const CodeNode *, 8> stored;
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWSREGION_H
