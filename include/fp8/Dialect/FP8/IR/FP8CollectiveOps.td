// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives: operations in which all ranks of a program take part.

#ifndef FP8_DIALECT_FP8_IR_FP8COLLECTIVEOPS_TD
#define FP8_DIALECT_FP8_IR_FP8COLLECTIVEOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attributes.td"

/// A collective from `input` to `outs`, with `arguments` of its own.
class FP8_CollectiveOp<string mnemonic, dag ownArguments> : FP8_DpsOp<mnemonic, [
    DeclareOpInterfaceMethods<FP8_CollectiveOpInterface, ["getStep"]>]> {
  let arguments = !con((ins FP8_Shaped:$input, FP8_Shaped:$outs), ownArguments,
    (ins DenseI64ArrayAttr:$grid, DenseI64ArrayAttr:$axes, OptionalAttr<StrAttr>:$label));
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }";
}

def FP8_AllReduceOp : FP8_CollectiveOp<"all_reduce", (ins FP8_ReduceKind:$kind)> {
  let summary = "combine a tensor over all ranks of a group";
  let description = [{
    Every rank receives the elementwise sum, maximum, minimum, mean or matmul of the
    tensors of all ranks of its group. The ranks lie on the grid `on`, row by row; those
    that differ only along `axes` are a group. Sums are taken in the order of ranks, from
    the first on, in f32 for narrower floating-point types; the mean is the sum times
    1 / size of the group. A NaN of any rank is the maximum and the minimum. Every rank
    receives the same bits. In a group of one rank the result is the input.

    Preconditions: input and result have one type of numbers, not FP8 and not bool; every
    rank runs the same collectives in the same order.

    Becomes: `fp8.start_collective` and `fp8.wait_collective`, calls of the communicator.

    Example:
    ```mlir
    %r = fp8.all_reduce max on(4x2) axes [0, 1] of("amaxes") ins(%v : tensor<5xf32>)
        outs(%init : tensor<5xf32>) -> tensor<5xf32>
    %m = fp8.all_reduce mean on(?) axes [0] ins(%g : tensor<8x16xbf16>)
        outs(%i : tensor<8x16xbf16>) -> tensor<8x16xbf16>
    ```
  }];
  let assemblyFormat = [{
    custom<EnumWord>($kind) `on` `(` custom<DimensionList>($grid) `)` `axes` $axes (`of` `(` $label^ `)`)?
    `ins` `(` $input `:` type($input) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`->` type($results)^)?
  }];
  let hasCanonicalizer = 1;
}

def FP8_AllGatherOp : FP8_CollectiveOp<"all_gather", (ins I64Attr:$dim)> {
  let summary = "concatenate the shards of all ranks";
  let description = [{
    Concatenates the tensors of all ranks of the group along dimension `dim`, in the order
    of ranks. FP8 tensors travel as bytes; block scales are gathered before they are
    packed.

    Preconditions: element types and ranks of tensors agree; `dim` is a dimension; the
    result's size along `dim` is the input's times the size of the group, all other sizes
    agree.

    Becomes: `fp8.start_collective` of dimension 0; `fp8-expand-collectives` transposes
    the result for another `dim`.

    Example:
    ```mlir
    %w = fp8.all_gather dim 0 on(4) axes [0] ins(%shard : tensor<4x8xf8E4M3FN>)
        outs(%init : tensor<16x8xf8E4M3FN>) -> tensor<16x8xf8E4M3FN>
    ```
  }];
  let assemblyFormat = [{
    `dim` $dim `on` `(` custom<DimensionList>($grid) `)` `axes` $axes (`of` `(` $label^ `)`)?
    `ins` `(` $input `:` type($input) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`->` type($results)^)?
  }];
}

