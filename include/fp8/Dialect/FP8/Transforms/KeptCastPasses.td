// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stage 2 about FP8 data that outlives its cast: stacks that loops fill, and weights from step to step.
// Included by Passes.td.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_KEPTCASTPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_KEPTCASTPASSES_TD

include "mlir/Pass/PassBase.td"

def StackCasts : Pass<"fp8-stack-casts", "::mlir::ModuleOp"> {
  let summary = "fill stacks that backward casts slice by slice with FP8 bytes";
  let description = [{
    Before: a joined forward and backward after `fp8-apply-recipe`, or any function that is
    both. Loops of forward fill stacks (a slice in every iteration of `scf.for` or
    `scf.while`, also of nested loops), and loops of backward read slices of them; in a
    pair, backward may also read slices of a tensor that forward computes as a whole.
    Without a pair, forward of a stack is the code before the loop that reads it.
    After: if only casts read a stack, all with the same scale of the state, and forward
    records every amax that they record, the stack holds the bytes, and backward records
    nothing; forward's own cast fills the stack if there is one. Slices that backward narrows from f32 before
    it casts them are narrowed by forward instead. Slices of the bytes are the bytes of the
    slices, so that only the size of the kept tensors changes. Where scales are computed from
    the tensors themselves (current scaling, or `init = current` while a history is empty),
    each slice has its own, and a second stack holds the scale_inv of each slice, an f32.
    Such stacks have slices of known size and are read in whole slices. They stay unchanged
    if the slices are so small that bytes and scales would need as much memory.

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

def KeepParameters : Pass<"fp8-keep-parameters", "::mlir::ModuleOp"> {
  let summary = "make the FP8 bytes of weights part of the state";
  let description = [{
    Before: `fp8-apply-recipe{mark-weights}`; `fp8.weight = "site"` marks the casts of weights.
    After: a function has arguments at the end of its list with the results of these casts (`data`,
    `scale_inv`, and `amax` where it is recorded, as far as they are read) in place of the casts. Where the function returns a new value
    of the weight (`tf.aliasing_output`), it casts that value, with the scale that the next step would use, and
    returns the results for the next step: the bits are those that the next step would compute. The casts of
    functions that compute the same of arguments of the same names share tensors of the state.

    A new function `NAME_fp8_parameters` for each function computes the tensors from the weights that it is
    given: for the first step, and whenever a caller gives other weights. Until then they are NaN.

    A cast of one slice after the other of a stack of weights, in a loop over layers, becomes a cast of the stack
    before the loop, of which the loop reads slices.

    Not kept are other casts inside of loops and branches (with current scaling, each slice has a scale of its
    own), casts of what is computed by matmuls or from other state,
    and, where scales are part of the state, casts of weights whose new value is not computed where the scale
    changes: an optimizer outside of the program gives the new weight only after the new scale. If no cast of a weight is kept, that is an error. `fp8.parameter_casts` on the module lists all.

    Example:
    ```mlir
    // fp8-opt --fp8-keep-parameters
    func.func @main(%w: tensor<8x16xbf16> {tf.aliasing_output = 0 : i32}, %s: tensor<f32>)
        -> (tensor<8x16xbf16>, tensor<8x16xf8E4M3FN>, tensor<f32>) {
      %scale = arith.constant dense<2.0> : tensor<f32>
      %e0 = tensor.empty() : tensor<8x16xf8E4M3FN>
      %e1 = tensor.empty() : tensor<f32>
      %q, %i = fp8.quantize ins(%w : tensor<8x16xbf16>) scale(%scale : tensor<f32>)
        outs(%e0, %e1 : tensor<8x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "fc"}
        -> tensor<8x16xf8E4M3FN>, tensor<f32>
      %new = arith.negf %w : tensor<8x16xbf16>
      return %new, %q, %i : tensor<8x16xbf16>, tensor<8x16xf8E4M3FN>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.parameter_casts =
        [{bytes = 132 : i64, copy_bytes = 0 : i64, entry = "main", kept = true, reason = "", site = "fc"} ]} {
      func.func @main(%w: tensor<8x16xbf16> {tf.aliasing_output = 0 : i32}, %s: tensor<f32>,
          %q: tensor<8x16xf8E4M3FN> {fp8.derived, fp8.initial = dense<0x7F> : tensor<8x16xf8E4M3FN>,
                                     fp8.program_state = "weight/fc/data", tf.aliasing_output = 3 : i32},
          %i: tensor<f32> {fp8.derived, fp8.initial = dense<0x7FC00000> : tensor<f32>,
                           fp8.program_state = "weight/fc/scale_inv", tf.aliasing_output = 4 : i32})
          -> (tensor<8x16xbf16>, tensor<8x16xf8E4M3FN>, tensor<f32>,
              tensor<8x16xf8E4M3FN> {fp8.program_state = "weight/fc/data"},
              tensor<f32> {fp8.program_state = "weight/fc/scale_inv"}) attributes {
            fp8.parameters = {arguments = array<i64: 0>,
              casts = [{arguments = array<i64: 0>, tensors = ["weight/fc/data", "weight/fc/scale_inv"]} ],
              entry = "main_fp8_parameters"}} {
        %new = arith.negf %w : tensor<8x16xbf16>
        %scale = arith.constant dense<2.0> : tensor<f32>
        %e0 = tensor.empty() : tensor<8x16xf8E4M3FN>
        %e1 = tensor.empty() : tensor<f32>
        %q1, %i1 = fp8.quantize ins(%new : tensor<8x16xbf16>) scale(%scale : tensor<f32>)
          outs(%e0, %e1 : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
        return %new, %q, %i, %q1, %i1
            : tensor<8x16xbf16>, tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8x16xf8E4M3FN>, tensor<f32>
      }
      func.func @main_fp8_parameters(%w: tensor<8x16xbf16>,
          %q: tensor<8x16xf8E4M3FN> {fp8.derived, fp8.initial = dense<0x7F> : tensor<8x16xf8E4M3FN>,
                                     fp8.program_state = "weight/fc/data", tf.aliasing_output = 0 : i32},
          %i: tensor<f32> {fp8.derived, fp8.initial = dense<0x7FC00000> : tensor<f32>,
                           fp8.program_state = "weight/fc/scale_inv", tf.aliasing_output = 1 : i32})
          -> (tensor<8x16xf8E4M3FN> {fp8.program_state = "weight/fc/data"},
              tensor<f32> {fp8.program_state = "weight/fc/scale_inv"}) {
        %scale = arith.constant dense<2.0> : tensor<f32>
        %e0 = tensor.empty() : tensor<8x16xf8E4M3FN>
        %e1 = tensor.empty() : tensor<f32>
        %q1, %i1 = fp8.quantize ins(%w : tensor<8x16xbf16>) scale(%scale : tensor<f32>)
          outs(%e0, %e1 : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
        return %q1, %i1 : tensor<8x16xf8E4M3FN>, tensor<f32>
      }
    }
    ```
  }];
  let options = [
    Option<"allowUnused", "allow-unused", "bool", "false",
           "that no matmul of a weight becomes FP8 is listed on the module, and is no error">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_KEPTCASTPASSES_TD
