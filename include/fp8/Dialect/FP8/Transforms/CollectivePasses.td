// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on collectives: programs of several ranks.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_COLLECTIVEPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_COLLECTIVEPASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertShard : Pass<"fp8-convert-shard", "::mlir::ModuleOp"> {
  let summary = "turn collectives of the shard dialect into those of this dialect";
  let description = [{
    Before: functions as upstream's `shard-partition` leaves them: every rank runs the same
    code on its part of the data, with collectives of the `shard` dialect.
    After: `fp8.all_reduce` and its kin, in the same order. Positions on the grid are
    arithmetic on `fp8.rank`. `shard.grid` has become the attribute `fp8.grid` of the
    module. `shard.reduce` and `shard.gather` give every rank what upstream gives the root
    alone; `shard.scatter` broadcasts and takes a part.

    Errors: two grids of different shape; a tensor divided along an axis of unknown extent;
    axes out of order where that order matters; a root that is no constant; `shard.shard`,
    `send`, `recv`, `update_halo`, which are no collectives of a group.

    Example:
    ```mlir
    // fp8-opt --fp8-convert-shard
    shard.grid @grid(shape = 2x4)
    func.func @f(%w: tensor<8x16xf32>) -> tensor<32x16xf32> {
      %whole = shard.all_gather %w on @grid grid_axes = [1] gather_axis = 0
        : tensor<8x16xf32> -> tensor<32x16xf32>
      return %whole : tensor<32x16xf32>
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.grid = array<i64: 2, 4>} {
      func.func @f(%w: tensor<8x16xf32>) -> tensor<32x16xf32> {
        %init = tensor.empty() : tensor<32x16xf32>
        %whole = fp8.all_gather dim 0 on(2x4) axes [1] ins(%w : tensor<8x16xf32>)
          outs(%init : tensor<32x16xf32>) -> tensor<32x16xf32>
        return %whole : tensor<32x16xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AverageGradients : Pass<"fp8-average-gradients", "::mlir::ModuleOp"> {
  let summary = "data parallelism: the mean of the loss and of the gradients over the ranks";
  let description = [{
    Before: the step of one rank, whose batch arguments have the attribute `fp8.batch`;
    `fp8.grid` and `fp8.batch_axis` on the module say along which axis of the grid they
    differ. All other arguments are equal on all ranks.
    After: the loss, and the gradient of every parameter, is its mean over that axis: an
    `fp8.all_reduce mean` right behind the gradient, which all that comes after the backward
    pass reads. So every rank computes the same new parameters. The backward pass, which is
    linear in the gradient of the loss, ends at the optimizer, the norm of a clipping, a
    result of the function; and from there back to before elementwise operations on values
    that are equal on all ranks, such as the matmul with the learning rate. Reads with which
    the backward pass goes on keep each rank's own gradient: that of a bias for every element
    is that of the sum, too. Maxima and magnitudes do not commute with means: they end it.
    Results that are gradients of parameters, or tensors that are computed from some, are of
    means; those with the shape of a batch argument are each rank's own. `average` lists
    further results whose mean is wanted.
    A function without matmuls of gradients is evaluation: its loss alone is averaged.

    Errors: no loss; a carried result that depends on the batch other than through
    gradients (the statistics of a batch norm) and is not in `average`; a result that is
    a gradient by dataflow and has the shape of a parameter and of a batch argument, or of
    no argument. A result that differs from rank to rank, has the shape of a parameter, and is
    none of these is a warning: no gradient of a matmul leads to it. In a function that is
    evaluation by its matmuls, it is one only where it is computed from what name stacks call
    a gradient (`transpose(...)`): statistics of a batch may have the shape of a parameter, too.

    Example:
    ```mlir
    // fp8-opt --fp8-average-gradients
    module attributes {fp8.grid = array<i64: 4>, fp8.batch_axis = 0 : i64} {
      func.func @evaluate(%x: tensor<8xf32> {fp8.batch = 0 : i64}, %zero: tensor<f32>) -> tensor<f32> {
        %loss = linalg.reduce ins(%x : tensor<8xf32>) outs(%zero : tensor<f32>) dimensions = [0]
          (%a: f32, %b: f32) {
            %s = arith.addf %a, %b : f32
            linalg.yield %s : f32
          }
        return %loss : tensor<f32>
      }
    }
    ```
    becomes
    ```mlir
    ...
      %mean = fp8.all_reduce mean on(4) axes [0] of("loss") ins(%loss : tensor<f32>) outs(%loss : tensor<f32>) -> tensor<f32>
      return %mean : tensor<f32>
    ...
    ```
  }];
  let options = [
    Option<"loss", "loss", "int64_t", "-1",
           "the result that is the loss; -1 for the only scalar of floating point that is not carried">,
    ListOption<"average", "average", "int64_t", "results whose mean over the ranks is wanted">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

def QuantizeBeforeGather : Pass<"fp8-quantize-before-gather", "::mlir::func::FuncOp"> {
  let summary = "cast shards to FP8 before they are gathered";
  let description = [{
    Before: an `fp8.all_gather` of wide elements that only casts to FP8 and their amaxes read.
    After: every rank casts its shard; bytes and the scales of rows and blocks are gathered.
    The results are the same, bit for bit. An amax is that of the shard, then the
    maximum over the ranks (under delayed scaling, the reduction of all amaxes does it).
    Where all readers round the gathered tensor to one narrower type first, the shard is
    rounded instead, whether it can be cast to FP8 then or not.

    Left as it is, with the reason in `fp8.gathered_wide`, which the report prints: a tensor that
    others read too; a scale that may differ between ranks; one that covers several shards; random
    rounding, which counts elements of the whole tensor; casts of no fewer bytes; a cast
    in a loop or branch that the gather is not in; a tensor of dynamic size. `fp8.saved_bytes`
    has what a rank sends less otherwise.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-quantize-before-gather))'
    func.func @f(%w: tensor<4x8xbf16>, %i: tensor<16x8xbf16>, %d: tensor<16x8xf8E4M3FN>, %s: tensor<16x1xf32>)
        -> (tensor<16x8xf8E4M3FN>, tensor<16x1xf32>) {
      %all = fp8.all_gather dim 0 on(4) axes [0] ins(%w : tensor<4x8xbf16>)
        outs(%i : tensor<16x8xbf16>) -> tensor<16x8xbf16>
      %q:2 = fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%all : tensor<16x8xbf16>)
        outs(%d, %s : tensor<16x8xf8E4M3FN>, tensor<16x1xf32>) {blocks = [array<i64: 1, 0>]}
        -> tensor<16x8xf8E4M3FN>, tensor<16x1xf32>
      return %q#0, %q#1 : tensor<16x8xf8E4M3FN>, tensor<16x1xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%w: tensor<4x8xbf16>, %i: tensor<16x8xbf16>, %d: tensor<16x8xf8E4M3FN>, %s: tensor<16x1xf32>)
        -> (tensor<16x8xf8E4M3FN>, tensor<16x1xf32>) {
      %e0 = tensor.empty() : tensor<4x8xf8E4M3FN>
      %e1 = tensor.empty() : tensor<4x1xf32>
      %q:2 = fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%w : tensor<4x8xbf16>)
        outs(%e0, %e1 : tensor<4x8xf8E4M3FN>, tensor<4x1xf32>) {blocks = [array<i64: 1, 0>]}
        -> tensor<4x8xf8E4M3FN>, tensor<4x1xf32>
      %e2 = tensor.empty() : tensor<16x8xf8E4M3FN>
      %data = fp8.all_gather dim 0 on(4) axes [0] ins(%q#0 : tensor<4x8xf8E4M3FN>)
        outs(%e2 : tensor<16x8xf8E4M3FN>) {fp8.saved_bytes = 16 : i64} -> tensor<16x8xf8E4M3FN>
      %e3 = tensor.empty() : tensor<16x1xf32>
      %scales = fp8.all_gather dim 0 on(4) axes [0] ins(%q#1 : tensor<4x1xf32>)
        outs(%e3 : tensor<16x1xf32>) -> tensor<16x1xf32>
      return %data, %scales : tensor<16x8xf8E4M3FN>, tensor<16x1xf32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def BucketReductions : Pass<"fp8-bucket-reductions", "::mlir::func::FuncOp"> {
  let summary = "join reductions of small tensors to one of a bucket";
  let description = [{
    Before: an `fp8.all_reduce` per gradient, behind the operation that computes it.
    After: sums and means of one element type over one group, such as the gradients of
    biases and norms, are one `fp8.all_reduce` of a bucket of at most `bytes` bytes, behind
    the operation that computes the last of them; a tensor that would fill a bucket alone
    stays as it is. A sum or mean is taken element by element in the order of ranks, so the
    results are the same, bit for bit. Parts begin at the alignment of the target's buffers.
    Readers of a result move behind the bucket; a reduction that depends on one of the
    bucket is not joined. `fp8.joined` says how many the bucket replaces.

    The default is 1 MiB: between two ranks that share memory a reduction of a few bytes
    takes about 0.03 ms, one of 1 MiB 0.3 to 0.5 ms. So a larger bucket would save less than
    a tenth, and what is in it would wait longer for the last tensor.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-bucket-reductions))'
    func.func @f(%a: tensor<16xf32>, %b: tensor<f32>) -> (tensor<16xf32>, tensor<f32>) {
      %x = fp8.all_reduce mean on(4) axes [0] of("x") ins(%a : tensor<16xf32>)
        outs(%a : tensor<16xf32>) -> tensor<16xf32>
      %y = fp8.all_reduce mean on(4) axes [0] of("y") ins(%b : tensor<f32>)
        outs(%b : tensor<f32>) -> tensor<f32>
      return %x, %y : tensor<16xf32>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%a: tensor<16xf32>, %b: tensor<f32>) -> (tensor<16xf32>, tensor<f32>) {
      %e = tensor.empty() : tensor<17xf32>
      %p = tensor.insert_slice %a into %e[0] [16] [1] : tensor<16xf32> into tensor<17xf32>
      %flat = tensor.expand_shape %b [] output_shape [1] : tensor<f32> into tensor<1xf32>
      %all = tensor.insert_slice %flat into %p[16] [1] [1] : tensor<1xf32> into tensor<17xf32>
      %r = fp8.all_reduce mean on(4) axes [0] of("y and 1 before") ins(%all : tensor<17xf32>)
        outs(%all : tensor<17xf32>) {fp8.joined = 2 : i64} -> tensor<17xf32>
      %x = tensor.extract_slice %r[0] [16] [1] : tensor<17xf32> to tensor<16xf32>
      %s = tensor.extract_slice %r[16] [1] [1] : tensor<17xf32> to tensor<1xf32>
      %y = tensor.collapse_shape %s [] : tensor<1xf32> into tensor<f32>
      return %x, %y : tensor<16xf32>, tensor<f32>
    }
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "1048576",
                        "the size of a bucket; 0 joins nothing">];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

def ExpandCollectives : Pass<"fp8-expand-collectives", "::mlir::func::FuncOp"> {
  let summary = "gather and scatter along dimension 0 only";
  let description = [{
    Communicators move contiguous elements. `fp8.all_gather` along another dimension than
    the first becomes one along the first and a transposition of the result,
    `fp8.reduce_scatter` a transposition and one along the first.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-expand-collectives))'
    func.func @f(%x: tensor<4x8xf32>, %init: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %r = fp8.all_gather dim 1 on(2) axes [0] ins(%x : tensor<4x8xf32>)
        outs(%init : tensor<4x16xf32>) -> tensor<4x16xf32>
      return %r : tensor<4x16xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xf32>, %init: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %e = tensor.empty() : tensor<8x8xf32>
      %g = fp8.all_gather dim 0 on(2) axes [0] ins(%x : tensor<4x8xf32>)
        outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
      %parts = tensor.expand_shape %g [[0, 1], [2]] output_shape [2, 4, 8]
        : tensor<8x8xf32> into tensor<2x4x8xf32>
      %t = tensor.empty() : tensor<4x2x8xf32>
      %placed = linalg.transpose ins(%parts : tensor<2x4x8xf32>) outs(%t : tensor<4x2x8xf32>)
        permutation = [1, 0, 2]
      %r = tensor.collapse_shape %placed [[0], [1, 2]] : tensor<4x2x8xf32> into tensor<4x16xf32>
      return %r : tensor<4x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def OverlapCollectives : Pass<"fp8-overlap-collectives", "::mlir::func::FuncOp"> {
  let summary = "start collectives early and wait for them late";
  let description = [{
    Before: collectives on memrefs.
    After: each is an `fp8.start_collective` right behind the last operation that touches
    its buffers or an earlier start, and an `fp8.wait_collective` right before the next
    one that touches them. Collectives start in the order of the program, which is the
    same on every rank. Buffers with gaps are copied.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-overlap-collectives))'
    func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) {
      %one = arith.constant 1.0 : f32
      %g = memref.alloc() : memref<8xf32>
      linalg.copy ins(%x : memref<8xf32>) outs(%g : memref<8xf32>)
      linalg.fill ins(%one : f32) outs(%y : memref<8xf32>)
      fp8.all_reduce sum on(4) axes [0] of("g") ins(%g : memref<8xf32>) outs(%g : memref<8xf32>)
      linalg.add ins(%y, %g : memref<8xf32>, memref<8xf32>) outs(%y : memref<8xf32>)
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) {
      %one = arith.constant 1.0 : f32
      %g = memref.alloc() : memref<8xf32>
      linalg.copy ins(%x : memref<8xf32>) outs(%g : memref<8xf32>)
      %t = fp8.start_collective all_reduce sum root 0 on(4) axes [0] of("g")
        from(%g : memref<8xf32>) to(%g : memref<8xf32>)
      linalg.fill ins(%one : f32) outs(%y : memref<8xf32>)
      fp8.wait_collective %t from(%g : memref<8xf32>) to(%g : memref<8xf32>)
      linalg.add ins(%y, %g : memref<8xf32>, memref<8xf32>) outs(%y : memref<8xf32>)
      return
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::memref::MemRefDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_COLLECTIVEPASSES_TD
