// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The other passes of stage 1, in the order in which a program meets them: contractions become fp8.matmul
// operations with the types of their sums, then sites with roles.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_SITEPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_SITEPASSES_TD

include "mlir/Pass/PassBase.td"

def RaiseConvolutions : Pass<"fp8-raise-convolutions"> {
  let summary = "turn convolutions whose windows do not overlap into contractions";
  let description = [{
    Before: convolutions are linalg ops of any name, layout and number of dimensions, recognized by their maps and
    body.
    After: those that are matmuls are a `linalg.generic` with the maps of one, in the same order of sums, on
    views of the operands:
    - kernels of one element (1 × 1), of any stride, and kernels of the size of the image;
    - patches: strides of the size of the kernel, or larger; windows may be dilated;
    - the gradients of both. That of the image reads dy at strides, in a tensor of zeros, and the kernel backwards
      (so does a transposed convolution of patches); that of the kernel reads dy at strides or is dilated. The zeros
      are left out: they are no elements of dy. An Inf or a NaN of the other operand is not multiplied by them.

    Other convolutions stay unchanged, as do depthwise ones, which multiply no matrices, and those whose windows
    have a size or a place that is known only when the program runs.

    Example:
    ```mlir
    // fp8-opt --fp8-raise-convolutions
    func.func @patches(%x: tensor<2x8x3xf32>, %w: tensor<4x3x5xf32>, %i: tensor<2x2x5xf32>) -> tensor<2x2x5xf32> {
      %y = linalg.conv_1d_nwc_wcf {strides = dense<4> : tensor<1xi64>}
          ins(%x, %w : tensor<2x8x3xf32>, tensor<4x3x5xf32>) outs(%i : tensor<2x2x5xf32>) -> tensor<2x2x5xf32>
      return %y : tensor<2x2x5xf32>
    }
    ```
    becomes
    ```mlir
    func.func @patches(%x: tensor<2x8x3xf32>, %w: tensor<4x3x5xf32>, %i: tensor<2x2x5xf32>) -> tensor<2x2x5xf32> {
      %p = tensor.expand_shape %x [[0], [1, 2], [3]] output_shape [2, 2, 4, 3] : tensor<2x8x3xf32> into tensor<2x2x4x3xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(n, w, f, k, c) -> (n, w, k, c)>, affine_map<(n, w, f, k, c) -> (k, c, f)>,
                                            affine_map<(n, w, f, k, c) -> (n, w, f)>],
                           iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
          ins(%p, %w : tensor<2x2x4x3xf32>, tensor<4x3x5xf32>) outs(%i : tensor<2x2x5xf32>) {
      ^bb0(%a: f32, %b: f32, %out: f32):
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %out, %m : f32
        linalg.yield %s : f32
      } -> tensor<2x2x5xf32>
      return %y : tensor<2x2x5xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def JoinProducts : Pass<"fp8-join-products"> {
  let summary = "join an elementwise product and the sum over it into one contraction";
  let description = [{
    Before: a matmul may be written as an elementwise product (of
    tensors that are broadcast along the dimensions they lack) and a sum.
    After: it is one `linalg.generic` that multiplies and adds. The two are joined only if
    the values stay the same: nothing else reads the elementwise product, and its type,
    f32 or f64, is the type of the sum. Other pairs stay unchanged and are listed in the
    report. Products without an M or N dimension (norms, means, dot products) are not
    matmuls and stay unchanged as well.

    Example:
    ```mlir
    // fp8-opt --fp8-join-products
    func.func @f(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %e: tensor<4x8xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
      %p = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>,
                                            affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
          ins(%x, %v : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%a: f32, %b: f32, %out: f32):
        %m = arith.mulf %a, %b : f32
        linalg.yield %m : f32
      } -> tensor<4x8xf32>
      %y = linalg.reduce { arith.addf } ins(%p : tensor<4x8xf32>) outs(%i : tensor<4xf32>) dimensions = [1]
      return %y : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %e: tensor<4x8xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
      %y = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>,
                                            affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
          ins(%x, %v : tensor<4x8xf32>, tensor<8xf32>) outs(%i : tensor<4xf32>) {
      ^bb0(%a: f32, %b: f32, %out: f32):
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %out, %m : f32
        linalg.yield %s : f32
      } -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect"];
}

def RaiseContractions : Pass<"fp8-raise-contractions"> {
  let summary = "turn every contraction of floats into an fp8.matmul";
  let description = [{
    Before: contractions are linalg ops of any kind (named, `linalg.contract`,
    `linalg.generic`). They are recognized by their maps and body: a sum of products with
    at least one K dimension. The body may contain casts anywhere.
    After: each contraction of floats is one `fp8.matmul` with the same location. It sums
    in f32 (f64 for f64) whatever the type of the result, also if the program's
    accumulator was bf16.
    - A destination filled with zeros is replaced by `tensor.empty`; any other is added to
      (`accumulate`).
    - Other code that the body applies to an operand becomes an op of its own.
    - A summed dimension of one operand only is added to the other operand, which is
      broadcast along it.
    - A dimension of the result only is left out of the matmul; the sums are broadcast
      along it.

    Contractions of integers, complex numbers and memrefs stay unchanged, and so do
    operations of the same form without a K dimension.

    Example:
    ```mlir
    // fp8-opt --fp8-raise-contractions
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>) -> tensor<4x16xbf16> {
      %zero = arith.constant 0.0 : bf16
      %empty = tensor.empty() : tensor<4x16xbf16>
      %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<4x16xbf16>) -> tensor<4x16xbf16>
      %y = linalg.matmul ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
        outs(%init : tensor<4x16xbf16>) -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>) -> tensor<4x16xbf16> {
      %init = tensor.empty() : tensor<4x16xbf16>
      %y = fp8.matmul ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%init : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FoldIntoMatmul : Pass<"fp8-fold-into-matmul"> {
  let summary = "fold transposes, broadcasts, reshapes and exact casts around an fp8.matmul into it";
  let description = [{
    Before: transposes, broadcasts, reshapes and casts around an `fp8.matmul` are
    ops of their own, named or generic, in chains.
    After: those that change no value are part of the matmul. It reads an operand
    through transposes, broadcasts, `tensor.cast` and extensions of bf16 or f16 to f32,
    and writes its result through transposes and the rounding of an f32 sum to bf16
    or f16 if that is the only use of the result. An operand that the program rounds stays
    rounded. A reshape splits dimensions of the matmul, if all operands and results with
    such a dimension split it into the same static sizes; other reshapes stay, because they
    move no data. Where the result is split behind elementwise code only, as scores that a bias is added
    to by `baddbmm` are, that code works on the split tensor, too. Where two of the three tensors split the
    batch, as code that computes or reads them does, the third is split by a view, as the values of
    `torch.nn.MultiheadAttention` are.

    Example:
    ```mlir
    // fp8-opt --fp8-fold-into-matmul
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<16x8xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %empty = tensor.empty() : tensor<8x16xbf16>
      %t = linalg.transpose ins(%w : tensor<16x8xbf16>) outs(%empty : tensor<8x16xbf16>) permutation = [1, 0]
      %y = fp8.matmul ins(%x, %t : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<16x8xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.matmul ins(%x, %w : tensor<4x8xbf16>, tensor<16x8xbf16>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

def RaiseRowGroups : Pass<"fp8-raise-row-groups"> {
  let summary = "turn masks that divide rows among groups into fp8.group_rows";
  let description = [{
    Before: frameworks write a matmul of groups of rows (`jax.lax.ragged_dot`, mixture of
    experts) as a matmul of all rows with the matrices of all groups, where a mask, computed
    from the groups' sizes, sets the rows of other groups to zero: for G groups, G times
    the work.
    After: where matmuls alone read such a masked tensor, it is an `fp8.group_rows`. The mask must be
    `start[g] <= t and t < end[g]` with the number of the row `t`; `start` and `end` are tensors
    of integers, and each start is the end before it, the first 0, for every value
    that the ends may have. Other masks stay unchanged.

    Example:
    ```mlir
    // fp8-opt --fp8-raise-row-groups
    #g = affine_map<(g, t, k) -> (g)>
    #tk = affine_map<(g, t, k) -> (t, k)>
    #gtk = affine_map<(g, t, k) -> (g, t, k)>
    func.func @f(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
      %zero = arith.constant 0.0 : f32
      %first = arith.constant dense<0> : tensor<1xi32>
      %before = tensor.extract_slice %ends[0] [2] [1] : tensor<3xi32> to tensor<2xi32>
      %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
      %e = tensor.empty() : tensor<3x8x6xf32>
      %masked = linalg.generic {indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%x, %starts, %ends : tensor<8x6xf32>, tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x8x6xf32>) {
      ^bb0(%in: f32, %start: i32, %end: i32, %out: f32):
        %index = linalg.index 1 : index
        %t = arith.index_cast %index : index to i32
        %from = arith.cmpi sle, %start, %t : i32
        %to = arith.cmpi slt, %t, %end : i32
        %inside = arith.andi %from, %to : i1
        %v = arith.select %inside, %in, %zero : f32
        linalg.yield %v : f32
      } -> tensor<3x8x6xf32>
      %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>)
        {indexing_maps = [affine_map<(m, n, k, g) -> (g, m, k)>, affine_map<(m, n, k, g) -> (g, k, n)>,
                          affine_map<(m, n, k, g) -> (m, n)>]} -> tensor<8x5xf32>
      return %y : tensor<8x5xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<8x6xf32>, %w: tensor<3x6x5xf32>, %ends: tensor<3xi32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
      ...
      %masked = fp8.group_rows ins(%x, %ends : tensor<8x6xf32>, tensor<3xi32>) -> tensor<3x8x6xf32>
      %y = fp8.matmul ins(%masked, %w : tensor<3x8x6xf32>, tensor<3x6x5xf32>) outs(%i : tensor<8x5xf32>) {indexing_maps = [#map, #map1, #map2]} -> tensor<8x5xf32>
      return %y : tensor<8x5xf32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect"];
}

def InferSites : Pass<"fp8-infer-sites", "::mlir::ModuleOp"> {
  let summary = "infer role, operand kinds and site name of every fp8.matmul";
  let description = [{
    Before: every contraction is an `fp8.matmul`; private functions are inlined.
    After: each says its `site`, its `role` (fprop, dgrad, wgrad of a weight, or
    other) and the `kinds` of its operands. Roles follow from dataflow; names in
    locations give sites their names and decide where dataflow leaves a doubt.
    A matmul that both leave in doubt counts as forward, with a remark that says why. `fp8.site` and
    `fp8.role`, where the user set them, win and are consumed. Matmuls in a scope called `update(…)` are part
    of an optimizer's update: they are no layers, whatever their operands, and stay in high precision. Each
    function is analysed on its own, but for what its arguments are: a parameter that one function trains is
    one in all, by its name. Equal names are one site. Where locations name no layer, or one name for several
    weights, sites are called as the arguments that are their weights.

    The rules are in fp8/Analysis/Sites: Weights.h, BackwardMatching.h, Roles.h,
    SiteNames.h and WeightNames.h. With `explain` every gradient has a remark that
    says which rule found it.

    Example:
    ```mlir
    // fp8-opt --fp8-infer-sites
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %y = fp8.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
        loc("jit(f)/fc1/dot_general")
      return %y : tensor<4x16xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %y = fp8.matmul site("fc1") role(fprop) kinds(input, weight)
        ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", "false", "say of every gradient by which rule it was found">
  ];
  let dependentDialects = ["::fp8::FP8Dialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_SITEPASSES_TD
