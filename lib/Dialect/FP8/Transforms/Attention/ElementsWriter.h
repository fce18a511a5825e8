// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes code on elements as scalar code of one score, in f32: the regions of fp8.online_attention and
// fp8.online_attention_grad. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ELEMENTSWRITER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ELEMENTSWRITER_H

#include "RowsRegion.h"

namespace fp8::detail {

/// Returns `value` as an f32 if it is a float of 16 bits; otherwise itself.
mlir::Value widen(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
/// Returns `value`, an f32 if it is a float, as `type`.
mlir::Value narrow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type type);

/// Returns why `outputs` cannot be written in f32; nothing if they can. `isGiven` tells of nodes that have a
/// value.
std::string explainElements(llvm::ArrayRef<const CodeNode *> outputs,
                            llvm::function_ref<bool(const CodeNode *)> isGiven);

/// Floats of 16 bits become f32 with all that is computed from them, so that casts between them vanish.
class ElementsWriter {
public:
  /// The first arguments of `block` are the indices `dims`.
  ElementsWriter(mlir::OpBuilder &builder, mlir::Block *block, llvm::ArrayRef<unsigned> dims);

  /// Gives a node its value.
  void set(const CodeNode *node, mlir::Value value) { values[node] = value; }
  /// Gives the index `dim` its value.
  void setIndex(unsigned dim, mlir::Value value) { indices[dim] = value; }
  /// Gives the inputs of `plan` the arguments from `first` on.
  void setInputs(const RowsPlan &plan, unsigned first);
  mlir::Value write(const CodeNode *node);

private:
  mlir::Value compute(const CodeNode *node);

  mlir::OpBuilder &builder;
  mlir::Block *block;
  llvm::DenseMap<unsigned, mlir::Value> indices;
  llvm::DenseMap<const CodeNode *, mlir::Value> values;
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ELEMENTSWRITER_H
