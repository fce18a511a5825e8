// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes around what looks at forward and backward as one.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PAIRPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PAIRPASSES_TD

include "mlir/Pass/PassBase.td"

def JoinPair : Pass<"fp8-join-pair", "::mlir::ModuleOp"> {
  let summary = "make one function of the forward and backward functions of a step";
  let description = [{
    Before: `fp8.backward = @B` on a function names its backward, `fp8.residual` marks
    the results that it hands over and the arguments of B that receive them, in the same
    order or in that of PyTorch's AOT export: the dynamic sizes, numbers among tensors, are
    the last of the results and the first of the arguments. The option `pair` sets these
    marks. Without marks nothing happens.
    After: the first function holds both bodies, `fp8.end_forward` between them, which
    stands for the caller: it takes forward's results and returns backward's arguments, but
    for the residuals. The results are those of both; B keeps its arguments and results and
    returns poison. Casts, views, rearrangements, fills and constants of forward values that backward makes for
    itself are in forward, one of each: a tensor that both read is one value. What else
    backward computes again stays where it is.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(fp8-join-pair{pair=forward:backward})'
    func.func @forward(%w: tensor<4xf32>, %x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xf32>) {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %y = arith.mulf %x, %b : tensor<4xbf16>
      return %y, %w : tensor<4xbf16>, tensor<4xf32>
    }
    func.func @backward(%w: tensor<4xf32>, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %dx = arith.mulf %dy, %b : tensor<4xbf16>
      return %dx : tensor<4xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @forward(%w: tensor<4xf32>, %x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %y = arith.mulf %x, %b : tensor<4xbf16>
      %dy = fp8.end_forward @backward given(%y : tensor<4xbf16>) -> tensor<4xbf16>
      %dx = arith.mulf %dy, %b : tensor<4xbf16>
      return %y, %dx : tensor<4xbf16>, tensor<4xbf16>
    }
    func.func @backward(%w: tensor<4xf32> {fp8.residual}, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
      %p = ub.poison : tensor<4xbf16>
      return %p : tensor<4xbf16>
    }
    ```
  }];
  let options = [
    Option<"pair", "pair", "std::string", "\"\"",
           "FORWARD:BACKWARD[:K]: results K… (default 1) of the first are arguments 0… of the second">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::ub::UBDialect"];
}

def SplitPair : Pass<"fp8-split-pair", "::mlir::ModuleOp"> {
  let summary = "make two functions again of a joined forward and backward";
  let description = [{
    Before: a function with `fp8.end_forward`.
    After: two functions with the marks that `fp8-join-pair` reads. Arguments and results
    of the user are as they were. Residuals are the last results of the first and the
    first arguments of the second: the fewest bytes from which backward gets what it
    reads of forward by repeating casts, views, rearrangements, fills, constants and FP8
    casts (with the same scale: the same bytes; no amax is recorded again). An argument of
    the first that crosses as it is, and is not overwritten, is marked `fp8.returned`: nothing
    copies it. The state, if there is any, follows: arguments and results of both.

    Example:
    ```mlir
    // fp8-opt --fp8-split-pair
    func.func @forward(%w: tensor<4xf32>, %x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %y = arith.mulf %x, %b : tensor<4xbf16>
      %dy = fp8.end_forward @backward given(%y : tensor<4xbf16>) -> tensor<4xbf16>
      %dx = arith.mulf %dy, %b : tensor<4xbf16>
      return %y, %dx : tensor<4xbf16>, tensor<4xbf16>
    }
    func.func @backward(%w: tensor<4xf32> {fp8.residual}, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
      %p = ub.poison : tensor<4xbf16>
      return %p : tensor<4xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @forward(%w: tensor<4xf32>, %x: tensor<4xbf16>)
        -> (tensor<4xbf16>, tensor<4xbf16> {fp8.residual}) attributes {fp8.backward = @backward} {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %y = arith.mulf %x, %b : tensor<4xbf16>
      return %y, %b : tensor<4xbf16>, tensor<4xbf16>
    }
    func.func @backward(%b: tensor<4xbf16> {fp8.residual}, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
      %dx = arith.mulf %dy, %b : tensor<4xbf16>
      return %dx : tensor<4xbf16>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_PAIRPASSES_TD
