// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that fusion into producer regions and into epilogues share: which code can move, where
// two operations can become one, and how a region grows. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONFUSION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONFUSION_H

#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp8::detail {

/// Bodies up to this many operations may be computed once per reader.
constexpr unsigned kCheapOps = 3;

/// Why fusion leaves two operations apart, as the end of a sentence; empty where nothing is against it.
/// Checks that can fail set one if the caller asks.
using Reason = llvm::StringRef;
inline constexpr Reason kTooManyInputs = "the fused loop would have more inputs than the target allows";
inline constexpr Reason kMatmulOperand = "matmuls read their operands as they are";
inline bool decline(Reason *why, Reason reason) {
  if (why)
    *why = reason;
  return false;
}

/// Returns whether fusion considers to put the operation that writes the tensor of `read` and its reader in
/// one loop: a matmul or a generic writes it, and a cast, an amax or a generic reads it.
bool isFusible(mlir::OpOperand &read);

/// Why `read`, of which isFusible() holds, is left in memory: the answer of the fusion whose it is, by one of
/// the next four.
Reason explainRead(mlir::OpOperand &read);

/// Why a reader of a matmul's result is not in its epilogue, and why an elementwise producer is not in the
/// region of a cast or amax, or in its reader (fp8-explain-fusion). explainRows() is of a producer that
/// reduces rows, and empty where `cast` is none that it could be computed with.
Reason explainEpilogue(mlir::Operation *matmul, mlir::OpResult result, mlir::Operation *reader);
Reason explainProducer(mlir::linalg::GenericOp producer, mlir::OpResult result, mlir::Operation *cast);
Reason explainElementwise(mlir::OpOperand &read);
Reason explainRows(mlir::linalg::GenericOp producer, mlir::Operation *cast);

/// Returns `op` if it is a generic of parallel loops on tensors that computes scalars from scalars
/// and reads no destination; null otherwise.
mlir::linalg::GenericOp getElementwise(mlir::Operation *op);

/// Returns whether the body has few simple operations, no division and no call of the math library.
bool isCheap(mlir::linalg::GenericOp op);

/// A sum in f32, starting from zero, of a value that a body computes.
struct Sum {
  mlir::linalg::GenericOp op;
  mlir::Value addend; ///< in the body
  mlir::Value out;    ///< a tensor to write it to
};
std::optional<Sum> matchSum(mlir::Operation *op, Reason *why = nullptr);

/// Returns whether `first` and `second`, in this order in one block, can become one operation, without moving
/// any.
bool canMeet(mlir::Operation *first, mlir::Operation *second, Reason *why);

/// Returns the operation before which `first` and `second`, in this order in one block, can become
/// one operation; null if there is none. Views and empty tensors that `second` reads may be moved
/// up for this.
mlir::Operation *findMeetingPoint(mlir::RewriterBase &rewriter, mlir::Operation *first,
                                  mlir::Operation *second);

/// The region of one operation while code moves into it. Changes are not undone, so check first.
class RegionFuser {
public:
  /// Gives `op` a region that changes nothing if it has none.
  RegionFuser(mlir::RewriterBase &rewriter, mlir::Operation *op);

  /// The first value of the yield: the element of the tensor.
  mlir::Value getElement() { return yielded.front(); }
  void setElement(mlir::Value value) { yielded.front() = value; }
  /// The value of the yield for extra result `i`.
  mlir::Value getExtra(unsigned i) { return yielded[1 + i]; }

  /// Exchanges extra result `i` and the first result. Returns the destination of the new first
  /// result, which the caller passes to rebuild.
  mlir::Value exchangeFirst(unsigned i);

  /// Copies the code of `op` to the end of the region (`atEnd`) or its start. `loops` maps the
  /// dimensions of the tensor to the loops of `op`. Inputs in `known` are replaced by those values
  /// of the region. Returns the mapping from values of the body to their copies.
  mlir::IRMapping inlineCode(mlir::linalg::GenericOp op, mlir::AffineMap loops,
                             const llvm::DenseMap<mlir::Value, mlir::Value> &known, bool atEnd);

  mlir::Value getArgument(unsigned input) { return body->getArgument(firstArgument + input); }
  /// Replaces input `i` by `element`.
  void replaceInput(unsigned i, mlir::Value element);
  void addExtra(mlir::Value element, mlir::AffineMap map, mlir::Value out);

  llvm::ArrayRef<mlir::Value> getInputs() const { return inputs; }
  llvm::ArrayRef<mlir::Value> getExtraOuts() const { return extraOuts; }

  /// Updates the yield; returns the maps of inputs and extra results.
  mlir::ArrayAttr finishBody();
  /// Creates the operation with this region before `place`; its first destination is `out`, if
  /// given. The caller replaces the results of the old operation.
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

/// Returns whether the region of `op` would have more inputs than the target allows if it took in
/// the code of `code`, and `tensor` were no longer read.
bool readsTooMuch(mlir::Operation *op, mlir::linalg::GenericOp code, mlir::AffineMap loops,
                  mlir::Value tensor);

/// Returns the map from dimensions of the region to loops of `op`, if operand `operand` of `op` is a
/// tensor that has the map `tensorMap` in the region. Returns null unless `op` reads (or writes) the
/// tensor at a permutation of its loops.
mlir::AffineMap findLoops(mlir::linalg::GenericOp op, mlir::OpOperand &operand, mlir::AffineMap tensorMap);

/// Returns whether `sum`, a reader of `tensor`, can become a sum in the region of `op`.
bool canFuseSum(mlir::Operation *op, mlir::Operation *sum, mlir::Value tensor, mlir::AffineMap map,
                Reason *why = nullptr);

/// Fuses sums over the leading dimensions of `tensor`, in the order of its elements, into `op` as
/// extra results. `map` is the map of `tensor` in the region of `op`, `elementOf` returns its
/// element there. Returns the operation that replaces `op`, or `op` itself if there are no sums.
mlir::Operation *fuseSums(mlir::RewriterBase &rewriter, mlir::Operation *op, mlir::Value tensor,
                          mlir::AffineMap map, llvm::function_ref<mlir::Value(RegionFuser &)> elementOf);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_REGIONFUSION_H
