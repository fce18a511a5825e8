// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention whose softmax is computed online, block of keys by block of keys: fp8.online_attention, and its
// backward pass fp8.online_attention_grad.

#ifndef FP8_DIALECT_FP8_IR_FP8ONLINEATTENTIONOPS_TD
#define FP8_DIALECT_FP8_IR_FP8ONLINEATTENTIONOPS_TD

include "fp8/Dialect/FP8/IR/FP8AttentionOps.td"

def FP8_OnlineAttentionOp : FP8_AttentionBaseOp<"online_attention"> {
  let summary = "attention with a running maximum and sum of each row";
  let description = [{
    Computes, as one operation,

        S[outer, key] = Σ query · key      (over depth)
        x, w          = score(S)           (the program's code of one score, in f32)
        m[outer]      = max x              (over keys)
        l[outer]      = Σ exp(x - m)       (over keys)
        O[outer, width] = Σ w · exp(x - m) / l · value   (over keys)

    with dimensions, maps and inputs as in `fp8.attention`, but one dimension each of keys, depth and width. Scores
    need no tensor: m and l are carried from block to block of keys, and what has been summed is scaled where m grows
    (M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao, "FlashAttention-2",
    2023). So sums have another order than those of `fp8.attention`, S is not rounded to the program's type, and no
    bits are promised: results differ by rounding. w · exp(x - m), a number of at most w, is rounded to the type of
    the values before it is multiplied.

    The region `score` has the arguments: the index of the row in each outer dimension, the index of the key, S in f32,
    and for each of the inputs its element at these indices. It yields x, the score that the softmax sees (scale, bias
    and mask are applied), and w, the factor of the probability (that of dropout; 1 if there is none).

    Results: the output, then one statistic of the rows for each value that the region `statistics` yields. The
    arguments of that region are the index of the row in each outer dimension, m and l. Without statistics it is empty.

    `base_two`: exponentials are powers of two. `zero_empty_rows`: a row whose scores x are all -∞ has l = 0 and the
    output 0; without it l and the output are NaN, as in a softmax that says nothing of such rows.

    `sink`: the number of an input that is an attention sink: an f32 for each row, or one for several rows, that takes
    part in m and in l as the score of one more key, which has no value (G. Xiao et al., "Efficient streaming language
    models with attention sinks", 2023; learned in gpt-oss, 2025).

    `visible_keys`, `visible_if`: as in `fp8.attention`: other keys are not read, so that a NaN or infinity there
    reaches no result.

    Preconditions: as for `fp8.attention`; query, key and value are bf16 or f16, all of one type; depth and width are
    static multiples of 8, at most 256 (a target's kernels decide).

    Becomes: on a GPU, a kernel (`convert-fp8-to-gpu`).

    Example:
    ```mlir
    %o, %max, %sum = fp8.online_attention
        ins(%q, %k, %v : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>)
        outs(%init, %stat, %stat : tensor<4x8x16xbf16>, tensor<4x8xf32>, tensor<4x8xf32>)
        {indexing_maps = [affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                          affine_map<(b, i, j, d, e) -> (b, j, e)>, affine_map<(b, i, j, d, e) -> (b, i, e)>,
                          affine_map<(b, i, j, d, e) -> (b, i)>, affine_map<(b, i, j, d, e) -> (b, i)>],
         visible_keys = affine_map<(b, i, j, d, e) -> (0, i + 1)>} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32):
        %lowest = arith.constant 0xFF800000 : f32
        %one = arith.constant 1.0 : f32
        %scale = arith.constant 0.25 : f32
        %scaled = arith.mulf %s, %scale : f32
        %later = arith.cmpi ugt, %j, %i : index
        %x = arith.select %later, %lowest, %scaled : f32
        fp8.yield %x, %one : f32, f32
    } statistics {
      ^bb0(%b: index, %i: index, %m: f32, %l: f32):
        fp8.yield %m, %l : f32, f32
    } -> tensor<4x8x16xbf16>, tensor<4x8xf32>, tensor<4x8xf32>
    ```
  }];
  let regions = (region AnyRegion:$score, AnyRegion:$statistics);
  let arguments = (ins FP8_FloatShaped:$query, FP8_FloatShaped:$key, FP8_FloatShaped:$value,
    Variadic<FP8_Shaped>:$inputs, Variadic<FP8_Shaped>:$outs,
    AffineMapArrayAttr:$indexing_maps, OptionalAttr<FP8_MatmulSites>:$sites,
    OptionalAttr<AffineMapAttr>:$visible_keys, OptionalAttr<I64Attr>:$visible_if, OptionalAttr<I64Attr>:$sink,
    UnitAttr:$base_two, UnitAttr:$zero_empty_rows);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$operands, "::mlir::ValueRange":$inputs,
      "::mlir::ValueRange":$outs, "::llvm::ArrayRef<::mlir::AffineMap>":$maps, "::mlir::ArrayAttr":$sites,
      "::mlir::AffineMapAttr":$visible_keys, "bool":$base_two, "bool":$zero_empty_rows)>];
  let assemblyFormat = [{
    `ins` `(` $query `,` $key `,` $value `:` type($query) `,` type($key) `,` type($value) `)`
    (`row_ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict `score` $score (`statistics` $statistics^)?
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = mapsDeclaration # [{
    static constexpr unsigned kNumMatmuls = 2;     ///< scores, output
    static constexpr unsigned kNumMatmulParts = 1; ///< arguments of the region that are scores
    static constexpr unsigned kNumMainResults = 1; ///< results before the statistics: the output
    /// Returns the map of the output.
    ::mlir::AffineMap getOutputMap() { return getIndexingMapsArray()[3 + getInputs().size()]; }
    /// Returns the region of code on one score.
    ::mlir::Region &getCode() { return getScore(); }
  }];
}

def FP8_OnlineAttentionGradOp : FP8_AttentionBaseOp<"online_attention_grad"> {
  let summary = "the backward pass of attention, element by element of its scores";
  let description = [{
    Computes, as one operation,

        S[outer, key] = Σ query · key             (over depth)
        G[outer, key] = Σ output_grad · value     (over width)
        P, D, F… = elements(S, G)                 (the program's code of one score, in f32)
        query_grad = Σ D · key                    (over keys)
        key_grad = Σ D · query                    (over queries)
        value_grad = Σ P · output_grad            (over queries)
        further… = Σ F                            (over keys or outer dimensions that the result's map lacks)

    with dimensions, maps and sums as in `fp8.attention_grad`, but one dimension each of keys, depth and width, and one
    outer dimension or several that neither key nor value has. Sums have any order that is the same in every run; P and
    D are rounded to the type of the operands before they are multiplied.

    The region `elements` has the arguments: the index of the row in each outer dimension, the index of the key, S and
    G in f32, and for each of the inputs its element at these indices: statistics of the row that forward has stored,
    the sum of P · G over the keys, masks and biases. It yields P, D, the gradient of S, and F for each further
    result. It reduces nothing: all that is the same for a row is an input.

    A further result has keys and queries, and is summed over the other outer dimensions that it lacks: the gradient of
    a bias for all batches. Or it has all outer dimensions, and is summed over the keys: a number of each row, as the
    gradient of a sink needs one. Its sums are in f32, and rounded to its type once.

    `visible_keys`, `visible_if`: as in `fp8.attention_grad`: other keys are not read.

    Preconditions: as for `fp8.online_attention`; each gradient has the dimensions of its tensor; one outer dimension or
    more that neither key nor value, nor their gradients, have, and that all further results have.

    Becomes: on a GPU, two kernels or three, and one for each further result with keys (`convert-fp8-to-gpu`).

    Example:
    ```mlir
    %dq, %dk, %dv = fp8.online_attention_grad
        ins(%q, %k, %v, %do : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>)
        row_ins(%max, %sum, %delta : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
        outs(%init, %init, %init : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>)
        {indexing_maps = [affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                          affine_map<(b, i, j, d, e) -> (b, j, e)>, affine_map<(b, i, j, d, e) -> (b, i, e)>,
                          affine_map<(b, i, j, d, e) -> (b, i)>, affine_map<(b, i, j, d, e) -> (b, i)>,
                          affine_map<(b, i, j, d, e) -> (b, i)>, affine_map<(b, i, j, d, e) -> (b, i, d)>,
                          affine_map<(b, i, j, d, e) -> (b, j, d)>, affine_map<(b, i, j, d, e) -> (b, j, e)>]} elements {
      ^bb0(%b: index, %i: index, %j: index, %s: f32, %g: f32, %m: f32, %l: f32, %sum_pg: f32):
        %x = arith.subf %s, %m : f32
        %y = math.exp %x : f32
        %p = arith.divf %y, %l : f32
        %centered = arith.subf %g, %sum_pg : f32
        %d = arith.mulf %p, %centered : f32
        fp8.yield %p, %d : f32, f32
    } -> tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<4x8x16xbf16>
    ```
  }];
  let regions = (region AnyRegion:$elements);
  let arguments = (ins FP8_FloatShaped:$query, FP8_FloatShaped:$key, FP8_FloatShaped:$value,
    FP8_FloatShaped:$output_grad, Variadic<FP8_Shaped>:$inputs, Variadic<FP8_Shaped>:$outs,
    AffineMapArrayAttr:$indexing_maps, OptionalAttr<FP8_MatmulSites>:$sites,
    OptionalAttr<AffineMapAttr>:$visible_keys, OptionalAttr<I64Attr>:$visible_if);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$operands, "::mlir::ValueRange":$inputs,
      "::mlir::ValueRange":$outs, "::llvm::ArrayRef<::mlir::AffineMap>":$maps, "::mlir::ArrayAttr":$sites,
      "::mlir::AffineMapAttr":$visible_keys)>];
  let assemblyFormat = [{
    `ins` `(` $query `,` $key `,` $value `,` $output_grad `:`
              type($query) `,` type($key) `,` type($value) `,` type($output_grad) `)`
    (`row_ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict `elements` $elements (`->` type($results)^)?
  }];
  let extraClassDeclaration = mapsDeclaration # [{
    static constexpr unsigned kNumMatmuls = 5;     ///< S, G, value_grad, query_grad, key_grad
    static constexpr unsigned kNumMatmulParts = 2; ///< arguments of the region: the score and its gradient
    static constexpr unsigned kNumMainResults = 3; ///< the gradients of query, key and value
    /// Returns the map of the gradient of the output, which is that of the output.
    ::mlir::AffineMap getOutputMap() { return getIndexingMapsArray()[3]; }
    /// Returns the region of code on one score.
    ::mlir::Region &getCode() { return getElements(); }
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8ONLINEATTENTIONOPS_TD
