// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a tensor to its FP8 data and back: amax, scale, quantize, dequantize.

#ifndef FP8_DIALECT_FP8_IR_FP8SCALINGOPS_TD
#define FP8_DIALECT_FP8_IR_FP8SCALINGOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attributes.td"

def FP8_AmaxOp : FP8_DpsOp<"amax", [AttrSizedOperandSegments]> {
  let summary = "the largest magnitude of a tensor";
  let description = [{
    Computes `max |x|` as f32 of rank 0. NaN elements are ignored, Inf counts, an empty
    tensor gives 0.

    With a `producer` region the operation computes the tensor that it measures: inputs,
    maps, region, `rows` and extra results are as in `fp8.quantize`. An extra result
    can store that tensor.

    Preconditions: float input; with a producer every dimension of the tensor is a
    dimension of an input or of a stored extra result.

    Tiling: none, because the amax is that of the whole tensor.

    Becomes: `scf` loops on the CPU; the outermost loop is parallel and followed by a
    maximum over its iterations.

    Example:
    ```mlir
    %a = fp8.amax ins(%x : tensor<8x16xbf16>) outs(%init : tensor<f32>) -> tensor<f32>
    %c, %stored = fp8.amax ins(%z : tensor<8x16xf32>) outs(%init, %s : tensor<f32>, tensor<8x16xbf16>)
        {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]} producer {
      ^bb0(%e: f32):
        %n = arith.truncf %e : f32 to bf16
        fp8.yield %n, %n : bf16, bf16
    } -> tensor<f32>, tensor<8x16xbf16>
    ```
  }];
  let arguments = (ins Variadic<FP8_Shaped>:$inputs, Variadic<FP8_Shaped>:$outs,
    OptionalAttr<AffineMapArrayAttr>:$indexing_maps, OptionalAttr<DenseI64ArrayAttr>:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$producer);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs,
      "::mlir::ValueRange":$outs),
    "build($_builder, $_state, results, inputs, outs, ::mlir::ArrayAttr(), ::mlir::DenseI64ArrayAttr());">];
  let assemblyFormat = [{
    `ins` `(` $inputs `:` type($inputs) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`producer` $producer^)? (`->` type($results)^)?
  }];
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }";
  let hasCanonicalizer = 1;
}

