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

def StackCasts : Pass<"fp8-stack-casts", "::mlir::ModuleOp"> {
  let summary = "fill stacks that backward casts slice by slice with FP8 bytes";
  let description = [{
    Before: a joined forward and backward after `fp8-apply-recipe`. Loops of forward fill
    stacks (a slice in every iteration of `scf.for` or `scf.while`, also of loops in
    loops), and loops of backward read slices of them, or of a tensor that forward has as
    a whole.
    After: where all that reads a stack is casts with one scale of the state, recorded in
    forward, the stack holds the bytes; forward's own cast fills it where there is one. Slices
    that backward narrows from f32 before it casts them are narrowed by forward as well.
    Slices of the bytes are the bytes of the slices, so that nothing changes but the size
    of what is kept. Where scales follow from the tensors themselves (current scaling, or
    `init = current` while a history is empty), each slice has its own: its scale_inv lies in
    a stack beside, an f32 for each slice. Such stacks have slices of known size, are read in
    whole slices, and keep the elements of slices so small that bytes and scales would be no less.

    Example:
    ```mlir
    // fp8-opt --fp8-stack-casts
    func.func @forward(%x: tensor<2x8xbf16>, %s: tensor<3xf32>, %h: tensor<4x3xf32>)
        -> (tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<3xf32>, tensor<4x3xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant dense<0.0> : tensor<2x8xbf16>
      %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %zero) -> (tensor<2x8xbf16>) {
        %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
        %w = arith.negf %v : tensor<1x8xbf16>
        %new = tensor.insert_slice %w into %old[%i, 0] [1, 8] [1, 1] : tensor<1x8xbf16> into tensor<2x8xbf16>
        scf.yield %new : tensor<2x8xbf16>
      }
      %scale = tensor.extract_slice %s[2] [1] [1] : tensor<3xf32> to tensor<f32>
      %s1, %h1 = fp8.end_forward @backward given(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
      %slice = tensor.extract_slice %stack[1, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
      %e = tensor.empty() : tensor<1x8xf8E4M3FN>
      %f = tensor.empty() : tensor<f32>
      %q, %inverse = fp8.quantize column(2) ins(%slice : tensor<1x8xbf16>) scale(%scale : tensor<f32>)
          outs(%e, %f : tensor<1x8xf8E4M3FN>, tensor<f32>) -> tensor<1x8xf8E4M3FN>, tensor<f32>
      return %q, %inverse, %s1, %h1 : tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<3xf32>, tensor<4x3xf32>
    }
    func.func @backward() -> (tensor<1x8xf8E4M3FN>, tensor<f32>) {
      %p = ub.poison : tensor<1x8xf8E4M3FN>
      %i = ub.poison : tensor<f32>
      return %p, %i : tensor<1x8xf8E4M3FN>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @forward(%x: tensor<2x8xbf16>, %s: tensor<3xf32>, %h: tensor<4x3xf32>)
        -> (tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<3xf32>, tensor<4x3xf32>) {
      %scale = tensor.extract_slice %s[2] [1] [1] : tensor<3xf32> to tensor<f32>
      %one = arith.constant dense<1.0> : tensor<f32>
      %inverse = arith.divf %one, %scale : tensor<f32>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant dense<0.0> : tensor<2x8xbf16>
      %z = arith.constant 0.0 : f8E4M3FN
      %bytes = tensor.empty() : tensor<2x8xf8E4M3FN>
      %zeros = linalg.fill ins(%z : f8E4M3FN) outs(%bytes : tensor<2x8xf8E4M3FN>) -> tensor<2x8xf8E4M3FN>
      %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %zeros) -> (tensor<2x8xf8E4M3FN>) {
        %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
        %w = arith.negf %v : tensor<1x8xbf16>
        %g = tensor.empty() : tensor<1x8xf8E4M3FN>
        %h1 = tensor.empty() : tensor<f32>
        %q, %qi = fp8.quantize column(2) ins(%w : tensor<1x8xbf16>) scale(%scale : tensor<f32>)
            outs(%g, %h1 : tensor<1x8xf8E4M3FN>, tensor<f32>) -> tensor<1x8xf8E4M3FN>, tensor<f32>
        %new = tensor.insert_slice %q into %old[%i, 0] [1, 8] [1, 1] : tensor<1x8xf8E4M3FN> into tensor<2x8xf8E4M3FN>
        scf.yield %new : tensor<2x8xf8E4M3FN>
      }
      %s1, %h2 = fp8.end_forward @backward given(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
      %slice = tensor.extract_slice %stack[1, 0] [1, 8] [1, 1] : tensor<2x8xf8E4M3FN> to tensor<1x8xf8E4M3FN>
      %e = tensor.empty() : tensor<1x8xf8E4M3FN>
      %f = tensor.empty() : tensor<f32>
      return %slice, %inverse, %s1, %h2 : tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<3xf32>, tensor<4x3xf32>
    }
    func.func @backward() -> (tensor<1x8xf8E4M3FN>, tensor<f32>) {
      %p = ub.poison : tensor<1x8xf8E4M3FN>
      %i = ub.poison : tensor<f32>
      return %p, %i : tensor<1x8xf8E4M3FN>, tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_PAIRPASSES_TD
