// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State that is kept from step to step, and loss scaling.

#ifndef FP8_DIALECT_FP8_IR_FP8STATEOPS_TD
#define FP8_DIALECT_FP8_IR_FP8STATEOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attributes.td"

def FP8_UpdateAmaxHistoryOp
    : FP8_DpsOp<"update_amax_history", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "delayed scaling: compute the next scales and rotate the history";
  let description = [{
    Updates the state of the recipe once per step. `outs` are the packed scales [N] and
    amax history [H, N] of the program; the results are their values after the update.
    `amaxes` holds the amaxes recorded in this step: entry `i` belongs to column
    `columns[i]`; several of one column are combined with max. Columns that are not
    listed stay unchanged, and so do columns whose current amax is 0 (their site did not
    run).

    For each other column, with current = max(row 0, recorded amaxes):
    - amax is the maximum of current and rows 1…H-1 (`max`, NaN ignored), or
      current (`most_recent`);
    - the scale becomes `(fp8_max · 2^-margin) / amax`, or the largest f32 where that
      overflows; it stays unchanged where amax is 0, Inf or NaN;
    - the rows rotate: row 0 becomes 0, row i becomes the former row i+1, row H-1 becomes
      the current amax. With H = 1 the only row becomes 0.

    With `executed_mask` a negative amax means that the site did not run, and 0 is an
    amax like any other. With `ignore_non_finite` an amax that is Inf or NaN counts as 0
    wherever it is read (with both options, a recorded one counts as not recorded); this
    is decided after the amaxes of one column are combined, so one Inf discards them all.
    Functions that `#fp8.custom` names compute the amax and the scale instead.

    Preconditions: operands are f32; `recipe` is stateful (`#fp8.delayed_scaling`) with a
    history length of H; `columns` and `formats` have one entry per amax; columns are in
    [0, N), and all entries of one column have the same format.

    Becomes: `scf` loops over all columns on the CPU, which leave unlisted columns unchanged.

    Example:
    ```mlir
    %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
        columns [0, 2] formats [f8E4M3FN, f8E5M2]
        ins(%amaxes : tensor<2xf32>) outs(%s0, %h0 : tensor<3xf32>, tensor<4x3xf32>)
        -> tensor<3xf32>, tensor<4x3xf32>
    ```
  }];
  let arguments = (ins FP8_F32Shaped:$amaxes, FP8_F32Shaped:$scale, FP8_F32Shaped:$history,
    FP8_RecipeAttrInterface:$recipe, DenseI64ArrayAttr:$columns, TypeArrayAttr:$formats);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `recipe` `(` $recipe `)` `columns` $columns `formats` $formats
    `ins` `(` $amaxes `:` type($amaxes) `)`
    `outs` `(` $scale `,` $history `:` type($scale) `,` type($history) `)` attr-dict
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(getOperation(), 1, 2);
    }
  }];
}

def FP8_EndForwardOp : Op<FP8_Dialect, "end_forward"> {
  let summary = "the boundary between forward and backward in a joined function";
  let description = [{
    `fp8-join-pair` joins the forward and the backward function of one step into one. The
    operations before this one are the forward function, those after it are the body of
    `backward`, which only returns poison until the two are split again.

    At this point control is with the caller: `given` are the values that forward
    returns to it, the results are the arguments that it passes to backward, residuals
    excepted. For dataflow every result depends on every value of `given`.

    If a recipe keeps a history, this is also the update point of the forward tensors:
    the last two of `given` are scale and amax_history as forward returns them, the last
    two results are scale and amax_history as backward receives them.

    Preconditions: at most once in a function, in its entry block; `backward` is another
    function of the module.

    Becomes: nothing; `fp8-split-pair` restores the two functions.

    Example:
    ```mlir
    %dy, %s1, %h1 = fp8.end_forward @backward
        given(%y, %s0, %h0 : tensor<4x8xf32>, tensor<3xf32>, tensor<4x3xf32>)
        -> tensor<4x8xf32>, tensor<3xf32>, tensor<4x3xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$backward, Variadic<AnyType>:$given);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $backward (`given` `(` $given^ `:` type($given) `)`)? attr-dict (`->` type($results)^)?
  }];
}

def FP8_UnscaleOp : FP8_DpsOp<"unscale", [AttrSizedOperandSegments]> {
  let summary = "loss scaling: divide gradients by the scale, note overflow";
  let description = [{
    Multiplies every gradient by `1 / scale` and sets `found_inf`, the last of
    `outs`, to 1 where any gradient holds an Inf or NaN, else to 0.

    Preconditions: `outs` has one operand per gradient, of its type, then an f32 of rank 0;
    `scale` is f32 of rank 0.

    Becomes: elementwise operations, and an `fp8.amax` per gradient of a tensor that is 1 where it holds an Inf or
    NaN (`fp8-expand-loss-scaling`).

    Example:
    ```mlir
    %g, %found = fp8.unscale ins(%grad : tensor<8xf32>) scale(%s : tensor<f32>)
        outs(%i, %f : tensor<8xf32>, tensor<f32>) -> tensor<8xf32>, tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<FP8_FloatShaped>:$gradients, FP8_F32Shaped:$scale,
    Variadic<FP8_FloatShaped>:$outs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $gradients `:` type($gradients) `)` `scale` `(` $scale `:` type($scale) `)`
    `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }";
}

def FP8_UpdateLossScaleOp : FP8_DpsOp<"update_loss_scale"> {
  let summary = "loss scaling: back off after an overflow, grow after an interval";
  let description = [{
    If `found_inf` is not 0, the scale is multiplied by `backoff` and the tracker becomes
    0. Otherwise the tracker counts up by one; when it reaches `interval`, the scale is
    multiplied by `growth` and the tracker becomes 0.

    Preconditions: all operands have rank 0; found_inf and scale are f32, tracker is i32;
    growth > 1, 0 < backoff < 1, interval > 0.

    Becomes: elementwise operations on tensors of rank 0 (`fp8-expand-loss-scaling`).

    Example:
    ```mlir
    %s1, %t1 = fp8.update_loss_scale ins(%found : tensor<f32>)
        outs(%s0, %t0 : tensor<f32>, tensor<i32>) -> tensor<f32>, tensor<i32>
    ```
  }];
  let arguments = (ins FP8_F32Shaped:$found_inf, FP8_F32Shaped:$scale, FP8_Shaped:$tracker,
    DefaultValuedAttr<F32Attr, "2.0f">:$growth, DefaultValuedAttr<F32Attr, "0.5f">:$backoff,
    DefaultValuedAttr<I64Attr, "2000">:$interval);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $found_inf `:` type($found_inf) `)`
    `outs` `(` $scale `,` $tracker `:` type($scale) `,` type($tracker) `)` attr-dict
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(getOperation(), 1, 2);
    }
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8STATEOPS_TD
