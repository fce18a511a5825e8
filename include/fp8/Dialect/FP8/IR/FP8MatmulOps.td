// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls: in high precision or not yet decided (fp8.matmul), and on scaled FP8
// operands (fp8.scaled_matmul).

#ifndef FP8_DIALECT_FP8_IR_FP8MATMULOPS_TD
#define FP8_DIALECT_FP8_IR_FP8MATMULOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attributes.td"

/// The base of fp8.matmul and fp8.scaled_matmul: three indexing maps, and an optional epilogue
/// region with inputs and extra results of its own.
class FP8_ContractionOp<string mnemonic, list<Trait> traits = []> : FP8_DpsOp<mnemonic, traits> {
  let skipDefaultBuilders = 1; // of up to 17 arguments
  let builders = [
    // A plain matmul of `operands`: both factors, their scales in fp8.scaled_matmul, and the destination, which
    // tells the type of the result. The sizes of operand segments need not be set.
    OpBuilder<(ins "::mlir::ValueRange":$operands, "Properties":$properties), [{
      auto sizes = ::llvm::MutableArrayRef<int32_t>(properties.operandSegmentSizes);
      ::llvm::fill(sizes, 1);
      ::llvm::fill(sizes.take_back(3).drop_back(), 0);
      bool isTensor = ::llvm::isa<::mlir::TensorType>(operands.back().getType());
      auto types = isTensor ? ::mlir::TypeRange(operands.take_back()) : ::mlir::TypeRange();
      build($_builder, $_state, types, operands, properties);
    }]>,
    // All operands in their order; `properties` has the sizes of their segments.
    OpBuilder<(ins "::mlir::TypeRange":$types, "::mlir::ValueRange":$operands, "const Properties &":$properties), [{
      $_state.addTypes(types);
      $_state.addOperands(operands);
      $_state.getOrAddProperties<Properties>() = properties;
      $_state.addRegion();
    }]>];
  code contractionDeclaration = [{
    /// Returns the indexing maps of the two operands and the result.
    ::llvm::SmallVector<::mlir::AffineMap> getIndexingMapsArray() {
      return ::llvm::to_vector(getIndexingMaps().getAsValueRange<::mlir::AffineMapAttr>());
    }
    /// Returns the batch, M, N and K dimensions. Only valid on a verified operation.
    ::fp8::ContractionDims getContractionDims() {
      return *::fp8::inferContractionDims(getIndexingMapsArray());
    }
    /// Returns the size of each iteration dimension, ShapedType::kDynamic if unknown.
    ::llvm::SmallVector<int64_t> getStaticLoopRanges();
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    /// Returns the destination of the matmul itself, the first of `outs`.
    ::mlir::Value getInit() { return getOuts().front(); }
    /// Returns whether nothing is fused: the one result holds the sums, rounded to its type.
    bool isPlain() { return getEpilogue().empty() && !getOutScale() && !getRecordAmax(); }
  }];
}

