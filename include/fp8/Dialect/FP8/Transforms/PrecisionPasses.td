// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stage 1 about types: mixed precision, sums in f32, and the scale of the loss. Included by Passes.td.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PRECISIONPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PRECISIONPASSES_TD

include "mlir/Pass/PassBase.td"

def WidenSums : Pass<"fp8-widen-sums"> {
  let summary = "take sums with a bf16 or f16 accumulator in f32 and round them once";
  let description = [{
    Before: linalg on tensors; contractions are `fp8.matmul`.
    After: no `linalg.generic` sums in bf16 or f16. The summands keep the
    roundings that the program wrote; only the accumulator is wider.

    Example:
    ```mlir
    // fp8-opt --fp8-widen-sums
    func.func @f(%x: tensor<8x4xbf16>, %i: tensor<4xbf16>) -> tensor<4xbf16> {
      %z = arith.constant 0.0 : bf16
      %f = linalg.fill ins(%z : bf16) outs(%i : tensor<4xbf16>) -> tensor<4xbf16>
      %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<8x4xbf16>) outs(%f : tensor<4xbf16>) {
      ^bb0(%in: bf16, %out: bf16):
        %s = arith.addf %out, %in : bf16
        linalg.yield %s : bf16
      } -> tensor<4xbf16>
      return %y : tensor<4xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<8x4xbf16>, %i: tensor<4xbf16>) -> tensor<4xbf16> {
      %z = arith.constant 0.0 : bf16
      %f = linalg.fill ins(%z : bf16) outs(%i : tensor<4xbf16>) -> tensor<4xbf16>
      %w = arith.extf %z : bf16 to f32
      %e = tensor.empty() : tensor<4xf32>
      %g = linalg.fill ins(%w : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<8x4xbf16>) outs(%g : tensor<4xf32>) {
      ^bb0(%in: bf16, %out: f32):
        %a = arith.extf %in : bf16 to f32
        %s = arith.addf %out, %a : f32
        linalg.yield %s : f32
      } -> tensor<4xf32>
      %d = tensor.empty() : tensor<4xbf16>
      %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>],
                           iterator_types = ["parallel"]}
          ins(%y : tensor<4xf32>) outs(%d : tensor<4xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %t = arith.truncf %in : f32 to bf16
        linalg.yield %t : bf16
      } -> tensor<4xbf16>
      return %r : tensor<4xbf16>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def MixedPrecision : Pass<"fp8-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "run an f32 program in mixed precision: bf16, f16 or TF32";
  let description = [{
    Before: contractions are `fp8.matmul` with roles. `dtype` is the precision of the program, `off` if it is empty;
    `fp8.mixed_precision` on an operation or around it (see `fp8-scope-mixed-precision`) is that of the operation.
    After, for bf16 and f16:
    - contractions round operands of f32 to the type, each value once, sum in f32 and round the sum to the
      type. A parameter stays f32, and its rounded copy is what matmuls read; its gradient (the result of a
      wgrad) is rounded like every matmul, and f32 for those that read it, so that optimizers run in f32.
    - exp, log, pow, rsqrt and their kin run in f32, and so do sums and other reductions, convolutions among
      them. The parts of a norm or a softmax that follow its reduction therefore run in f32, too.
    - Other elementwise operations run in the widest type of the tensors that they read, each rounded once.
      Constants adapt: they widen nothing. Of bf16 and f16 the widest type is f32.
    - Slices, reshapes, pads and the like keep the type of what they read.
    - Arguments, results, and what loops and branches hand on keep their types.

    For tf32, operands of contractions are rounded to 10 bits of mantissa, nearest, ties away from zero, as
    `cvt.rna.tf32.f32` does; everything else is in f32, also of narrow values from around. Such a matmul of f32 operands has the attribute
    `fp8.tf32`: the tensor cores of a GPU may multiply it as TF32. Matmuls that are not f32, such as those of a
    program that chose bf16 itself, stay unchanged.

    Example:
    ```mlir
    // fp8-opt --fp8-mixed-precision=dtype=bf16
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
      %t = math.tanh %y : tensor<4x16xf32>
      %e = math.exp %t : tensor<4x16xf32>
      return %e : tensor<4x16xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %wn = arith.truncf %w : tensor<8x16xf32> to tensor<8x16xbf16>
      %xn = arith.truncf %x : tensor<4x8xf32> to tensor<4x8xbf16>
      %n = tensor.empty() : tensor<4x16xbf16>
      %y = fp8.matmul ins(%xn, %wn : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%n : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      %yw = arith.extf %y : tensor<4x16xbf16> to tensor<4x16xf32>
      %t = math.tanh %yw : tensor<4x16xf32>
      %tn = arith.truncf %t : tensor<4x16xf32> to tensor<4x16xbf16>
      %tw = arith.extf %tn : tensor<4x16xbf16> to tensor<4x16xf32>
      %e = math.exp %tw : tensor<4x16xf32>
      return %e : tensor<4x16xf32>
    }
    ```
  }];
  let options = [
    Option<"dtype", "dtype", "std::string", "",
           "the precision of contractions: bf16, f16, tf32 or off; empty: only where fp8.mixed_precision says so">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ScaleLoss : Pass<"fp8-scale-loss", "::mlir::ModuleOp"> {
  let summary = "loss scaling: scale the backward pass, skip steps that overflow";
  let description = [{
    Before: one function is the whole training step; matmuls have sites and kinds. The `loss` is a scalar
    result. A function without gradients is left alone.
    After: gradients are computed times the state tensor `loss_scale`, and divided by it where the optimizer
    reads them or the function returns them, by one `fp8.unscale`, which also notes an Inf or NaN. Then every
    carried argument keeps its value; states of the program, such as those of random numbers, move on.
    In a program of several ranks one `fp8.all_reduce` combines what they noted: all skip the same steps.
    `fp8.update_loss_scale` computes the next scale. The operation also looks at the f16 gradients of outputs
    that matmuls read: a cast to FP8 saturates, and would hide an overflow. Values inside of loops are
    not looked at; an overflow there is seen where it reaches a gradient that leaves the loop.

    Exporters fold the gradient of the loss, which is 1, into other constants, so there is no one value to
    scale. But all that the backward pass computes from it is linear in it: sums, matmuls with other values,
    slices, casts, choices. The scale enters as early as it can without scaling anything that the loss is
    computed from: at the operands of gradient matmuls, or at the matmul, in front of these, of two values
    that no gradient enters. It is divided out in front of everything that is not linear, so that whatever is
    not found to be a gradient is computed as before.

    Errors: no result, or several, may be the loss; an operation that is not linear reads a scaled gradient
    inside a loop (several steps of an optimizer in one program); forward and backward are two functions,
    whose caller passes the gradient of the loss and can scale it.

    Example:
    ```mlir
    // fp8-opt --fp8-scale-loss
    func.func @step(%w: tensor<8x16xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4x8xf32>,
                    %dy: tensor<4x16xf32>, %loss: tensor<f32>) -> (tensor<8x16xf32>, tensor<f32>) {
      %e = tensor.empty() : tensor<8x16xf32>
      %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output)
          ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>) outs(%e : tensor<8x16xf32>)
          {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                            affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x16xf32>
      %n = arith.subf %w, %g : tensor<8x16xf32>
      return %n, %loss : tensor<8x16xf32>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    ...
    %1 = linalg.generic {...} ins(%arg2, %arg4 : tensor<4x16xf32>, tensor<f32>) outs(%0 : tensor<4x16xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %10 = arith.mulf %in, %in_0 : f32
      linalg.yield %10 : f32
    } -> tensor<4x16xf32>
    ...
    %3 = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%arg1, %1 : ...
    ...
    %6:2 = fp8.unscale ins(%3 : tensor<8x16xf32>) scale(%arg4 : tensor<f32>) outs(...
    %7 = arith.subf %arg0, %6#0 : tensor<8x16xf32>
    ...
    %9 = linalg.generic {...} ins(%arg0, %7, %6#1 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<f32>) outs(...
    ...
    %11:2 = fp8.update_loss_scale ins(%6#1 : tensor<f32>) outs(%arg4, %arg5 : tensor<f32>, tensor<i32>) -> tensor<f32>, tensor<i32>
    return %9, %arg3, %11#0, %11#1 : tensor<8x16xf32>, tensor<f32>, tensor<f32>, tensor<i32>
    ...
    ```
  }];
  let options = [
    Option<"initialScale", "init", "double", "65536.0", "the loss scale of the first step">,
    Option<"growth", "growth", "double", "2.0", "what the scale is multiplied by after `interval` good steps">,
    Option<"backoff", "backoff", "double", "0.5", "what the scale is multiplied by after an overflow">,
    Option<"interval", "interval", "int64_t", "2000", "the number of good steps until the scale grows">,
    Option<"loss", "loss", "int64_t", "-1",
           "the result that is the loss; -1: the only scalar of floating point">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_PRECISIONPASSES_TD
