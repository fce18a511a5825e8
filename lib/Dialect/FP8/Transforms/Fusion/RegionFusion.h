// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fusing into a producer region and into an epilogue share: which code can move, where
// two operations can become one, and how a region grows. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONFUSION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONFUSION_H

#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp8::detail {

/// Bodies up to this many operations may be computed once per reader.
constexpr unsigned kCheapOps = 3;

/// `op` as a generic of parallel loops on tensors that computes scalars from scalars and
/// reads no destination; null where it is none.
mlir::linalg::GenericOp getElementwise(mlir::Operation *op);

/// Few simple operations: no division, no call of the math library.
bool isCheap(mlir::linalg::GenericOp op);

/// A sum in f32, from zero, of what a body computes.
struct Sum {
  mlir::linalg::GenericOp op;
  mlir::Value addend; ///< in the body
  mlir::Value out;    ///< a tensor to write it to
};
std::optional<Sum> matchSum(mlir::Operation *op);

/// Where `first` and `second`, in this order in one block, can become one operation: before
/// the one that is returned, or nowhere (null). What `second` reads, if it only looks at other
/// tensors or makes empty ones, may be moved up.
mlir::Operation *findMeetingPoint(mlir::RewriterBase &rewriter, mlir::Operation *first,
                                  mlir::Operation *second);

/// The region of one operation while code moves into it. Nothing is undone: check first.
class RegionFuser {
public:
  /// Gives `op` a region where it has none: the one that changes nothing.
  RegionFuser(mlir::RewriterBase &rewriter, mlir::Operation *op);

  /// The element that stands for the tensor: what is yielded first.
  mlir::Value getElement() { return yielded.front(); }
  void setElement(mlir::Value value) { yielded.front() = value; }
  /// What stands for extra result `i`.
  mlir::Value getExtra(unsigned i) { return yielded[1 + i]; }

  /// Extra result `i` becomes the first one, and the first one that extra result. Returns the
  /// destination of the new first one, which is for the caller to rebuild with.
  mlir::Value exchangeFirst(unsigned i);

  /// Copies the code of `op` to the end of the region (`atEnd`) or its start. `loops` maps the
  /// dimensions of the tensor to the loops of `op`; inputs that are `known` are not read.
  /// Returns where the values of the body are now.
  mlir::IRMapping inlineCode(mlir::linalg::GenericOp op, mlir::AffineMap loops,
                             const llvm::DenseMap<mlir::Value, mlir::Value> &known, bool atEnd);

  mlir::Value getArgument(unsigned input) { return body->getArgument(firstArgument + input); }
  /// Input `i` is `element` from now on.
  void replaceInput(unsigned i, mlir::Value element);
  void addExtra(mlir::Value element, mlir::AffineMap map, mlir::Value out);

  llvm::ArrayRef<mlir::Value> getInputs() const { return inputs; }
  llvm::ArrayRef<mlir::Value> getExtraOuts() const { return extraOuts; }

  /// Puts the yield in order; returns the maps of inputs and extras.
  mlir::ArrayAttr finishBody();
  /// The operation with this region, before `place`; its first destination is `out`, if given.
  /// The caller replaces the old one's results.
  mlir::Operation *rebuild(mlir::Operation *place, mlir::Value out = {});

private:
  mlir::Value addInput(mlir::Value tensor, mlir::AffineMap map);

  mlir::RewriterBase &rewriter;
  mlir::Operation *op;
  mlir::Block *body;
  unsigned firstArgument;
  llvm::SmallVector<mlir::Value> inputs, extraOuts, yielded;
  llvm::SmallVector<mlir::AffineMap> inputMaps, extraMaps;
};

/// Whether the region of `op` would have too many inputs if the code of `code` moved there, in
/// which `tensor` is not read any more.
bool readsTooMuch(mlir::Operation *op, mlir::linalg::GenericOp code, mlir::AffineMap loops,
                  mlir::Value tensor);

/// From dimensions of the tensor to loops of `op`, where `tensorMap` is how the tensor lies in
/// the dimensions, and operand `operand` of `op` is the tensor. Null where `op` reads (or
/// writes) it otherwise than as a permutation of its loops.
mlir::AffineMap findLoops(mlir::linalg::GenericOp op, mlir::OpOperand &operand, mlir::AffineMap tensorMap);

/// Sums over the leading dimensions of `tensor`, in the order of its elements, become extra
/// results of `op`, in whose region `tensor` lies at `map` and is what `elementOf` says. Returns
/// what `op` has become; itself where there are none.
mlir::Operation *fuseSums(mlir::RewriterBase &rewriter, mlir::Operation *op, mlir::Value tensor,
                          mlir::AffineMap map, llvm::function_ref<mlir::Value(RegionFuser &)> elementOf);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONFUSION_H
