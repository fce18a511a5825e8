// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention as one operation, whose scores need no tensor: fp8.attention, and its backward pass
// fp8.attention_grad.

#ifndef FP8_DIALECT_FP8_IR_FP8ATTENTIONOPS_TD
#define FP8_DIALECT_FP8_IR_FP8ATTENTIONOPS_TD

include "fp8/Dialect/FP8/IR/FP8Attributes.td"

def FP8_FloatTensor : RankedTensorOf<[AnyFloat]>;
def FP8_MatmulSites : TypedArrayAttrBase<FP8_MatmulSiteAttr, "the site of each matmul">;

/// The base of all operations of attention: one map for each operand, in one iteration space.
class FP8_AttentionBaseOp<string mnemonic> : FP8_DpsOp<mnemonic, [AttrSizedOperandSegments]> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  code mapsDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    /// Returns the maps of all operands, in their order.
    ::llvm::SmallVector<::mlir::AffineMap> getIndexingMapsArray() {
      return ::llvm::to_vector(getIndexingMaps().getAsValueRange<::mlir::AffineMapAttr>());
    }
    /// Returns the dimensions by their part in attention. Only valid on a verified operation.
    ::fp8::AttentionDims getAttentionDims() {
      ::llvm::SmallVector<::mlir::AffineMap> maps = getIndexingMapsArray();
      return *::fp8::inferAttentionDims(maps[0], maps[1], maps[2], getOutputMap());
    }
    /// Returns the size of each iteration dimension, ShapedType::kDynamic if unknown.
    ::llvm::SmallVector<int64_t> getStaticLoopRanges();
    /// Returns the maps of `inputs`.
    ::llvm::SmallVector<::mlir::AffineMap> getInputMaps() {
      unsigned first = getInputs().empty() ? 0 : getInputs().getBeginOperandIndex();
      ::llvm::SmallVector<::mlir::AffineMap> maps = getIndexingMapsArray();
      return ::llvm::to_vector(::llvm::ArrayRef(maps).slice(first, getInputs().size()));
    }
    /// Returns the maps of `outs`.
    ::llvm::SmallVector<::mlir::AffineMap> getOutMaps() {
      ::llvm::SmallVector<::mlir::AffineMap> maps = getIndexingMapsArray();
      return ::llvm::to_vector(::llvm::ArrayRef(maps).take_back(getOuts().size()));
    }
  }];
}

/// The base of operations with the program's own code on rows: matmuls, and between them a region that computes rows.
class FP8_RowAttentionOp<string mnemonic> : FP8_AttentionBaseOp<mnemonic> {
  let regions = (region AnyRegion:$rows);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$operands, "::mlir::ValueRange":$inputs,
      "::mlir::ValueRange":$outs, "::llvm::ArrayRef<::mlir::AffineMap>":$maps, "::mlir::ArrayAttr":$sites,
      "::mlir::AffineMapAttr":$visible_keys)>];
  code attentionDeclaration = mapsDeclaration # [{
    /// Returns the argument of the region for row `i` that is a matmul's result.
    ::mlir::BlockArgument getMatmulRow(unsigned i) {
      return getRows().getArgument(getAttentionDims().outer.size() + i);
    }
    /// Returns the argument of the region for `inputs[i]`.
    ::mlir::BlockArgument getInputPart(unsigned i) {
      return getRows().getArgument(getRows().getNumArguments() - getInputs().size() + i);
    }
    ::fp8::YieldOp getYield();
  }];
}

