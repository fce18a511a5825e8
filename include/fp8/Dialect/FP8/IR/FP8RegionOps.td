// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The yield and index operations of producer and epilogue regions.

#ifndef FP8_DIALECT_FP8_IR_FP8REGIONOPS_TD
#define FP8_DIALECT_FP8_IR_FP8REGIONOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attributes.td"

def FP8_YieldOp : Op<FP8_Dialect, "yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["::fp8::AmaxOp", "::fp8::QuantizeOp", "::fp8::QuantizeBlocksOp",
                  "::fp8::MatmulOp", "::fp8::ScaledMatmulOp", "::fp8::AttentionOp", "::fp8::AttentionGradOp",
                  "::fp8::OnlineAttentionOp", "::fp8::OnlineAttentionGradOp"]>]> {
  let summary = "yields the elements or rows that a producer or epilogue region computes";
  let description = [{
    Terminates the region of `fp8.amax` (and yields the element to measure),
    `fp8.quantize` or `fp8.quantize_blocks` (the element to cast), `fp8.matmul` or `fp8.scaled_matmul` (the
    element of the result). Further operands are elements of the extra results, one for
    each. A region with `rows` yields a row in place of an element; that of `fp8.attention` yields
    the row of probabilities, that of `fp8.attention_grad` two rows. Regions of `fp8.online_attention` and
    `fp8.online_attention_grad` yield what these say.

    Example:
    ```mlir
    %q, %si = fp8.quantize ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
        outs(%d, %i : tensor<8x16xf8E4M3FN>, tensor<f32>)
        {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>]} producer {
      ^bb0(%e: bf16):
        %n = arith.negf %e : bf16
        fp8.yield %n : bf16
    } -> tensor<8x16xf8E4M3FN>, tensor<f32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyFloat, RankedTensorOf<[AnyFloat]>, VectorOfAnyRankOf<[AnyFloat]>]>:$value,
    Variadic<AnyTypeOf<[AnyFloat, AnySignlessInteger,
                        RankedTensorOf<[AnyFloat, AnySignlessInteger]>,
                        VectorOfAnyRankOf<[AnyFloat, AnySignlessInteger]>]>>:$extras);
  let assemblyFormat = "$value (`,` $extras^)? attr-dict `:` type($value) (`,` type($extras)^)?";
}

def FP8_IndexOp : Op<FP8_Dialect, "index", [Pure]> {
  let summary = "the position of the element that a producer or epilogue region computes";
  let description = [{
    Returns the position, along dimension `dim` of the tensor, of the element that the region
    computes: the counterpart of `linalg.index`. Causal masks and one-hot tensors need it.

    Preconditions: within a region of `fp8.amax`, `fp8.quantize`, `fp8.quantize_blocks`,
    `fp8.matmul` or `fp8.scaled_matmul`; `dim` is one of the tensor's dimensions.

    Tiling: an operation whose region reads an index is not tiled.

    Becomes: the index of a loop on the CPU.

    Example:
    ```mlir
    %q, %si = fp8.quantize ins(%x : tensor<8x16xf32>) scale(%s : tensor<f32>)
        outs(%d, %i : tensor<8x16xf8E4M3FN>, tensor<f32>)
        {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>]} producer {
      ^bb0(%e: f32):
        %row = fp8.index 0
        %column = fp8.index 1
        %later = arith.cmpi ugt, %column, %row : index
        %zero = arith.constant 0.0 : f32
        %m = arith.select %later, %zero, %e : f32
        fp8.yield %m : f32
    } -> tensor<8x16xf8E4M3FN>, tensor<f32>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
  let hasVerifier = 1;
}

#endif // FP8_DIALECT_FP8_IR_FP8REGIONOPS_TD