def FP8_ComputeScaleOp : FP8_DpsOp<"compute_scale", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the scale of each amax, by the formula of a stateless recipe";
  let description = [{
    Computes one scale per amax by the formula of `recipe`, elementwise:

    - current, row and block scaling: `scale = fp8_max / max(amax, eps)`, floored to a
      power of two with `power_2_scale`. The scale is 1 where `max(amax, eps)` is 0, Inf or
      NaN, and the largest f32 (block scaling: the largest finite value of `input_type`)
      where the quotient overflows;
    - MX scaling: `2^(127 - e)`, where `e` is the E8M0 byte of the scale_inv;
    - delayed scaling with `init = current`: `scale = (fp8_max · 2^-margin) / amax`, with
      the exceptions of current scaling;
    - `#fp8.custom`: the result of its function for `scale`, if it names one.

    Preconditions: amax and scale have the same shape and are f32; `recipe` is stateless,
    or delayed scaling with `init = current`; `format` is `f8E4M3FN` or `f8E5M2`.

    Tiling: every dimension.

    Becomes: scalar `arith` operations, the recipe's own, in loops over the amaxes.

    Example:
    ```mlir
    %s = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN)
        ins(%amax : tensor<f32>) outs(%init : tensor<f32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins FP8_F32Shaped:$amax, FP8_F32Shaped:$outs,
    FP8_RecipeAttrInterface:$recipe, TypeAttr:$format, OptionalAttr<TypeAttr>:$input_type);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `recipe` `(` $recipe `)` `format` `(` $format `)` (`input_type` `(` $input_type^ `)`)?
    `ins` `(` $amax `:` type($amax) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }";
}

def FP8_QuantizeOp : FP8_DpsOp<"quantize", [AttrSizedOperandSegments]> {
  let summary = "cast a tensor to FP8 with a scale";
  let description = [{
    Computes `data = saturate(round(f32(x) · scale))`: an element is widened to f32,
    multiplied by the scale in f32, and converted to the nearest FP8 value, ties
    to even, saturating to the largest finite value (±Inf too). Every NaN becomes
    the byte 0x7F. `scale_inv = 1 / scale`, correctly rounded.

    Results, in this order, each with its `outs` operand:
    - `data`: the FP8 values in the layout of the tensor;
    - `data_t` (with `transposition`): the same values permuted; dimension `d` of
      `data_t` is dimension `transposition[d]` of the tensor;
    - `scale_inv`: of rank 0;
    - `amax` (with `record_amax`): `fp8.amax` of the tensor before scaling;
    - extra results of a producer, as many as `indexing_maps` has beyond the inputs.

    Without a region there is one input, the tensor itself. A `producer` region is code
    fused into the cast: it yields an element of the tensor from one element of each
    input, read at `indexing_maps` (in the dimensions of the tensor). The region rounds
    wherever the program rounds.

    Each further value that the region yields goes to an extra result. If the map of the
    extra result is a permutation of the dimensions, the value is stored, so that a
    producer can be fused although others read its result. If the map keeps only the last
    dimensions, in order, the f32 values are summed over the other dimensions, starting
    from 0 in the order of the elements, as in a bias gradient.

    `rows` lists the dimensions of the tensor that make up a row. The region then computes
    one row at a time and can reduce over it, as norms and softmaxes do. Its arguments
    are the index of the row in each other dimension, then the slice of each input
    along the row's dimensions, in the order of its map (a scalar if the map has
    none of these dimensions). The region uses linalg operations and scalars, and yields
    the row as a tensor. An extra result is a row (its map has every dimension), a statistic
    (all dimensions except the row's: one scalar per row) or a sum over the rows (the
    row's dimensions only, f32). The region itself defines the order of a sum over a row.

    `column`: the column of the state that scale and amax belong to.

    With `random` the data is rounded stochastically: of the two FP8 values around
    x · scale the one of larger magnitude is taken where 32 random bits, as a fraction of
    2^32, are less than the fraction of a unit in the last place that truncation discards. NaN,
    Inf and saturation are as above. `random` has the seed and the step. The bits of element i
    are the first word of Philox4x32-10 with the seed as its key, low word first, and the counter
    (`stream`, the step, the low word of i, the high word of i), where i counts the elements
    of the tensor in row-major order. A third element of `random` is added to i: the number
    of the first element, in a tensor that is a part of another. All layouts have the same
    bytes.

    Preconditions: float inputs; scale and scale_inv are f32 of rank 0. `random` has 2 or 3
    elements and comes with a `stream` of 0 to 2^32 - 1. The region
    computes scalars from scalars, or with `rows` tensors of static shape. `rows` needs
    tensors; it lists dimensions of static size, in increasing order, but not all of the
    tensor's.

    Tiling: every dimension except those in `rows` and those that an extra result is
    summed over. With `record_amax` the operation is not tiled,
    because the amax is that of the whole tensor; nor with `random`, because
    elements are counted in the whole tensor. Every tile writes the same rank-0
    `scale_inv`.

    Becomes: `scf` loops on the CPU, with the exact conversion in integer arithmetic;
    with `rows`, before bufferization, an `scf.forall` over the rows (`fp8-expand-rows`).

    Example:
    ```mlir
    %q, %si, %amax = fp8.quantize record_amax ins(%x : tensor<8x16xbf16>) scale(%s : tensor<f32>)
        outs(%d, %i, %a : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>)
        -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
    %q2, %si2, %n, %bias_grad = fp8.quantize ins(%g : tensor<8x16xbf16>) scale(%s : tensor<f32>)
        outs(%d, %i, %o, %b : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8x16xbf16>, tensor<16xf32>)
        {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>,
                          affine_map<(d0, d1) -> (d1)>]} producer {
      ^bb0(%e: bf16):
        %m = arith.negf %e : bf16
        %w = arith.extf %m : bf16 to f32
        fp8.yield %m, %m, %w : bf16, bf16, f32
    } -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8x16xbf16>, tensor<16xf32>
    %q3, %si3, %max = fp8.quantize ins(%y : tensor<8x16xf32>) scale(%s : tensor<f32>)
        outs(%d, %i, %t : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8xf32>)
        {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
         rows = array<i64: 1>} producer {
      ^bb0(%row: index, %e: tensor<16xf32>):
        %lowest = arith.constant dense<0xFF800000> : tensor<f32>
        %largest = linalg.reduce {arith.maximumf} ins(%e : tensor<16xf32>)
            outs(%lowest : tensor<f32>) dimensions = [0]
        %top = tensor.extract %largest[] : tensor<f32>
        %init = tensor.empty() : tensor<16xf32>
        %r = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>],
                             iterator_types = ["parallel"]}
            ins(%e : tensor<16xf32>) outs(%init : tensor<16xf32>) {
          ^bb0(%in: f32, %out: f32):
            %below = arith.subf %in, %top : f32
            linalg.yield %below : f32
        } -> tensor<16xf32>
        fp8.yield %r, %top : tensor<16xf32>, f32
    } -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins
    Variadic<FP8_Shaped>:$inputs, FP8_F32Shaped:$scale, Optional<FP8_Random>:$random,
    Variadic<FP8_Shaped>:$outs, UnitAttr:$record_amax, OptionalAttr<DenseI64ArrayAttr>:$transposition,
    OptionalAttr<I64Attr>:$column, OptionalAttr<I64Attr>:$stream,
    OptionalAttr<AffineMapArrayAttr>:$indexing_maps, OptionalAttr<DenseI64ArrayAttr>:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$producer);
  let assemblyFormat = [{
    (`record_amax` $record_amax^)? (`column` `(` $column^ `)`)?
    (`ins` `(` $inputs^ `:` type($inputs) `)`)? `scale` `(` $scale `:` type($scale) `)`
    (`random` `(` $random^ `:` type($random) `)` `stream` `(` $stream `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`producer` $producer^)? (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    /// Positions of results, and of their destinations in `outs`; -1 if there is no such result.
    int64_t getDataTIndex() { return getTransposition() ? 1 : -1; }
    int64_t getScaleInvIndex() { return getTransposition() ? 2 : 1; }
    int64_t getAmaxIndex() { return getRecordAmax() ? getScaleInvIndex() + 1 : -1; }
    /// Returns the FP8 type of the data.
    ::mlir::FloatType getFormat() {
      return ::llvm::cast<::mlir::FloatType>(::mlir::getElementTypeOrSelf(getOuts().front()));
    }
  }];
  let hasCanonicalizer = 1;
}

def FP8_QuantizeBlocksOp : FP8_DpsOp<"quantize_blocks", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "cast a tensor to FP8 with a scale for each row or block";
  let description = [{
    Casts one tensor once for each entry of `blocks`, in one read of the tensor. An entry
    is the extent of a block in each dimension, 0 for the whole dimension. All elements of
    a block share a scale:

        amax = max |x| of the block       (NaN elements are ignored)
        scale = the formula of `recipe`   (as in fp8.compute_scale)
        data = saturate(round(f32(x) · scale)), scale_inv = 1 / scale

    Blocks at the end of a dimension may be smaller. `[1, 128]` and `[128, 1]` are the two
    directions of a block-scaled activation, `[128, 128]` is a block-scaled weight,
    `[1, 0]` a scale for each row, `[1, 32]` MXFP8. Each direction is a cast of the tensor
    itself, never of the other direction.

    Results: for each entry of `blocks` the FP8 data and its scale_inv, which has
    `ceil(size / extent)` entries in each dimension (1 for extent 0), f32 or `f8E8M0FNU`
    (the recipe's type). Then extra results of a producer, as in `fp8.quantize`.

    `transpositions` has a permutation for each entry of `blocks`: dimension `d` of that
    data and scale_inv is dimension `transposition[d]` of the tensor. Without it every
    direction has the layout of the tensor. Two entries may have equal blocks and different
    permutations: the same values in two layouts.

    A `producer` region, its inputs, maps and `rows`, and `random` with `stream` are as in
    `fp8.quantize`. An element has the same random bits in every direction.

    Preconditions: `recipe` is stateless; one FP8 format for all directions; shapes as
    above.

    Becomes: on the CPU, loops over tiles that hold whole blocks of every direction: the
    elements of a tile are computed once, into a local buffer, with the amaxes, and cast
    from there. With extents of 0 the amaxes of the whole tensor come first.

    Example:
    ```mlir
    %q, %si, %qt, %sit = fp8.quantize_blocks recipe(#fp8.block_scaling)
        ins(%x : tensor<8x200xbf16>)
        outs(%d, %i, %dt, %it : tensor<8x200xf8E4M3FN>, tensor<8x2xf32>, tensor<8x200xf8E4M3FN>, tensor<1x200xf32>)
        {blocks = [array<i64: 1, 128>, array<i64: 128, 1>]}
        -> tensor<8x200xf8E4M3FN>, tensor<8x2xf32>, tensor<8x200xf8E4M3FN>, tensor<1x200xf32>
    ```
  }];
  let arguments = (ins
    Variadic<FP8_Shaped>:$inputs, Optional<FP8_Random>:$random, Variadic<FP8_Shaped>:$outs,
    FP8_RecipeAttrInterface:$recipe,
    TypedArrayAttrBase<DenseI64ArrayAttr, "extents of a block for each direction">:$blocks,
    OptionalAttr<TypedArrayAttrBase<DenseI64ArrayAttr, "a permutation for each direction">>:$transpositions,
    OptionalAttr<I64Attr>:$stream, OptionalAttr<AffineMapArrayAttr>:$indexing_maps, OptionalAttr<DenseI64ArrayAttr>:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$producer);
  let assemblyFormat = [{
    `recipe` `(` $recipe `)` (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    (`random` `(` $random^ `:` type($random) `)` `stream` `(` $stream `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`producer` $producer^)? (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    unsigned getNumDirections() { return getBlocks().size(); }
    ::llvm::ArrayRef<int64_t> getBlock(unsigned direction) {
      return ::llvm::cast<::mlir::DenseI64ArrayAttr>(getBlocks()[direction]);
    }
    /// Returns the permutation of a direction; empty without `transpositions`.
    ::llvm::ArrayRef<int64_t> getTransposition(unsigned direction) {
      if (!getTranspositions())
        return {};
      return ::llvm::cast<::mlir::DenseI64ArrayAttr>((*getTranspositions())[direction]);
    }
    ::mlir::Value getDataOut(unsigned direction) { return getOuts()[2 * direction]; }
    ::mlir::Value getScaleInvOut(unsigned direction) { return getOuts()[2 * direction + 1]; }
    /// Returns the FP8 type of the data.
    ::mlir::FloatType getFormat() {
      return ::llvm::cast<::mlir::FloatType>(::mlir::getElementTypeOrSelf(getOuts().front()));
    }
  }];
  let hasCanonicalizer = 1;
}

def FP8_DequantizeOp : FP8_DpsOp<"dequantize"> {
  let summary = "convert an FP8 tensor back to a wider type";
  let description = [{
    Computes `x = f32(data) · scale_inv`, rounded once to the element type of the result.

    Preconditions: `scale_inv` has rank 0, or one entry per block with `block`.

    Tiling: every dimension, in multiples of blocks.

    Becomes: a `linalg.generic` on the CPU.

    Example:
    ```mlir
    %x = fp8.dequantize ins(%q : tensor<8x16xf8E4M3FN>) scale_inv(%si : tensor<f32>)
        outs(%init : tensor<8x16xbf16>) -> tensor<8x16xbf16>
    ```
  }];
  let arguments = (ins FP8_Data:$data, FP8_Scale:$scale_inv, FP8_FloatShaped:$outs,
    OptionalAttr<DenseI64ArrayAttr>:$block);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $data `:` type($data) `)` `scale_inv` `(` $scale_inv `:` type($scale_inv) `)`
    `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }";
}

def FP8_PackScalesOp : FP8_DpsOp<"pack_scales"> {
  let summary = "block scales in the order that tensor cores read them";
  let description = [{
    Rearranges E8M0 scales [batch…, rows, columns], for each batch, into tiles of 128×4, 512 bytes each:
    entry (i, j) of tile (ty, tx) is at byte
    `(ty · ntx + tx) · 512 + (i % 32) · 16 + (i / 32 % 4) · 4 + j`, where `ntx` is the
    number of tiles along the columns. Entries beyond the input are 0.

    Preconditions: input of rank 2 or more, result of rank 1 with
    `ceil(rows / 128) · ceil(columns / 4) · 512` entries per batch, both `f8E8M0FNU`.

    Becomes: a `linalg.generic` over the bytes of the result.

    Example:
    ```mlir
    %p = fp8.pack_scales ins(%s : tensor<128x4xf8E8M0FNU>) outs(%init : tensor<512xf8E8M0FNU>)
        -> tensor<512xf8E8M0FNU>
    ```
  }];
  let arguments = (ins FP8_E8M0Shaped:$scales, FP8_E8M0Shaped:$outs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $scales `:` type($scales) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }";
}

#endif // FP8_DIALECT_FP8_IR_FP8SCALINGOPS_TD