def FP8_MatmulOp : FP8_ContractionOp<"matmul", [AttrSizedOperandSegments]> {
  let summary = "a matmul in high precision";
  let description = [{
    Computes `C[c(i)] = Σ A[a(i)] · B[b(i)]` over the iteration space of the
    three `indexing_maps`, as `linalg.contract` does: any number of batch, M, N
    and K dimensions in any order, so that transposes are part of the maps.

    Matmuls are summed in f32 (in f64 if an operand is f64) in the order of the
    reduction dimensions, the last one fastest, and the sum is rounded once to the
    element type of the result. With `accumulate` the sum is added to the value that
    `outs` holds. With `resume` each sum begins with the f32 that `outs` holds, so that matmuls of
    parts of K, one after the other, give the bits of the whole matmul. Otherwise `outs` is only written.

    Ingest turns every contraction of the program into this operation.
    - `site` is the name of the site in the user's program.
    - `role` is the role of the matmul at its site.
    - `kinds` says which tensor of the site each operand is: an fprop multiplies input
      and weight, a dgrad grad_output and weight, a wgrad input and grad_output, in the
      order of the operands; a matmul without a weight (`other`, as in attention) has two
      inputs in the forward pass and a grad_output in the backward pass.
    - `recipe` is the recipe of a matmul that becomes FP8, once that is decided: that of its
      site and role.
    - `kept` is the reason why the matmul stays in high precision, once that is decided. A
      matmul has a recipe or such a reason, not both.

    `epilogue` with its inputs and extra results, `out_scale` and `record_amax` have the
    same meaning as in `fp8.scaled_matmul`, for element types of at most 32 bits; the first
    argument of the region is the f32 sum.

    Preconditions:
    - maps are projected permutations; every dimension is a batch, M, N or K
      dimension (in all three maps, in A and C, in B and C, in A and B), with at
      least one K dimension;
    - operands and result are of float types; sizes of one dimension agree;
    - `resume` goes with an f32 result, operands of at most 32 bits, and neither `accumulate`, an epilogue nor
      an amax.

    Postconditions: none beyond the value.

    Tiling: batch, M and N dimensions. K is not tiled, because partial sums would be
    rounded; a matmul that records an amax is not tiled at all.

    Becomes: `fp8.scaled_matmul` if the site is chosen for FP8; otherwise a packed
    f32 matmul on the CPU.

    Example:
    ```mlir
    %y = fp8.matmul site("h0/fc1") role(fprop) kinds(input, weight)
        ins(%x, %w : tensor<8x16xbf16>, tensor<16x32xbf16>)
        outs(%init : tensor<8x32xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xbf16>
    %z, %amax = fp8.matmul site("head") role(fprop) kinds(input, weight) kept("matches --keep=head") record_amax[0]
        ins(%x, %w : tensor<8x16xbf16>, tensor<16x32xbf16>) epilogue_ins(%bias : tensor<32xbf16>)
        outs(%init, %a : tensor<8x32xbf16>, tensor<f32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>],
         epilogue_maps = [affine_map<(d0, d1) -> (d1)>]} epilogue {
      ^bb0(%sum: f32, %b: bf16):
        %r = arith.truncf %sum : f32 to bf16
        %v = arith.addf %r, %b : bf16
        fp8.yield %v : bf16
    } -> tensor<8x32xbf16>, tensor<f32>
    ```
  }];
  let arguments = (ins
    FP8_FloatShaped:$lhs, FP8_FloatShaped:$rhs,
    Variadic<FP8_Shaped>:$epilogue_inputs, Optional<FP8_F32Shaped>:$out_scale,
    Variadic<FP8_Shaped>:$outs,
    AffineMapArrayAttr:$indexing_maps,
    OptionalAttr<StrAttr>:$site, OptionalAttr<FP8_Role>:$role,
    OptionalAttr<FP8_TensorKind>:$lhs_kind, OptionalAttr<FP8_TensorKind>:$rhs_kind,
    OptionalAttr<FP8_RecipeAttrInterface>:$recipe, OptionalAttr<StrAttr>:$kept,
    UnitAttr:$accumulate, OptionalAttr<DenseI64ArrayAttr>:$record_amax,
    OptionalAttr<AffineMapArrayAttr>:$epilogue_maps, UnitAttr:$resume);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$epilogue);
  let assemblyFormat = [{
    (`site` `(` $site^ `)`)? (`role` `(` custom<EnumWord>($role)^ `)`)?
    (`kinds` `(` custom<EnumWord>($lhs_kind)^ `,` custom<EnumWord>($rhs_kind) `)`)?
    (`recipe` `(` $recipe^ `)`)? (`kept` `(` $kept^ `)`)?
    (`accumulate` $accumulate^)? (`resume` $resume^)? (`record_amax` `` $record_amax^)?
    `ins` `(` $lhs `,` $rhs `:` type($lhs) `,` type($rhs) `)`
    (`out_scale` `(` $out_scale^ `:` type($out_scale) `)`)?
    (`epilogue_ins` `(` $epilogue_inputs^ `:` type($epilogue_inputs) `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`epilogue` $epilogue^)? (`->` type($results)^)?
  }];
  let extraClassDeclaration = contractionDeclaration # [{
    /// Returns whether the sums depend on the value that the destination holds.
    bool readsInit() { return getAccumulate() || getResume(); }
  }];
  let hasCanonicalizer = 1;
}

def FP8_ScaledMatmulOp : FP8_ContractionOp<"scaled_matmul", [AttrSizedOperandSegments]> {
  let summary = "a matmul of two scaled FP8 tensors";
  let description = [{
    Computes `D = epilogue((lhs_scale_inv · rhs_scale_inv) · Σ lhs · rhs [+ C])`. The
    matmuls are summed in f32: over the whole of K (`fast`), or in parts of
    128 that are added in order (`split`). The two scales are multiplied once,
    the sum is multiplied by their matmul once, and with `accumulate` the value that
    the first `outs` holds, `C`, is added once. Operands may be any mix of E4M3 and E5M2.

    A scale_inv of rank 0 is one scale for the whole operand. Otherwise `lhs_block` (or
    `rhs_block`) gives the extent of a block in each dimension of that operand,
    0 for the whole dimension, and the scale_inv has the operand's rank with
    `ceil(size / extent)` entries per dimension (1 for extent 0).

    E8M0 scales may also be packed, of rank 1: what `fp8.pack_scales` makes of the scales as
    [batch…, rows, K], for targets whose tensor cores read this order (`fp8-pack-scales`).

    The optional `epilogue` region runs once per element of the result. Its arguments
    are the scaled sum (f32) and one element of each of the `epilogue_inputs`, read at
    `epilogue_maps` (in the dimensions of the result); it yields the element of the result.

    Results, in this order, each with its `outs` operand:
    - the matmul; with an `out_scale` it is FP8, cast with that scale;
    - with an `out_scale`, the scale_inv and the amax of the matmul;
    - the amax of each yielded value that `record_amax` lists by its position in the
      yield; position 0 is the matmul itself and not allowed with an `out_scale`. Each is
      `fp8.amax` of the stored result;
    - one extra result for each further value that the region yields, stored or summed
      according to its map at the end of `epilogue_maps`, as in `fp8.quantize`.

    Preconditions: as for `fp8.matmul`; operands are FP8; scale_inv shapes as above; the
    first result is f32, bf16, f16, or FP8 with an `out_scale`.

    Tiling: batch, M and N dimensions, in multiples of blocks. K is not tiled; a matmul
    that records an amax is not tiled at all, because the amax is that of the whole result.

    Scales that differ along K (`recipe` decides their type): with E8M0 scales every
    element is multiplied by its scale_inv, exactly, before the sum; an element that becomes
    larger than any f32 is Inf, except on MX tensor cores, which apply the scales to the
    product of two elements. With f32 scales each
    block of K is summed from 0, in f32, and added as
    `y = fma(p · lhs_scale_inv, rhs_scale_inv, y)`; where only the lhs has blocks that span
    several of its rows, as `y = fma(p · rhs_scale_inv, lhs_scale_inv, y)`. Both operands then
    have one K dimension and one extent along it, or 0.

    Becomes: a packed matmul on decoded operands on the CPU.

    Example:
    ```mlir
    %y = fp8.scaled_matmul site("h0/fc1") role(fprop) fast
        ins(%x, %w : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>)
        scales(%xs, %ws : tensor<f32>, tensor<f32>)
        outs(%init : tensor<8x32xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xbf16>
    %z = fp8.scaled_matmul site("h0/fc2") role(fprop) fast
        ins(%x, %w : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>)
        scales(%xs, %ws : tensor<f32>, tensor<f32>)
        epilogue_ins(%bias : tensor<32xbf16>)
        outs(%init : tensor<8x32xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>],
         epilogue_maps = [affine_map<(d0, d1) -> (d1)>]} epilogue {
      ^bb0(%sum: f32, %b: bf16):
        %r = arith.truncf %sum : f32 to bf16
        %v = arith.addf %r, %b : bf16
        fp8.yield %v : bf16
    } -> tensor<8x32xbf16>
    ```
  }];
  let arguments = (ins
    FP8_Data:$lhs, FP8_Data:$rhs, FP8_Scale:$lhs_scale_inv, FP8_Scale:$rhs_scale_inv,
    Variadic<FP8_Shaped>:$epilogue_inputs, Optional<FP8_F32Shaped>:$out_scale,
    Variadic<FP8_Shaped>:$outs,
    AffineMapArrayAttr:$indexing_maps, FP8_Accumulation:$accumulation,
    OptionalAttr<StrAttr>:$site, OptionalAttr<FP8_Role>:$role,
    OptionalAttr<FP8_RecipeAttrInterface>:$recipe, UnitAttr:$accumulate, OptionalAttr<DenseI64ArrayAttr>:$record_amax,
    OptionalAttr<DenseI64ArrayAttr>:$lhs_block, OptionalAttr<DenseI64ArrayAttr>:$rhs_block,
    OptionalAttr<AffineMapArrayAttr>:$epilogue_maps);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$epilogue);
  let assemblyFormat = [{
    (`site` `(` $site^ `)`)? (`role` `(` custom<EnumWord>($role)^ `)`)? (`recipe` `(` $recipe^ `)`)?
    custom<EnumWord>($accumulation) (`accumulate` $accumulate^)? (`record_amax` `` $record_amax^)?
    `ins` `(` $lhs `,` $rhs `:` type($lhs) `,` type($rhs) `)`
    `scales` `(` $lhs_scale_inv `,` $rhs_scale_inv `:` type($lhs_scale_inv) `,` type($rhs_scale_inv) `)`
    (`out_scale` `(` $out_scale^ `:` type($out_scale) `)`)?
    (`epilogue_ins` `(` $epilogue_inputs^ `:` type($epilogue_inputs) `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`epilogue` $epilogue^)? (`->` type($results)^)?
  }];
  let extraClassDeclaration = contractionDeclaration;
  let hasCanonicalizer = 1;
}

#endif // FP8_DIALECT_FP8_IR_FP8MATMULOPS_TD