def FP8_ReduceScatterOp : FP8_CollectiveOp<"reduce_scatter", (ins FP8_ReduceKind:$kind, I64Attr:$dim)> {
  let summary = "combine a tensor over all ranks of a group, and leave each rank a part";
  let description = [{
    Rank r of the group receives part r, along dimension `dim`, of what `fp8.all_reduce`
    gives.

    Preconditions: as of `fp8.all_reduce`; the input's size along `dim` is the result's
    times the size of the group, all other sizes agree.

    Becomes: `fp8.start_collective` of dimension 0; `fp8-expand-collectives` transposes
    the input for another `dim`.

    Example:
    ```mlir
    %part = fp8.reduce_scatter sum dim 0 on(4) axes [0] ins(%g : tensor<16x8xf32>)
        outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let assemblyFormat = [{
    custom<EnumWord>($kind) `dim` $dim `on` `(` custom<DimensionList>($grid) `)` `axes` $axes
    (`of` `(` $label^ `)`)? `ins` `(` $input `:` type($input) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`->` type($results)^)?
  }];
}

def FP8_BroadcastOp : FP8_CollectiveOp<"broadcast", (ins I32Attr:$root)> {
  let summary = "the tensor of one rank on all ranks of its group";
  let description = [{
    Every rank receives the tensor of rank `root` of its group.

    Preconditions: input and result have one type; `root` is a rank of the group.

    Becomes: `fp8.start_collective`.

    Example:
    ```mlir
    %all = fp8.broadcast 0 on(2x4) axes [1] ins(%v : tensor<8xf32>) outs(%init : tensor<8xf32>)
        -> tensor<8xf32>
    ```
  }];
  let assemblyFormat = [{
    $root `on` `(` custom<DimensionList>($grid) `)` `axes` $axes (`of` `(` $label^ `)`)?
    `ins` `(` $input `:` type($input) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`->` type($results)^)?
  }];
}

def FP8_ShiftOp : FP8_CollectiveOp<"shift", (ins I32Attr:$offset)> {
  let summary = "the tensor of a neighbour in the group";
  let description = [{
    Every rank receives the tensor of the rank that is `offset`, which may be negative,
    before it in the group, round its ends.

    Preconditions: input and result have one type.

    Becomes: `fp8.start_collective`.

    Example:
    ```mlir
    %previous = fp8.shift 1 on(4) axes [0] ins(%v : tensor<8xf32>) outs(%init : tensor<8xf32>)
        -> tensor<8xf32>
    ```
  }];
  let assemblyFormat = [{
    $offset `on` `(` custom<DimensionList>($grid) `)` `axes` $axes (`of` `(` $label^ `)`)?
    `ins` `(` $input `:` type($input) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`->` type($results)^)?
  }];
}

def FP8_AllToAllOp : FP8_CollectiveOp<"all_to_all", (ins)> {
  let summary = "every rank sends a part to every rank";
  let description = [{
    Part r of the input, along dimension 0, goes to rank r of the group; the result is the
    parts received, in the order of ranks.

    Preconditions: input and result have one type; the size of dimension 0 is a multiple of
    the size of the group.

    Becomes: `fp8.start_collective`.

    Example:
    ```mlir
    %r = fp8.all_to_all on(4) axes [0] ins(%v : tensor<8x2xf32>) outs(%init : tensor<8x2xf32>)
        -> tensor<8x2xf32>
    ```
  }];
  let assemblyFormat = [{
    `on` `(` custom<DimensionList>($grid) `)` `axes` $axes (`of` `(` $label^ `)`)?
    `ins` `(` $input `:` type($input) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict
    (`->` type($results)^)?
  }];
}

def FP8_RankOp : Op<FP8_Dialect, "rank", [Pure]> {
  let summary = "the number of this rank";
  let description = [{
    Returns the number of this rank, from 0, among all ranks of the program.

    Preconditions: none.

    Becomes: the `rank` of the communicator; 0 without one.

    Example:
    ```mlir
    %r = fp8.rank
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def FP8_RankCountOp : Op<FP8_Dialect, "rank_count", [Pure]> {
  let summary = "the number of ranks of the program";
  let description = [{
    Returns the number of all ranks of the program.

    Preconditions: none.

    Becomes: the `size` of the communicator; 1 without one.

    Example:
    ```mlir
    %n = fp8.rank_count
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// After bufferization: a collective in two halves, with other work between them
//===----------------------------------------------------------------------===//

def FP8_StartCollectiveOp : Op<FP8_Dialect, "start_collective", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "start a collective, without waiting for it";
  let description = [{
    Starts a collective with the elements of `send`, and returns its ticket. Until
    `fp8.wait_collective` nothing writes `send` and nothing touches `receive`. All ranks of
    a group start the same collectives in the same order. `root` is the rank of a broadcast
    or the offset of a shift, else 0; `reduction` is `sum` where nothing is reduced.

    Preconditions: buffers without gaps, in row-major order, which are one and the same or
    do not overlap.

    Becomes: a call of the communicator's `start` (`fp8-lower-collectives`).

    Example:
    ```mlir
    %t = fp8.start_collective all_reduce sum root 0 on(4) axes [0] of("w1")
        from(%g : memref<8xf32>) to(%sum : memref<8xf32>)
    ```
  }];
  let arguments = (ins AnyMemRef:$send, AnyMemRef:$receive, FP8_CollectiveKind:$kind,
    FP8_ReduceKind:$reduction, I32Attr:$root, DenseI64ArrayAttr:$grid, DenseI64ArrayAttr:$axes,
    StrAttr:$label);
  let results = (outs I64:$ticket);
  let assemblyFormat = [{
    custom<EnumWord>($kind) custom<EnumWord>($reduction) `root` $root
    `on` `(` custom<DimensionList>($grid) `)` `axes` $axes `of` `(` $label `)`
    `from` `(` $send `:` type($send) `)` `to` `(` $receive `:` type($receive) `)` attr-dict
  }];
  let hasVerifier = 1;
}

def FP8_WaitCollectiveOp : Op<FP8_Dialect, "wait_collective", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "wait until a collective is complete";
  let description = [{
    Waits for the collective of `ticket`, whose buffers are `send` and `receive`.

    Preconditions: every ticket is waited for once.

    Becomes: a call of the communicator's `wait` (`fp8-lower-collectives`).

    Example:
    ```mlir
    %t = fp8.start_collective all_reduce sum root 0 on(4) axes [0] of("w1")
        from(%g : memref<8xf32>) to(%sum : memref<8xf32>)
    fp8.wait_collective %t from(%g : memref<8xf32>) to(%sum : memref<8xf32>)
    ```
  }];
  let arguments = (ins I64:$ticket, AnyMemRef:$send, AnyMemRef:$receive);
  let assemblyFormat = [{
    $ticket `from` `(` $send `:` type($send) `)` `to` `(` $receive `:` type($receive) `)` attr-dict
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8COLLECTIVEOPS_TD
