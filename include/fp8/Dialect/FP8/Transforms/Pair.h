// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two functions of one step: asked for with --pair, marked on the functions
// (Boundary.h), or joined in one with fp8.end_forward between them.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PAIR_H
#define FP8_DIALECT_FP8_TRANSFORMS_PAIR_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace fp8 {

/// --pair=FORWARD:BACKWARD[:K]: results K… of the first are arguments 0… of the second.
struct PairRequest {
  std::string forward, backward;
  unsigned firstResidual = 1;
};

/// Parses FORWARD:BACKWARD[:K]; the error says what is wrong.
llvm::Expected<PairRequest> parsePair(llvm::StringRef text);

/// Marks the functions of a request. Reports functions that do not exist or do not fit together.
mlir::LogicalResult markPair(mlir::ModuleOp module, const PairRequest &request);

/// An error unless each fp8.end_forward stands as fp8-join-pair writes it: one in a function,
/// with a backward of its own, between values of these two.
mlir::LogicalResult verifyJoinedPairs(mlir::ModuleOp module);

/// True where results or arguments of `function` are marked as residuals.
bool hasResiduals(mlir::func::FuncOp function);

/// The bytes that a value of this type takes; unset where its size is dynamic or it cannot
/// be stored.
std::optional<int64_t> getStoredBytes(mlir::Type type);

/// The bytes that forward hands to backward, by their marks; unset where a size is dynamic.
std::optional<int64_t> countResidualBytes(mlir::ModuleOp module);

/// True for operations that fp8-join-pair moves into forward and fp8-split-pair may repeat in
/// backward: casts, views, rearrangements, fills, constants and sizes.
bool isMovement(mlir::Operation *op);

/// A function that is forward and backward, joined by fp8-join-pair.
class JoinedPair {
public:
  /// Unset where `function` is not joined, or its backward is missing.
  static std::optional<JoinedPair> find(mlir::func::FuncOp function);

  mlir::func::FuncOp getFunction() { return function; }
  EndForwardOp getEndForward() { return endForward; }
  /// Backward without its code: arguments (residuals too) and results as they were.
  mlir::func::FuncOp getBackward() { return backward; }

  /// How many arguments of the user backward has: those that are not residuals.
  unsigned getNumBackwardArguments();
  /// How many results of the user forward has: the first of the joined function.
  unsigned getNumForwardResults();
  /// The state that forward leaves; empty where there is none.
  mlir::MutableOperandRange getState();

  /// Whether the operation is before the end of forward; one inside another is where that is.
  bool isForward(mlir::Operation *op);
  bool isForward(mlir::Value value);

  /// Adds an argument of backward, before any state is passed; returns its value.
  mlir::Value addBackwardArgument(mlir::Type type, mlir::DictionaryAttr attrs, mlir::Location loc);
  /// Adds `value` to the results of forward, before its residuals; it must be before the end of forward.
  void addForwardResult(mlir::Value value, mlir::DictionaryAttr attrs);
  /// Adds `value` to the results of backward, before any state is returned.
  void addBackwardResult(mlir::Value value, mlir::DictionaryAttr attrs);

  /// Hands the state on at the end of forward; returns it as backward receives it.
  mlir::ResultRange passState(mlir::ValueRange state);

private:
  JoinedPair(mlir::func::FuncOp function, EndForwardOp endForward, mlir::func::FuncOp backward)
      : function(function), endForward(endForward), backward(backward) {}

  /// Gives the end of forward more operands and results; returns the new results.
  mlir::ResultRange widen(mlir::ValueRange moreGiven, mlir::TypeRange moreTypes);

  mlir::func::FuncOp function;
  EndForwardOp endForward;
  mlir::func::FuncOp backward;
};

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_PAIR_H
