// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes that join the forward and backward functions of a step, and split them again.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PAIRPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PAIRPASSES_TD

include "mlir/Pass/PassBase.td"

def JoinPair : Pass<"fp8-join-pair", "::mlir::ModuleOp"> {
  let summary = "join the forward and backward functions of a step into one";
  let description = [{
    Before: `fp8.backward = @B` on a function names its backward, `fp8.residual` marks
    the results that it hands over and the arguments of B that receive them, in the same
    order or in that of PyTorch's AOT export: the dynamic sizes, numbers among tensors, are
    the last of the results and the first of the arguments. The option `pair` sets these
    marks. Functions without marks stay unchanged.
    After: the first function holds both bodies. `fp8.end_forward` between them stands for
    the caller: it takes forward's results and returns backward's arguments, both without
    the residuals. The function returns the results of both; B keeps its arguments and
    results and returns poison. Casts, views, rearrangements, fills and constants of
    forward values that backward computed are in forward, one of each: a tensor that both
    read is one value. Other recomputations stay in backward.

    Errors: an option `pair` that does not fit the module; marks that do not fit together (a
    backward without a body, a function in two pairs, residuals that differ in number or
    type or belong to no pair); a function with branches between blocks, with FP8 state or
    joined already; an argument that carries a residual.

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
  let summary = "split a joined forward and backward into two functions";
  let description = [{
    Before: a function with `fp8.end_forward`.
    After: two functions with the marks that `fp8-join-pair` reads. Arguments and results
    of the user are as they were. Residuals are the last results of the first and the
    first arguments of the second. They are the fewest bytes from which backward can
    compute the forward values that it reads by repeating casts, views, rearrangements,
    fills, constants and FP8 casts. (A repeated FP8 cast has the same scale, so the same
    bytes, and records no amax.) A residual that is an argument of the first function and
    is not overwritten is marked `fp8.returned`: nothing copies it. The state, if there is
    any, is the last arguments of both functions and, if they update it, the last results.

    Errors: an `fp8.end_forward` that is not as `fp8-join-pair` writes it.

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
