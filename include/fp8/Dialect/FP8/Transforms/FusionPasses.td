// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stage 3: code that reads and writes whole tensors moves into adjacent casts and
// matmuls if that saves memory traffic. Included by Passes.td.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_FUSIONPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_FUSIONPASSES_TD

include "mlir/Pass/PassBase.td"

def FuseEpilogues : Pass<"fp8-fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "fuse readers of a matmul's result into its epilogue";
  let description = [{
    Before: matmuls, in FP8 or kept in high precision, write their result; elementwise
    `linalg.generic` operations, `fp8.quantize` and `fp8.amax` read it.
    After: a reader of the result is in the `epilogue` region of the matmul if all its
    other operands are computed before the matmul: bias, activation, residual, gate, cast.
    - A quantize whose scale is known before the matmul (delayed scaling) gives the matmul
      an FP8 result. If the scale depends on the result itself (current scaling), the
      matmul records the amax while it writes the result.
    - A result with other readers is stored as an extra result, or as the first result if
      it is the one to cast or the only one that is read.
    - Of the readers of an extra result, the amax moves into the epilogue as well, and so
      does code whose result is cast directly: with a scale of its own, or with a known
      scale if nothing else reads the extra result.

    A reader in the epilogue no longer reads the result from memory, so traffic never
    rises. The region rounds to the result's type first, as the program does: no bit
    changes.

    Not fused: readers through a reshape (`fp8-fuse-elementwise` moves reshapes behind such
    readers), bodies with a gather, quantizes of sums that are accumulated, matmuls of f64,
    and readers that would give the loop more inputs than the target allows (16 on the CPU).

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-fuse-epilogues))'
    #id = affine_map<(i, j) -> (i, j)>
    func.func @f(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>,
                 %b: tensor<16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
        scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      %z = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id],
                           iterator_types = ["parallel", "parallel"]}
          ins(%y, %b : tensor<4x16xbf16>, tensor<16xbf16>) outs(%i : tensor<4x16xbf16>) {
        ^bb0(%e: bf16, %c: bf16, %o: bf16):
          %v = arith.addf %e, %c : bf16
          linalg.yield %v : bf16
      } -> tensor<4x16xbf16>
      return %z : tensor<4x16xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>,
                 %b: tensor<16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %z = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
        scales(%s, %s : tensor<f32>, tensor<f32>) epilogue_ins(%b : tensor<16xbf16>)
        outs(%i : tensor<4x16xbf16>)
        {epilogue_maps = [affine_map<(i, j) -> (j)>],
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} epilogue {
        ^bb0(%sum: f32, %c: bf16):
          %e = arith.truncf %sum : f32 to bf16
          %v = arith.addf %e, %c : bf16
          fp8.yield %v : bf16
      } -> tensor<4x16xbf16>
      return %z : tensor<4x16xbf16>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
}

