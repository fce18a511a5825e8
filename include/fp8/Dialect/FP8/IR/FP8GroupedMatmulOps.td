// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls of groups of rows (mixture of experts): fp8.grouped_matmul and fp8.scaled_grouped_matmul.

#ifndef FP8_DIALECT_FP8_IR_FP8GROUPEDMATMULOPS_TD
#define FP8_DIALECT_FP8_IR_FP8GROUPEDMATMULOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attributes.td"

def FP8_GroupEnds : AnyTypeOf<[RankedTensorOf<[I32, I64]>, MemRefOf<[I32, I64]>], "ranked tensor or memref of i32 or i64">;

def FP8_GroupRowsOp : Op<FP8_Dialect, "group_rows", [Pure,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "rows divided among groups, each group with zeros in place of the rows of the others";
  let description = [{
    Computes `result[g, t, k] = rows[t, k]` if row `t` belongs to group `g`, else 0.

    Group `g` has the rows from the end of group `g - 1` (0 for the first) up to, without,
    `group_ends[g]`. Ends below the end of a group before are taken as equal to it, ends beyond the
    last row as the number of rows. Rows after the last group belong to none.

    A framework writes the matmuls of a mixture of experts with this operation as their
    operand. It takes no memory: `fp8-form-grouped-matmuls` turns it and the matmul into a
    grouped matmul, which reads the rows in place.

    Preconditions: `rows` [T, K] of floats; `group_ends` [G] of i32 or i64.

    Becomes: part of `fp8.grouped_matmul` or `fp8.scaled_grouped_matmul`; or, where no matmul
    reads it, a linalg.generic.

    Example:
    ```mlir
    %g = fp8.group_rows ins(%x, %ends : tensor<64x16xf32>, tensor<4xi32>) -> tensor<4x64x16xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$rows, RankedTensorOf<[I32, I64]>:$group_ends);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = "`ins` `(` $rows `,` $group_ends `:` type($rows) `,` type($group_ends) `)` attr-dict `->` type($result)";
  let extraClassDeclaration = [{
    /// Returns the type [G, T, K] of the result.
    static ::mlir::RankedTensorType getGroupedType(::mlir::RankedTensorType rows, ::mlir::RankedTensorType ends);
  }];
  let hasVerifier = 1;
}

/// The base of fp8.grouped_matmul and fp8.scaled_grouped_matmul.
class FP8_GroupedOp<string mnemonic> : FP8_DpsOp<mnemonic> {
  let skipDefaultBuilders = 1; // of up to 15 arguments
  let builders = [
    // All operands in their order; the destination, the last, tells the type of the result.
    OpBuilder<(ins "::mlir::ValueRange":$operands, "const Properties &":$properties), [{
      if (::llvm::isa<::mlir::TensorType>(operands.back().getType()))
        $_state.addTypes(operands.back().getType());
      $_state.addOperands(operands);
      $_state.getOrAddProperties<Properties>() = properties;
    }]>];
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    /// Returns the indexing maps of the two operands and the result.
    ::llvm::SmallVector<::mlir::AffineMap> getIndexingMapsArray() {
      return ::llvm::to_vector(getIndexingMaps().getAsValueRange<::mlir::AffineMapAttr>());
    }
    /// Returns which dimension is the groups, and which the rows. Only valid on a verified operation.
    ::fp8::GroupedDims getGroupedDims() { return *::fp8::inferGroupedDims(getIndexingMapsArray()); }
    /// Returns the M, N and K dimensions of the matmul of each group, as those of a matmul of all rows.
    ::fp8::ContractionDims getContractionDims();
    /// Returns the size of each iteration dimension, ShapedType::kDynamic if unknown.
    ::llvm::SmallVector<int64_t> getStaticLoopRanges();
  }];
}

def FP8_GroupedMatmulOp : FP8_GroupedOp<"grouped_matmul"> {
  let summary = "matmuls of groups of rows with a matrix each, in high precision";
  let description = [{
    One matmul for each group of rows (expert), as `jax.lax.ragged_dot` and its gradients.
    The iteration space of `indexing_maps` has four dimensions: groups, rows, and two others. The
    dimension of the groups occurs in one map only, and the dimension of the rows in the other two:
    - forward and input gradient: an operand has a matrix per group, [G, K, N] in any
      order, and `C[t, n] = Σ_k A[t, k] · B[g, k, n]` for the rows `t` of group `g`; rows that
      belong to no group are 0;
    - weight gradient: the result has a matrix per group, and
      `C[g, m, n] = Σ_t A[t, m] · B[t, n]` over the rows `t` of group `g`; 0 for an empty group.

    Groups are given as in `fp8.group_rows`, and are read when the matmul runs: their sizes change
    neither code nor shapes. The work is that of one matmul of all rows.

    Sums, `site`, `role` and `kept` are as in `fp8.matmul`.

    Preconditions: maps as above, each a projected permutation; the three of them without the groups
    are those of one matmul [M, K] · [K, N]; sizes of one dimension agree, `group_ends` has one entry per
    group; operands and result are of floats of at most 32 bits.

    Becomes: one packed f32 matmul per group on the CPU; one launch for all groups on a GPU, by tensor cores
    or, in f32, a thread per element.

    Example:
    ```mlir
    %y = fp8.grouped_matmul site("moe/up") role(fprop) kept("--recipe=none")
        ins(%x, %w, %ends : tensor<64x16xbf16>, tensor<4x16x32xbf16>, tensor<4xi32>)
        outs(%init : tensor<64x32xbf16>)
        {indexing_maps = [affine_map<(t, n, k, g) -> (t, k)>,
                          affine_map<(t, n, k, g) -> (g, k, n)>,
                          affine_map<(t, n, k, g) -> (t, n)>]} -> tensor<64x32xbf16>
    %dw = fp8.grouped_matmul site("moe/up") role(wgrad) kept("--recipe=none")
        ins(%x, %dy, %ends : tensor<64x16xbf16>, tensor<64x32xbf16>, tensor<4xi32>)
        outs(%dw_init : tensor<4x16x32xbf16>)
        {indexing_maps = [affine_map<(g, k, n, t) -> (t, k)>,
                          affine_map<(g, k, n, t) -> (t, n)>,
                          affine_map<(g, k, n, t) -> (g, k, n)>]} -> tensor<4x16x32xbf16>
    ```
  }];
  let arguments = (ins
    FP8_FloatShaped:$lhs, FP8_FloatShaped:$rhs, FP8_GroupEnds:$group_ends, FP8_FloatShaped:$outs,
    AffineMapArrayAttr:$indexing_maps,
    OptionalAttr<StrAttr>:$site, OptionalAttr<FP8_Role>:$role, OptionalAttr<StrAttr>:$kept);
  let assemblyFormat = [{
    (`site` `(` $site^ `)`)? (`role` `(` custom<EnumWord>($role)^ `)`)? (`kept` `(` $kept^ `)`)?
    `ins` `(` $lhs `,` $rhs `,` $group_ends `:` type($lhs) `,` type($rhs) `,` type($group_ends) `)`
    `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` type($results)^)?
  }];
}

def FP8_ScaledGroupedMatmulOp : FP8_GroupedOp<"scaled_grouped_matmul"> {
  let summary = "matmuls of groups of rows with a matrix each, of scaled FP8 tensors";
  let description = [{
    `fp8.grouped_matmul` of FP8 operands: the sums of group `g` are multiplied by
    `lhs_scale_inv · rhs_scale_inv`. `fast` and `split` are as in `fp8.scaled_matmul`; a weight
    gradient is split in parts of 128 rows, counted from the first row of each group.

    Scales are given as in `fp8.scaled_matmul`: of rank 0, one for the whole operand; else
    `lhs_block` or `rhs_block` has the extents of a block, as in [1, 0, 0] for one scale per group
    of a weight [G, K, N], [1, 0] for one per row, or [1, 128] for one per row and 128 along K. E8M0
    scales may be packed, of rank 1, the groups as batches.

    Preconditions: as for `fp8.grouped_matmul`; operands are FP8; scale_inv shapes as above; D of f32,
    bf16 or f16.

    Becomes: one packed matmul of decoded operands per group on the CPU; one launch for all groups on
    a GPU.

    Example:
    ```mlir
    %y = fp8.scaled_grouped_matmul site("moe/up") role(fprop) fast
        ins(%x, %w, %ends : tensor<64x16xf8E4M3FN>, tensor<4x16x32xf8E4M3FN>, tensor<4xi32>)
        scales(%xs, %ws : tensor<f32>, tensor<4x1x1xf32>)
        outs(%init : tensor<64x32xbf16>)
        {indexing_maps = [affine_map<(t, n, k, g) -> (t, k)>,
                          affine_map<(t, n, k, g) -> (g, k, n)>,
                          affine_map<(t, n, k, g) -> (t, n)>],
         rhs_block = array<i64: 1, 0, 0>} -> tensor<64x32xbf16>
    ```
  }];
  let arguments = (ins
    FP8_Data:$lhs, FP8_Data:$rhs, FP8_GroupEnds:$group_ends,
    FP8_Scale:$lhs_scale_inv, FP8_Scale:$rhs_scale_inv, FP8_FloatShaped:$outs,
    AffineMapArrayAttr:$indexing_maps, FP8_Accumulation:$accumulation,
    OptionalAttr<StrAttr>:$site, OptionalAttr<FP8_Role>:$role, OptionalAttr<FP8_RecipeAttrInterface>:$recipe,
    OptionalAttr<DenseI64ArrayAttr>:$lhs_block, OptionalAttr<DenseI64ArrayAttr>:$rhs_block);
  let assemblyFormat = [{
    (`site` `(` $site^ `)`)? (`role` `(` custom<EnumWord>($role)^ `)`)? (`recipe` `(` $recipe^ `)`)?
    custom<EnumWord>($accumulation)
    `ins` `(` $lhs `,` $rhs `,` $group_ends `:` type($lhs) `,` type($rhs) `,` type($group_ends) `)`
    `scales` `(` $lhs_scale_inv `,` $rhs_scale_inv `:` type($lhs_scale_inv) `,` type($rhs_scale_inv) `)`
    `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` type($results)^)?
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8GROUPEDMATMULOPS_TD