def FP8_AttentionOp : FP8_RowAttentionOp<"attention"> {
  let summary = "scores of queries and keys, code on each row of scores, and the product of that with values";
  let description = [{
    Computes, as one operation,

        S[outer, keys] = Σ query · key     (over depth)
        P[outer, keys] = rows(S[outer, :])
        O[outer, width] = Σ P · value      (over keys)

    over the iteration space of the `indexing_maps`, one per operand. Its dimensions are:
    - **keys**: in key and value, not in query;
    - **depth**: in query and key, not in value and result;
    - **width**: in value and result, in neither query nor key;
    - **outer**: all others, in query or key. The result has each of them, and there is a row of scores for
      each of their indices: batch, heads, queries.

    Key and value may lack outer dimensions, so that heads of a group, or all heads, read one key. Layouts are
    part of the maps. There may be several dimensions of each kind; depth and width may differ in size.

    The region `rows` is the program's own code from a row of scores to a row of probabilities, in its own
    order and types: scale, mask, softmax, dropout, casts. Its arguments are the index of the row in each outer
    dimension, in order, then the row of scores, then the slice of each of the `inputs` (`row_ins`) along keys,
    in the order of its map; a scalar if the map has no key dimension. The region uses linalg operations on
    rows, `linalg.index` for the index of a key, and scalars. It yields the row of probabilities, and for each further
    result a row or a scalar.

    Matmuls are those of `fp8.matmul`: summed in f32 (in f64 if an operand is f64) in the order of the reduction
    dimensions, and rounded once. The element type of the region's row of scores is the type that scores are
    rounded to, and probabilities are multiplied in the type that the region yields. So the operation is the
    program that it stands for, bit for bit. A region of a score and an implied softmax could not be that: programs
    differ in the type, order, guards and casts of a softmax. Targets that compute online read maximum, exponential
    and sum from the region's linalg operations; the element-wise code before the maximum is the modification of
    a score.

    Results: the output, then further results, each with its `outs` operand. A further result is a row (its map
    has all outer and key dimensions) or a statistic of the row (all outer dimensions), as a maximum or sum that
    backward reads.

    `sites`: what the two matmuls are in the program, for the report.

    `visible_keys`: the keys that a row sees at most, from the first number on and before the second one:
    `(b, h, i, j, d) -> (0, i + 1)` under a causal mask, `(b, h, i, j, d) -> (i - 127, i + 1)` in a window of 128 keys,
    of which early rows see fewer. It states that the other keys take no part in the row while all scores are within ±2^24:
    they change no reduction, and the row is zero there. So code may leave them out. Where a sum underflows, that may
    turn -0 into +0 or the other way round. `visible_if`: the number of an input, one i1; the statement holds only where
    that is true, as for a bias that nothing bounds when the program is compiled, or for tokens that may be padding.

    Preconditions: maps of query, key, value and output are projected permutations; the map of an input has key
    dimensions as they are, and functions of outer dimensions; sizes of one dimension agree.

    Becomes: `fp8-decompose-attention` makes matmuls and a loop over the rows of it.

    Example:
    ```mlir
    %o, %max = fp8.attention
        ins(%q, %k, %v : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>)
        outs(%init, %stat : tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>)
        {indexing_maps = [affine_map<(b, h, i, j, d, e) -> (b, i, h, d)>, affine_map<(b, h, i, j, d, e) -> (b, j, h, d)>,
                          affine_map<(b, h, i, j, d, e) -> (b, j, h, e)>, affine_map<(b, h, i, j, d, e) -> (b, i, h, e)>,
                          affine_map<(b, h, i, j, d, e) -> (b, h, i)>]} rows {
      ^bb0(%b: index, %h: index, %i: index, %s: tensor<8xf32>):
        %lowest = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0.0 : f32
        %scalar = tensor.empty() : tensor<f32>
        %row = tensor.empty() : tensor<8xf32>
        %masked = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>],
                                  iterator_types = ["parallel"]}
            ins(%s : tensor<8xf32>) outs(%row : tensor<8xf32>) {
          ^bb0(%in: f32, %out: f32):
            %j = linalg.index 0 : index
            %later = arith.cmpi ugt, %j, %i : index
            %m = arith.select %later, %lowest, %in : f32
            linalg.yield %m : f32
        } -> tensor<8xf32>
        %below = linalg.fill ins(%lowest : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
        %largest = linalg.reduce {arith.maximumf} ins(%masked : tensor<8xf32>) outs(%below : tensor<f32>) dimensions = [0]
        %top = tensor.extract %largest[] : tensor<f32>
        %exps = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>],
                                iterator_types = ["parallel"]}
            ins(%masked : tensor<8xf32>) outs(%row : tensor<8xf32>) {
          ^bb0(%in: f32, %out: f32):
            %x = arith.subf %in, %top : f32
            %y = math.exp %x : f32
            linalg.yield %y : f32
        } -> tensor<8xf32>
        %none = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
        %total = linalg.reduce {arith.addf} ins(%exps : tensor<8xf32>) outs(%none : tensor<f32>) dimensions = [0]
        %sum = tensor.extract %total[] : tensor<f32>
        %p = tensor.empty() : tensor<8xbf16>
        %probabilities = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>],
                                         iterator_types = ["parallel"]}
            ins(%exps : tensor<8xf32>) outs(%p : tensor<8xbf16>) {
          ^bb0(%in: f32, %out: bf16):
            %y = arith.divf %in, %sum : f32
            %z = arith.truncf %y : f32 to bf16
            linalg.yield %z : bf16
        } -> tensor<8xbf16>
        fp8.yield %probabilities, %top : tensor<8xbf16>, f32
    } -> tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>
    ```
  }];
  let arguments = (ins FP8_FloatTensor:$query, FP8_FloatTensor:$key, FP8_FloatTensor:$value,
    Variadic<AnyRankedTensor>:$inputs, Variadic<AnyRankedTensor>:$outs,
    AffineMapArrayAttr:$indexing_maps, OptionalAttr<FP8_MatmulSites>:$sites,
    OptionalAttr<AffineMapAttr>:$visible_keys, OptionalAttr<I64Attr>:$visible_if);
  let assemblyFormat = [{
    `ins` `(` $query `,` $key `,` $value `:` type($query) `,` type($key) `,` type($value) `)`
    (`row_ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict `rows` $rows (`->` type($results)^)?
  }];
  let extraClassDeclaration = attentionDeclaration # [{
    static constexpr unsigned kNumMatmuls = 2;    ///< scores, output
    static constexpr unsigned kNumMatmulRows = 1; ///< the row of scores
    static constexpr unsigned kNumMainResults = 1; ///< results before the further ones: the output
    /// Returns the map of the output.
    ::mlir::AffineMap getOutputMap() { return getIndexingMapsArray()[3 + getInputs().size()]; }
  }];
}

def FP8_AttentionGradOp : FP8_RowAttentionOp<"attention_grad"> {
  let summary = "the backward pass of attention, which computes its scores again";
  let description = [{
    Computes, as one operation,

        S[outer, keys] = Σ query · key            (over depth)
        G[outer, keys] = Σ output_grad · value    (over width)
        P[outer, keys], D[outer, keys] = rows(S[outer, :], G[outer, :])
        query_grad = Σ D · key                    (over keys)
        key_grad = Σ D · query                    (over queries)
        value_grad = Σ P · output_grad            (over queries)

    with dimensions, maps, inputs and sums as in `fp8.attention`; `output_grad` has the part of its output. A
    gradient is summed over the dimensions that its map lacks, in the order of the iteration space: the map of
    `key_grad` is that of the key, or it has outer dimensions beside those, where the program sums over the heads
    of a group itself. The order of the dimensions is that in which the program's matmuls sum.

    The region `rows` is the program's own code from a row of scores S and a row of gradients of the
    probabilities G to the row P that the gradient of the value is made of and the row D, the gradient of the
    raw scores. Its arguments are the index of the row in each outer dimension, the row of scores, the row of
    gradients, then the parts of the `inputs`: statistics of the forward pass, masks, biases. It yields P, D, and
    for each further result, such as the gradient of a bias, a row or a scalar.

    Results: the gradients of query, key and value, then further results as in `fp8.attention`. Where the map of a
    further row lacks outer dimensions, it is the sum over them, from zero on, in the order of the iteration space
    and in its element type: the gradient of a bias that all batches share has the map `(b, h, i, j, d, e) -> (h, i, j)`.

    `sites`: what the five matmuls are in the program, in the order S, G, value_grad, query_grad, key_grad.

    `visible_keys`: as in `fp8.attention`, for scores within ±2^24 and gradients G within ±2^40. Sums of further rows
    leave out the other keys, too.

    Preconditions: as for `fp8.attention`; each gradient has the dimensions of its tensor.

    Becomes: `fp8-decompose-attention` makes matmuls and a loop over the rows of it.

    Example:
    ```mlir
    %dq, %dk, %dv = fp8.attention_grad
        ins(%q, %k, %v, %do : tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>)
        row_ins(%max, %sum : tensor<4x8xf32>, tensor<4x8xf32>)
        outs(%init, %init, %init : tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>)
        {indexing_maps = [affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                          affine_map<(b, i, j, d, e) -> (b, j, e)>, affine_map<(b, i, j, d, e) -> (b, i, e)>,
                          affine_map<(b, i, j, d, e) -> (b, i)>, affine_map<(b, i, j, d, e) -> (b, i)>,
                          affine_map<(b, i, j, d, e) -> (b, i, d)>, affine_map<(b, i, j, d, e) -> (b, j, d)>,
                          affine_map<(b, i, j, d, e) -> (b, j, e)>]} rows {
      ^bb0(%b: index, %i: index, %s: tensor<8xf32>, %g: tensor<8xf32>, %m: f32, %l: f32):
        %zero = arith.constant 0.0 : f32
        %scalar = tensor.empty() : tensor<f32>
        %row = tensor.empty() : tensor<8xf32>
        %p = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>],
                             iterator_types = ["parallel"]}
            ins(%s : tensor<8xf32>) outs(%row : tensor<8xf32>) {
          ^bb0(%in: f32, %out: f32):
            %x = arith.subf %in, %m : f32
            %y = math.exp %x : f32
            %z = arith.divf %y, %l : f32
            linalg.yield %z : f32
        } -> tensor<8xf32>
        %none = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
        %total = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>, affine_map<(j) -> ()>],
                                 iterator_types = ["reduction"]}
            ins(%p, %g : tensor<8xf32>, tensor<8xf32>) outs(%none : tensor<f32>) {
          ^bb0(%x: f32, %y: f32, %acc: f32):
            %xy = arith.mulf %x, %y : f32
            %z = arith.addf %acc, %xy : f32
            linalg.yield %z : f32
        } -> tensor<f32>
        %sum_pg = tensor.extract %total[] : tensor<f32>
        %ds = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>, affine_map<(j) -> (j)>],
                              iterator_types = ["parallel"]}
            ins(%p, %g : tensor<8xf32>, tensor<8xf32>) outs(%row : tensor<8xf32>) {
          ^bb0(%x: f32, %y: f32, %out: f32):
            %centered = arith.subf %y, %sum_pg : f32
            %z = arith.mulf %x, %centered : f32
            linalg.yield %z : f32
        } -> tensor<8xf32>
        fp8.yield %p, %ds : tensor<8xf32>, tensor<8xf32>
    } -> tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>
    ```
  }];
  let arguments = (ins FP8_FloatTensor:$query, FP8_FloatTensor:$key, FP8_FloatTensor:$value,
    FP8_FloatTensor:$output_grad, Variadic<AnyRankedTensor>:$inputs, Variadic<AnyRankedTensor>:$outs,
    AffineMapArrayAttr:$indexing_maps, OptionalAttr<FP8_MatmulSites>:$sites,
    OptionalAttr<AffineMapAttr>:$visible_keys, OptionalAttr<I64Attr>:$visible_if);
  let assemblyFormat = [{
    `ins` `(` $query `,` $key `,` $value `,` $output_grad `:`
              type($query) `,` type($key) `,` type($value) `,` type($output_grad) `)`
    (`row_ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict `rows` $rows (`->` type($results)^)?
  }];
  let extraClassDeclaration = attentionDeclaration # [{
    static constexpr unsigned kNumMatmuls = 5;    ///< S, G, value_grad, query_grad, key_grad
    static constexpr unsigned kNumMatmulRows = 2; ///< the rows of scores and of their gradients
    static constexpr unsigned kNumMainResults = 3; ///< the gradients of query, key and value
    /// Returns the map of the gradient of the output, which is that of the output.
    ::mlir::AffineMap getOutputMap() { return getIndexingMapsArray()[3]; }
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8ATTENTIONOPS_TD