def FuseAttention : Pass<"fp8-fuse-attention", "::mlir::func::FuncOp"> {
  let summary = "make attention, and its backward pass, one operation each";
  let description = [{
    Before: matmuls are `fp8.matmul`; forward and backward are one function.
    After: two matmuls with a softmax between them, along the dimension that the second one sums over, are one
    `fp8.attention`, and the five matmuls of their backward pass one `fp8.attention_grad`. No tensor has an element for
    each score any more. The regions are the program's own code on a row, operation by operation, so results are the
    same bits. Statistics of rows that the backward pass needs are results of the forward operation. Gradients of
    scores that something else needs, or their sum over batches or heads, as the gradient of a bias is, are results of
    the backward operation.

    Keys that a mask hides are stated (`visible_keys`), with the condition that the call has to find (`visible_if`), as
    that no token is padding. Key and value that the program repeats for the heads of a group are read as they are
    before: a dimension of heads becomes two, and the maps of key and value lack the second.

    The code around the softmax, and how it is divided into operations, does not matter: the code of an element of the
    probabilities is expanded to one expression of its indices, and a place counts as attention only if that expression,
    evaluated on rows of numbers, is a softmax of the scores after scale, bias and mask.

    Targets with kernels for it (`hasOnlineAttention`) get `fp8.online_attention` and `fp8.online_attention_grad`, which
    promise no bits. The program's reductions of rows are then proved, by evaluation, to be the maximum of the scores,
    the sum of their exponentials or the sum of probability times gradient, and become inputs of the code on one score.
    Operands that the program has widened to f32 and scaled are read as the 16-bit tensors that they are made of.

    A place stays written out if its matmuls are in FP8, if something else reads its scores or probabilities, or if it is
    no attention: a softmax along another dimension, scores of other rows or in another order, another function. An
    optimization remark of the category `fp8-attention` at the matmul of the scores says what became of every place, and
    why. A place of a site that `require` matches and that stays written out is an error.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-fuse-attention))'
    #row = affine_map<(i, j) -> (i, j)>
    #stat = affine_map<(i, j) -> (i)>
    func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>) -> tensor<4x8xf32> {
      %zero = arith.constant 0.0 : f32
      %lowest = arith.constant 0xFF800000 : f32
      %rows = tensor.empty() : tensor<4x6xf32>
      %stats = tensor.empty() : tensor<4xf32>
      %out = tensor.empty() : tensor<4x8xf32>
      %s = fp8.matmul ins(%q, %k : tensor<4x8xf32>, tensor<6x8xf32>) outs(%rows : tensor<4x6xf32>)
        {indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>,
                          affine_map<(i, j, d) -> (i, j)>]} -> tensor<4x6xf32>
      %below = linalg.fill ins(%lowest : f32) outs(%stats : tensor<4xf32>) -> tensor<4xf32>
      %max = linalg.generic {indexing_maps = [#row, #stat], iterator_types = ["parallel", "reduction"]}
          ins(%s : tensor<4x6xf32>) outs(%below : tensor<4xf32>) {
        ^bb0(%e: f32, %acc: f32):
          %m = arith.maximumf %acc, %e : f32
          linalg.yield %m : f32
      } -> tensor<4xf32>
      %exp = linalg.generic {indexing_maps = [#row, #stat, #row], iterator_types = ["parallel", "parallel"]}
          ins(%s, %max : tensor<4x6xf32>, tensor<4xf32>) outs(%rows : tensor<4x6xf32>) {
        ^bb0(%e: f32, %m: f32, %o: f32):
          %x = arith.subf %e, %m : f32
          %y = math.exp %x : f32
          linalg.yield %y : f32
      } -> tensor<4x6xf32>
      %none = linalg.fill ins(%zero : f32) outs(%stats : tensor<4xf32>) -> tensor<4xf32>
      %sum = linalg.generic {indexing_maps = [#row, #stat], iterator_types = ["parallel", "reduction"]}
          ins(%exp : tensor<4x6xf32>) outs(%none : tensor<4xf32>) {
        ^bb0(%e: f32, %acc: f32):
          %m = arith.addf %acc, %e : f32
          linalg.yield %m : f32
      } -> tensor<4xf32>
      %p = linalg.generic {indexing_maps = [#row, #stat, #row], iterator_types = ["parallel", "parallel"]}
          ins(%exp, %sum : tensor<4x6xf32>, tensor<4xf32>) outs(%rows : tensor<4x6xf32>) {
        ^bb0(%e: f32, %l: f32, %o: f32):
          %x = arith.divf %e, %l : f32
          linalg.yield %x : f32
      } -> tensor<4x6xf32>
      %y = fp8.matmul ins(%p, %v : tensor<4x6xf32>, tensor<6x8xf32>) outs(%out : tensor<4x8xf32>)
        {indexing_maps = [affine_map<(i, e, j) -> (i, j)>, affine_map<(i, e, j) -> (j, e)>,
                          affine_map<(i, e, j) -> (i, e)>]} -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %1 = fp8.attention ins(%arg0, %arg1, %arg2 : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) outs(%0 : tensor<4x8xf32>) {...} rows {
    ^bb0(%arg3: index, %arg4: tensor<6xf32>):
      ...
      fp8.yield %2 : tensor<6xf32>
    } -> tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
    ```
  }];
  let options = [Option<"require", "require", "std::string", "\"\"",
                        "regex of sites: one of them whose attention stays written out is an error">];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def ExplainFusion : Pass<"fp8-explain-fusion", "::mlir::func::FuncOp"> {
  let summary = "tell which tensors are still written by one operation and read by another, and why";
  let description = [{
    Before: stage 3 has fused what it fuses.
    After: the same IR. For each read of a result of a matmul or `linalg.generic` by a cast, an amax or elementwise code, an
    optimization remark of the category `fp8-fusion` at the reader's location says why both were not fused
    (`fp8-compile --remarks`, `fp8-opt --remarks-filter=fp8-fusion`). The fusions answer by the checks that they decide by.
    The statistic `declined` counts such reads (`--mlir-pass-statistics`).

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-explain-fusion))'
    #id = affine_map<(i, j) -> (i, j)>
    func.func @f(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>,
                 %i: tensor<4x16xbf16>, %t: tensor<16x4xbf16>) -> tensor<16x4xbf16> {
      %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
        scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id],
                           iterator_types = ["parallel", "parallel"]}
          ins(%y : tensor<4x16xbf16>) outs(%t : tensor<16x4xbf16>) {
        ^bb0(%e: bf16, %o: bf16):
          linalg.yield %e : bf16
      } -> tensor<16x4xbf16>
      return %z : tensor<16x4xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>,
                 %i: tensor<4x16xbf16>, %t: tensor<16x4xbf16>) -> tensor<16x4xbf16> {
      %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
        scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%y : tensor<4x16xbf16>) outs(%t : tensor<16x4xbf16>) {
        ^bb0(%e: bf16, %o: bf16):
          linalg.yield %e : bf16
      } -> tensor<16x4xbf16>
      return %z : tensor<16x4xbf16>
    }
    ```
    with the remark "'linalg.generic' reads the result of 'fp8.scaled_matmul' from memory: it writes its result in another
    order than the matmul".
  }];
  let statistics = [Statistic<"declined", "declined", "Reads of tensors that were not fused with their writers">];
}

def FuseProducers : Pass<"fp8-fuse-producers", "::mlir::func::FuncOp"> {
  let summary = "fuse the code that computes a tensor into its quantize or amax";
  let description = [{
    Before: `fp8.amax` and `fp8.quantize` read tensors that elementwise
    `linalg.generic` operations write.
    After: such an operation is in the `producer` region, and so are its own producers, if
    that lowers the memory traffic: the bytes of all distinct tensors that each operation
    reads and of all that it writes.
    - A tensor without other readers is no longer stored.
    - A tensor with other readers becomes an extra result, which is stored once and read
      once less. If its code is cheap (at most 3 operations, no division, no call of the
      math library) and all readers can compute it themselves for fewer bytes, they do
      so instead.
    - A sum of the tensor over its leading dimensions (a bias gradient), in f32 from
      zero, becomes a summed extra result with the same order of summation.

    No bit changes: the region rounds as the program does. Not fused: bodies with
    a gather, reads through a reshape, and operations that would give the loop more inputs
    than the target allows (16 on the CPU).

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-fuse-producers))'
    #id = affine_map<(i) -> (i)>
    func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %e: tensor<4xbf16>, %d: tensor<4xf8E4M3FN>,
                 %i: tensor<f32>) -> (tensor<4xf8E4M3FN>, tensor<f32>, tensor<4xbf16>) {
      %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<4xf32>) outs(%e : tensor<4xbf16>) {
        ^bb0(%a: f32, %o: bf16):
          %t = math.tanh %a : f32
          %r = arith.truncf %t : f32 to bf16
          linalg.yield %r : bf16
      } -> tensor<4xbf16>
      %q, %si = fp8.quantize ins(%n : tensor<4xbf16>) scale(%s : tensor<f32>)
        outs(%d, %i : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
      return %q, %si, %n : tensor<4xf8E4M3FN>, tensor<f32>, tensor<4xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %e: tensor<4xbf16>, %d: tensor<4xf8E4M3FN>,
                 %i: tensor<f32>) -> (tensor<4xf8E4M3FN>, tensor<f32>, tensor<4xbf16>) {
      %q, %si, %n = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
          outs(%d, %i, %e : tensor<4xf8E4M3FN>, tensor<f32>, tensor<4xbf16>)
          {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>]} producer {
        ^bb0(%a: f32):
          %t = math.tanh %a : f32
          %r = arith.truncf %t : f32 to bf16
          fp8.yield %r, %r : bf16, bf16
      } -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<4xbf16>
      return %q, %si, %n : tensor<4xf8E4M3FN>, tensor<f32>, tensor<4xbf16>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

def FuseRows : Pass<"fp8-fuse-rows", "::mlir::func::FuncOp"> {
  let summary = "fuse norms and softmaxes, row by row, into the cast that reads them";
  let description = [{
    Before: `fp8.amax` and `fp8.quantize`, or their regions, read the results of reductions
    over the rows of a tensor: the statistics of a norm, the maximum and sum of a softmax,
    or the two sums in the backward pass of either.
    After: the reductions and the elementwise code before, between and after them are in
    the region, which works on one row at a time (`rows`), so that each tensor is read once.
    Their results with other readers become extra results: tensors, and statistics of
    one scalar per row. Code that was in the region before works on rows as well, sums
    over the rows included.

    Operations are fused if that lowers the memory traffic: the bytes of all distinct
    tensors that each operation reads and of all that it writes. No bit changes: a row is
    summed in the program's order.

    Not fused: tensors without a row of their own for each row of the cast (such as the cast
    of a weight); operations that reach the cast by way of an operation that is not fused;
    operations that would give the loop more inputs, or the temporaries of a row more
    bytes, than the target allows (on the CPU 16 inputs and 256 KiB); and rows of dynamic
    size.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-fuse-rows))'
    #id = affine_map<(i, j) -> (i, j)>
    #row = affine_map<(i, j) -> (i)>
    func.func @f(%x: tensor<4x8xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>, %i: tensor<f32>)
        -> (tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<4xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
        ^bb0(%a: f32, %o: f32):
          %v = arith.addf %o, %a : f32
          linalg.yield %v : f32
      } -> tensor<4xf32>
      %q, %si = fp8.quantize ins(%x, %sum : tensor<4x8xf32>, tensor<4xf32>) scale(%s : tensor<f32>)
          outs(%d, %i : tensor<4x8xf8E4M3FN>, tensor<f32>) {indexing_maps = [#id, #row]} producer {
        ^bb0(%a: f32, %b: f32):
          %v = arith.divf %a, %b : f32
          fp8.yield %v : f32
      } -> tensor<4x8xf8E4M3FN>, tensor<f32>
      return %q, %si, %sum : tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    #r = affine_map<(j) -> (j)>
    func.func @f(%x: tensor<4x8xf32>, %s: tensor<f32>, %d: tensor<4x8xf8E4M3FN>, %i: tensor<f32>)
        -> (tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<4xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %q, %si, %sum = fp8.quantize ins(%x : tensor<4x8xf32>) scale(%s : tensor<f32>)
          outs(%d, %i, %e : tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<4xf32>)
          {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
           rows = array<i64: 1>} producer {
        ^bb0(%k: index, %row: tensor<8xf32>):
          %e0 = tensor.empty() : tensor<f32>
          %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
          %t = linalg.generic {indexing_maps = [#r, affine_map<(j) -> ()>], iterator_types = ["reduction"]}
              ins(%row : tensor<8xf32>) outs(%f0 : tensor<f32>) {
            ^bb0(%a: f32, %o: f32):
              %v = arith.addf %o, %a : f32
              linalg.yield %v : f32
          } -> tensor<f32>
          %b = tensor.extract %t[] : tensor<f32>
          %e1 = tensor.empty() : tensor<8xf32>
          %n = linalg.generic {indexing_maps = [#r, #r], iterator_types = ["parallel"]}
              ins(%row : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
            ^bb0(%a: f32, %o: f32):
              %v = arith.divf %a, %b : f32
              linalg.yield %v : f32
          } -> tensor<8xf32>
          fp8.yield %n, %b : tensor<8xf32>, f32
      } -> tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<4xf32>
      return %q, %si, %sum : tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_FUSIONPASSES_TD
