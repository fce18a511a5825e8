// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stages 1 to 5, in the order in which a program meets them. Each
// states what it needs, what it leaves, and IR before and after.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Stage 1: ingest
//===----------------------------------------------------------------------===//

def HoistAsserts : Pass<"fp8-hoist-asserts"> {
  let summary = "assert before an operation what its body asserts of every element";
  let description = [{
    Before: `cf.assert` in the body of a linalg operation on tensors, as
    PyTorch's exporters check indices.
    After: the condition for all elements is an operation of its own, over the
    inputs and dimensions that it needs, and is asserted before the other runs.

    Errors: a condition on what the operation computes, or under a condition.

    Example:
    ```mlir
    // fp8-opt --fp8-hoist-asserts
    func.func @f(%ids: tensor<4xi64>, %table: tensor<9x8xf32>, %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %c9 = arith.constant 9 : i64
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%ids : tensor<4xi64>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%id: i64, %out: f32):
        %good = arith.cmpi ult, %id, %c9 : i64
        cf.assert %good, "index out of bounds"
        %row = arith.index_cast %id : i64 to index
        %column = linalg.index 1 : index
        %v = tensor.extract %table[%row, %column] : tensor<9x8xf32>
        linalg.yield %v : f32
      } -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %all = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%ids : tensor<4xi64>) outs(%true : tensor<i1>) {
    ^bb0(%id: i64, %so_far: i1):
      %good = arith.cmpi ult, %id, %c9 : i64
      %both = arith.andi %so_far, %good : i1
      linalg.yield %both : i1
    } -> tensor<i1>
    %extracted = tensor.extract %all[] : tensor<i1>
    cf.assert %extracted, "index out of bounds"
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def CheckSizes : Pass<"fp8-check-sizes", "::mlir::func::FuncOp"> {
  let summary = "assert that sizes fit together where the types do not tell";
  let description = [{
    Before: operations on tensors of dynamic shape, whose sizes must fit together.
    After: `cf.assert` for everything that cannot be shown to fit: at the start
    of the function, naming the arguments, where it follows from their shapes;
    otherwise in front of the operation. Programs of static shape stay as they are.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-check-sizes))'
    func.func @f(%x: tensor<?xf32> loc("x"), %t: tensor<?xf32> loc("t")) -> tensor<?xf32> {
      %d = arith.subf %x, %t : tensor<?xf32>
      %y = arith.mulf %d, %x : tensor<?xf32>
      return %y : tensor<?xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %x_size = tensor.dim %x, %c0 : tensor<?xf32>
    ...
    %t_size = tensor.dim %t, %c0_0 : tensor<?xf32>
    %same = arith.cmpi eq, %x_size, %t_size : index
    cf.assert %same, "argument 1 't': size 0 must be size 0 of argument 0 'x'"
    %d = arith.subf %x, %t : tensor<?xf32>
    %y = arith.mulf %d, %x : tensor<?xf32>
    return %y : tensor<?xf32>
    ...
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::tensor::TensorDialect"];
}

def ExpandPacks : Pass<"fp8-expand-packs"> {
  let summary = "take linalg.pack and linalg.unpack apart";
  let description = [{
    Before: operands and results of `linalg.mmt4d` and the like may be packed into
    tiles.
    After: they are padded, reshaped and transposed instead. Tile sizes that are
    known only at run time are an error.

    Example:
    ```mlir
    // fp8-opt --fp8-expand-packs
    func.func @f(%x: tensor<16x32xf32>, %e: tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32> {
      %p = linalg.pack %x inner_dims_pos = [0, 1] inner_tiles = [8, 4] into %e : tensor<16x32xf32> -> tensor<2x8x8x4xf32>
      return %p : tensor<2x8x8x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<16x32xf32>, %e: tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32> {
      %zero = arith.constant 0.0 : f32
      %padded = tensor.pad %x low[0, 0] high[0, 0] {
      ^bb0(%i: index, %j: index):
        tensor.yield %zero : f32
      } : tensor<16x32xf32> to tensor<16x32xf32>
      %tiles = tensor.expand_shape %padded [[0, 1], [2, 3]] output_shape [2, 8, 8, 4] : tensor<16x32xf32> into tensor<2x8x8x4xf32>
      %p = linalg.transpose ins(%tiles : tensor<2x8x8x4xf32>) outs(%e : tensor<2x8x8x4xf32>) permutation = [0, 2, 1, 3]
      return %p : tensor<2x8x8x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def JoinProducts : Pass<"fp8-join-products"> {
  let summary = "make one op of a product and the sum over it";
  let description = [{
    Before: a matrix product may be written as an elementwise product (of
    tensors that are repeated along the dimensions they lack) and a sum.
    After: it is one `linalg.generic` that multiplies and adds. That is the same
    computation where nothing else reads the product and products are added in
    the type that they are rounded to, f32 or f64; others stay as they are, and
    the report lists them. Products without an M or N dimension (norms, means,
    dot products) are no matrix products: they stay, too.

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
    `linalg.generic`), known by their maps and body: a sum of products with at
    least one K dimension. The body may cast anywhere; what else it does to an
    operand first becomes an op of its own. A dimension that one operand alone
    sums is one more of the other, which is repeated along it; one that the
    result alone has is left out of the product, and its sums are repeated.
    After: each is one `fp8.matmul` with the same location. It sums in f32 (f64
    for f64) whatever the type of the result; a bf16 accumulator is gone.
    Destinations filled with zeros are replaced by `tensor.empty`; others are
    added to (`accumulate`). Contractions of integers, complex numbers and
    memrefs stay, and so do look-alikes without a K dimension.

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
    After: those that change no value are gone. An operand is read through
    transposes, broadcasts, `tensor.cast` and extensions of bf16 or f16 to f32.
    A result is written through transposes and the rounding of an f32 sum to bf16
    or f16, where that is its only use. An operand that the program rounds stays
    rounded. Reshapes become more dimensions of the product, where everything that
    has a dimension splits it alike into static sizes; others stay, as they cost
    nothing.

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

def WidenSums : Pass<"fp8-widen-sums"> {
  let summary = "sums with a narrow accumulator are taken in f32 and rounded once";
  let description = [{
    Before: linalg on tensors; contractions have been raised.
    After: no `linalg.generic` adds up in bf16 or f16. What is added keeps the
    roundings that the program wrote; only the accumulator is wider.

    Example:
    ```mlir
    // fp8-opt --fp8-widen-sums
    func.func @f(%x: tensor<8x4xbf16>, %i: tensor<4xbf16>) -> tensor<4xbf16> {
      %z = arith.constant 0.0 : bf16
      %f = linalg.fill ins(%z : bf16) outs(%i : tensor<4xbf16>) -> tensor<4xbf16>
      %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<8x4xbf16>) outs(%f : tensor<4xbf16>) {
      ^bb0(%in: bf16, %out: bf16):
        %s = arith.addf %out, %in : bf16
        linalg.yield %s : bf16
      } -> tensor<4xbf16>
      return %y : tensor<4xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<8x4xbf16>, %i: tensor<4xbf16>) -> tensor<4xbf16> {
      %z = arith.constant 0.0 : bf16
      %f = linalg.fill ins(%z : bf16) outs(%i : tensor<4xbf16>) -> tensor<4xbf16>
      %w = arith.extf %z : bf16 to f32
      %e = tensor.empty() : tensor<4xf32>
      %g = linalg.fill ins(%w : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<8x4xbf16>) outs(%g : tensor<4xf32>) {
      ^bb0(%in: bf16, %out: f32):
        %a = arith.extf %in : bf16 to f32
        %s = arith.addf %out, %a : f32
        linalg.yield %s : f32
      } -> tensor<4xf32>
      %d = tensor.empty() : tensor<4xbf16>
      %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>],
                           iterator_types = ["parallel"]}
          ins(%y : tensor<4xf32>) outs(%d : tensor<4xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %t = arith.truncf %in : f32 to bf16
        linalg.yield %t : bf16
      } -> tensor<4xbf16>
      return %r : tensor<4xbf16>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def InferSites : Pass<"fp8-infer-sites", "::mlir::ModuleOp"> {
  let summary = "infer role, operand kinds and site name of every fp8.matmul";
  let description = [{
    Before: every contraction is an `fp8.matmul`; private functions are inlined.
    After: each says its `site`, its `role` (fprop, dgrad, wgrad of a weight, or
    other) and the `kinds` of its operands. Roles follow from dataflow; names in
    locations give sites their names and decide where dataflow leaves a doubt.
    `fp8.site` and `fp8.role`, where the user set them, win and are consumed.
    Each function is analysed on its own; equal names are one site.

    The rules are in fp8/Analysis: SiteNames.h, BackwardMatching.h and Roles.h.

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
  let dependentDialects = ["::fp8::FP8Dialect"];
}

//===----------------------------------------------------------------------===//
// Stage 2: recipe
//===----------------------------------------------------------------------===//

def SelectSites : Pass<"fp8-select-sites", "::mlir::ModuleOp"> {
  let summary = "decide which matrix products become FP8, and say why the others do not";
  let description = [{
    Before: every contraction is an `fp8.matmul` with site and role.
    After: those that stay in high precision have a reason in `kept`; all others
    are to become FP8.

    `fprop`, `dgrad` and `wgrad` keep the products of a role as the program has
    them, by the name of their type: no type is changed. A product that the program
    has in a wider type (f32 where bf16 is asked for) stays in that, and its reason
    says so; one that it has in another type is an error.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(fp8-select-sites{keep=head})'
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.matmul site("head") role(fprop) kinds(input, weight)
        ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.matmul site("head") role(fprop) kinds(input, weight) kept("matches --keep=head")
        ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
  }];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"#fp8.delayed_scaling\"",
           "the recipe to be applied, as an attribute; empty: every product stays as it is">,
    Option<"sites", "sites", "std::string", "\"linear\"",
           "linear (products of a weight), all, or a regex searched in site names">,
    Option<"keep", "keep", "std::string", "\"\"", "regex of sites that stay as they are">,
    Option<"first", "first", "int64_t", "0", "sites of the first N layers stay as they are">,
    Option<"last", "last", "int64_t", "0", "sites of the last N layers stay as they are">,
    Option<"fprop", "fprop", "std::string", "\"\"", "type in which forward products stay; empty: FP8">,
    Option<"dgrad", "dgrad", "std::string", "\"\"", "type in which input gradients stay; empty: FP8">,
    Option<"wgrad", "wgrad", "std::string", "\"\"", "type in which weight gradients stay; empty: FP8">,
    Option<"require", "require", "std::string", "\"\"",
           "all, or a regex of sites: one of them that does not become FP8 is an error">
  ];
}

def HoistCasts : Pass<"fp8-hoist-casts", "::mlir::func::FuncOp"> {
  let summary = "cast, transpose and reshape outside a loop what is the same in every iteration";
  let description = [{
    Before: anything.
    After: casts, transposes and reshapes of tensors from outside a loop are outside, so
    that a weight that several microbatches read is quantized once. A tensor that a loop
    or branch only hands on counts as outside. Nothing that repeats elements is moved,
    and nothing else.

    Example:
    ```mlir
    // fp8-opt --fp8-hoist-casts
    func.func @f(%w: tensor<8xf32>, %x: tensor<8xbf16>, %n: index) -> tensor<8xbf16> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<8xbf16>) {
        %b = arith.truncf %w : tensor<8xf32> to tensor<8xbf16>
        %z = arith.mulf %y, %b : tensor<8xbf16>
        scf.yield %z : tensor<8xbf16>
      }
      return %r : tensor<8xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%w: tensor<8xf32>, %x: tensor<8xbf16>, %n: index) -> tensor<8xbf16> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %b = arith.truncf %w : tensor<8xf32> to tensor<8xbf16>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<8xbf16>) {
        %z = arith.mulf %y, %b : tensor<8xbf16>
        scf.yield %z : tensor<8xbf16>
      }
      return %r : tensor<8xbf16>
    }
    ```
  }];
}

def RaiseDequantization : Pass<"fp8-raise-dequantization"> {
  let summary = "read the program's own FP8 tensors as bytes and a scale";
  let description = [{
    Before: `fp8-select-sites` has decided every site. Operands may be FP8 already:
    as they stand, or extended and multiplied with (or divided by) a scale of the
    whole tensor, in ops of any granularity.
    After: each such operand of a product without `kept` is the result of an
    `fp8.dequantize` of the bytes; transposes and broadcasts are in the maps of the
    product. Roundings that the program writes between bytes and product are gone:
    the bytes are multiplied as they are and the scale is applied to the sum.
    Kept products read what the program wrote.

    Example:
    ```mlir
    // fp8-opt --fp8-raise-dequantization
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xf8E4M3FN>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %scale = arith.constant 0.125 : f32
      %e = tensor.empty() : tensor<8x16xbf16>
      %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%w : tensor<8x16xf8E4M3FN>) outs(%e : tensor<8x16xbf16>) {
      ^bb0(%in: f8E4M3FN, %out: bf16):
        %a = arith.extf %in : f8E4M3FN to f32
        %m = arith.mulf %a, %scale : f32
        %t = arith.truncf %m : f32 to bf16
        linalg.yield %t : bf16
      } -> tensor<8x16xbf16>
      %y = fp8.matmul ins(%x, %d : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xf8E4M3FN>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
      ...
      %s = tensor.from_elements %cst_1 : tensor<f32>
      %e = tensor.empty() : tensor<8x16xbf16>
      %d = fp8.dequantize ins(%w : tensor<8x16xf8E4M3FN>) scale_inv(%s : tensor<f32>) outs(%e : tensor<8x16xbf16>) -> tensor<8x16xbf16>
      %y = fp8.matmul ins(%x, %d : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#map, #map1, #map2]} -> tensor<4x16xf32>
      ...
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ApplyRecipe : Pass<"fp8-apply-recipe", "::mlir::ModuleOp"> {
  let summary = "turn the chosen matrix products into FP8 products of quantized tensors";
  let description = [{
    Before: `fp8-select-sites` has decided every site.
    After: every `fp8.matmul` without `kept` is an `fp8.scaled_matmul` on the
    results of `fp8.quantize`. A tensor is quantized once per format, however many
    sites read it, before the views (reshapes) that they read it through. An
    operand that is the result of an `fp8.dequantize` is read as those bytes with
    that scale; a product of two of them needs no recipe and has none.

    A stateful recipe gives every quantized tensor a column of the state, which
    becomes two arguments at the end of each function, `scale: tensor<Nxf32>` and
    `amax_history: tensor<HxNxf32>`, and two results, aliased to them, with what
    `fp8.update_amax_history` made of them. Amaxes that are recorded inside `scf.for`,
    `scf.while`, `scf.if`, `scf.index_switch` or `scf.forall` leave it as one more
    result, the maximum over the iterations; a branch that is not taken gives 0, which
    leaves the column as it is. Functions of one module share the columns. A function without gradients is evaluation: it reads the state and
    gets no results, unless `calibrate` is set.

    Roles whose recipes differ in format only share columns where their format is
    the same, and one update.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(fp8-apply-recipe{recipe=#fp8.current_scaling})'
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.matmul site("fc") role(fprop) kinds(input, weight)
        ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %e0 = tensor.empty() : tensor<f32>
      %wa = fp8.amax ins(%w : tensor<8x16xbf16>) outs(%e0 : tensor<f32>) -> tensor<f32>
      %e1 = tensor.empty() : tensor<f32>
      %ws = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) input_type(bf16)
        ins(%wa : tensor<f32>) outs(%e1 : tensor<f32>) -> tensor<f32>
      %e2 = tensor.empty() : tensor<8x16xf8E4M3FN>
      %e3 = tensor.empty() : tensor<f32>
      %wq, %wi = fp8.quantize ins(%w : tensor<8x16xbf16>) scale(%ws : tensor<f32>)
        outs(%e2, %e3 : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
      %e4 = tensor.empty() : tensor<f32>
      %xa = fp8.amax ins(%x : tensor<4x8xbf16>) outs(%e4 : tensor<f32>) -> tensor<f32>
      %e5 = tensor.empty() : tensor<f32>
      %xs = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) input_type(bf16)
        ins(%xa : tensor<f32>) outs(%e5 : tensor<f32>) -> tensor<f32>
      %e6 = tensor.empty() : tensor<4x8xf8E4M3FN>
      %e7 = tensor.empty() : tensor<f32>
      %xq, %xi = fp8.quantize ins(%x : tensor<4x8xbf16>) scale(%xs : tensor<f32>)
        outs(%e6, %e7 : tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf8E4M3FN>, tensor<f32>
      %y = fp8.scaled_matmul site("fc") role(fprop) recipe(#fp8.current_scaling) fast
        ins(%xq, %wq : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
        scales(%xi, %wi : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
  }];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"#fp8.delayed_scaling\"", "the recipe, as an attribute">,
    Option<"calibrate", "calibrate", "bool", "false", "functions without gradients update the state too">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PrepareRecipeFunctions : Pass<"fp8-prepare-recipe-functions", "::mlir::ModuleOp"> {
  let summary = "functions that recipes name become private and know the length of their columns";
  let description = [{
    Before: `fp8.update_amax_history` and `fp8.compute_scale` may have a `#fp8.custom`
    that names functions; calls in those are inlined.
    After: those functions are private, so no entries of the program; one that takes a
    column takes it with as many rows as the history has, so that what it computes with
    has static shapes. Effects in them are errors.

    Example:
    ```mlir
    // fp8-opt --fp8-prepare-recipe-functions
    func.func @first(%column: tensor<?xf32>) -> f32 {
      %zero = arith.constant 0 : index
      %current = tensor.extract %column[%zero] : tensor<?xf32>
      return %current : f32
    }
    func.func @f(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
      %s1, %h1 = fp8.update_amax_history
        recipe(#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 4>, amax = @first>)
        columns [0] formats [f8E4M3FN] ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>)
        -> tensor<1xf32>, tensor<4x1xf32>
      return %s1, %h1 : tensor<1xf32>, tensor<4x1xf32>
    }
    ```
    becomes
    ```mlir
    func.func private @first(%rows: tensor<4xf32>) -> f32 {
      %column = tensor.cast %rows : tensor<4xf32> to tensor<?xf32>
      %zero = arith.constant 0 : index
      %current = tensor.extract %column[%zero] : tensor<?xf32>
      return %current : f32
    }
    func.func @f(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
      %s1, %h1 = fp8.update_amax_history
        recipe(#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 4>, amax = @first>)
        columns [0] formats [f8E4M3FN] ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>)
        -> tensor<1xf32>, tensor<4x1xf32>
      return %s1, %h1 : tensor<1xf32>, tensor<4x1xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Stage 3: fusion
//===----------------------------------------------------------------------===//

def MergeQuantizes : Pass<"fp8-merge-quantizes", "::mlir::func::FuncOp"> {
  let summary = "one quantize per tensor, format and scale";
  let description = [{
    Before: common subexpressions are gone, so equal tensors are one value.
    After: of several quantizes of one tensor in one format with one scale, in
    one block, the first is left; it records amax where any of them did.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-merge-quantizes))'
    func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>, %e: tensor<f32>)
        -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>) {
      %q0, %i0 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
      %q1, %i1, %a = fp8.quantize record_amax ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %e, %e : tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>)
        -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
      return %q0, %q1, %a : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>, %e: tensor<f32>)
        -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>) {
      %z = tensor.empty() : tensor<f32>
      %q0, %i0, %a = fp8.quantize record_amax ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %e, %z : tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>)
        -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
      return %q0, %q0, %a : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

include "fp8/Dialect/FP8/Transforms/FusionPasses.td"

//===----------------------------------------------------------------------===//
// Stage 4: batching
//===----------------------------------------------------------------------===//

def BatchAmaxUpdates : Pass<"fp8-batch-amax-updates", "::mlir::func::FuncOp"> {
  let summary = "one amax vector, one reduction and one history update per update point";
  let description = [{
    Before: each column has its own `fp8.all_reduce` and
    `fp8.update_amax_history`, one chained to the next.
    After: a chain is one update on one vector that all amaxes are inserted in,
    reduced over the ranks once.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-batch-amax-updates))'
    func.func @f(%a: tensor<1xf32>, %b: tensor<1xf32>, %e: tensor<1xf32>, %s: tensor<2xf32>, %h: tensor<4x2xf32>)
        -> (tensor<2xf32>, tensor<4x2xf32>) {
      %ra = fp8.all_reduce max group("amax") ins(%a : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
      %s0, %h0 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
        columns [0] formats [f8E4M3FN] ins(%ra : tensor<1xf32>)
        outs(%s, %h : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
      %rb = fp8.all_reduce max group("amax") ins(%b : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
      %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
        columns [1] formats [f8E5M2] ins(%rb : tensor<1xf32>)
        outs(%s0, %h0 : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
      return %s1, %h1 : tensor<2xf32>, tensor<4x2xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%a: tensor<1xf32>, %b: tensor<1xf32>, %e: tensor<1xf32>, %s: tensor<2xf32>, %h: tensor<4x2xf32>)
        -> (tensor<2xf32>, tensor<4x2xf32>) {
      %v = tensor.empty() : tensor<2xf32>
      %v0 = tensor.insert_slice %a into %v[0] [1] [1] : tensor<1xf32> into tensor<2xf32>
      %v1 = tensor.insert_slice %b into %v0[1] [1] [1] : tensor<1xf32> into tensor<2xf32>
      %e2 = tensor.empty() : tensor<2xf32>
      %r = fp8.all_reduce max group("amax") ins(%v1 : tensor<2xf32>) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
      %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
        columns [0, 1] formats [f8E4M3FN, f8E5M2] ins(%r : tensor<2xf32>)
        outs(%s, %h : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
      return %s1, %h1 : tensor<2xf32>, tensor<4x2xf32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Stage 5: bufferization
//===----------------------------------------------------------------------===//

include "fp8/Dialect/FP8/Transforms/BufferizePasses.td"

//===----------------------------------------------------------------------===//
// Pairs: around what looks at forward and backward as one
//===----------------------------------------------------------------------===//

def JoinPair : Pass<"fp8-join-pair", "::mlir::ModuleOp"> {
  let summary = "make one function of the forward and backward functions of a step";
  let description = [{
    Before: `fp8.backward = @B` on a function names its backward, `fp8.residual` marks
    the results that it hands over and the arguments of B that receive them; the option
    `pair` sets these marks. Without marks nothing happens.
    After: the first function holds both bodies, `fp8.end_forward` between them, which
    stands for the caller: it takes forward's results and returns backward's arguments, but
    for the residuals. The results are those of both; B keeps its arguments and results and
    returns poison. Casts, views, rearrangements, fills and constants of forward values that backward makes for
    itself are in forward, one of each: a tensor that both read is one value. What else
    backward computes again stays where it is.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(fp8-join-pair{pair=forward:backward})'
    func.func @forward(%w: tensor<4xf32>, %x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xf32>) {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %y = arith.mulf %x, %b : tensor<4xbf16>
      return %y, %w : tensor<4xbf16>, tensor<4xf32>
    }
    func.func @backward(%w: tensor<4xf32>, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %dx = arith.mulf %dy, %b : tensor<4xbf16>
      return %dx : tensor<4xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @forward(%w: tensor<4xf32>, %x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %y = arith.mulf %x, %b : tensor<4xbf16>
      %dy = fp8.end_forward @backward given(%y : tensor<4xbf16>) -> tensor<4xbf16>
      %dx = arith.mulf %dy, %b : tensor<4xbf16>
      return %y, %dx : tensor<4xbf16>, tensor<4xbf16>
    }
    func.func @backward(%w: tensor<4xf32> {fp8.residual}, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
      %p = ub.poison : tensor<4xbf16>
      return %p : tensor<4xbf16>
    }
    ```
  }];
  let options = [
    Option<"pair", "pair", "std::string", "\"\"",
           "FORWARD:BACKWARD[:K]: results K… (default 1) of the first are arguments 0… of the second">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::ub::UBDialect"];
}

def SplitPair : Pass<"fp8-split-pair", "::mlir::ModuleOp"> {
  let summary = "make two functions again of a joined forward and backward";
  let description = [{
    Before: a function with `fp8.end_forward`.
    After: two functions with the marks that `fp8-join-pair` reads. Arguments and results
    of the user are as they were. Residuals are the last results of the first and the
    first arguments of the second: the fewest bytes from which backward gets what it
    reads of forward by repeating casts, views, rearrangements, fills, constants and FP8
    casts (with the same scale: the same bytes; no amax is recorded again). The state, if
    there is any, follows: arguments and results of both.

    Example:
    ```mlir
    // fp8-opt --fp8-split-pair
    func.func @forward(%w: tensor<4xf32>, %x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %y = arith.mulf %x, %b : tensor<4xbf16>
      %dy = fp8.end_forward @backward given(%y : tensor<4xbf16>) -> tensor<4xbf16>
      %dx = arith.mulf %dy, %b : tensor<4xbf16>
      return %y, %dx : tensor<4xbf16>, tensor<4xbf16>
    }
    func.func @backward(%w: tensor<4xf32> {fp8.residual}, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
      %p = ub.poison : tensor<4xbf16>
      return %p : tensor<4xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @forward(%w: tensor<4xf32>, %x: tensor<4xbf16>)
        -> (tensor<4xbf16>, tensor<4xbf16> {fp8.residual}) attributes {fp8.backward = @backward} {
      %b = arith.truncf %w : tensor<4xf32> to tensor<4xbf16>
      %y = arith.mulf %x, %b : tensor<4xbf16>
      return %y, %b : tensor<4xbf16>, tensor<4xbf16>
    }
    func.func @backward(%b: tensor<4xbf16> {fp8.residual}, %dy: tensor<4xbf16>) -> tensor<4xbf16> {
      %dx = arith.mulf %dy, %b : tensor<4xbf16>
      return %dx : tensor<4xbf16>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect"];
}

//===----------------------------------------------------------------------===//
// Between the stages
//===----------------------------------------------------------------------===//

def VerifyStage : Pass<"fp8-verify-stage", "::mlir::ModuleOp"> {
  let summary = "check what a stage promises to the next";
  let description = [{
    Changes nothing; anything that breaks the exit contract of `stage` is an error
    at its location:
    - `ingest`: no linalg operation is a contraction of floats; every `fp8.matmul`
      has a site and a role;
    - `recipe`: every `fp8.matmul` says why it was kept; an `fp8.scaled_matmul`
      with a recipe has an operand that comes from `fp8.quantize` (or is an
      argument); others are on the program's own bytes;
      public functions hold their state in their last arguments;
    - `fusion`: one quantize per tensor, format and scale;
    - `batching`: at most one `fp8.update_amax_history` per update point (one per
      function now) and one `fp8.all_reduce` before it;
    - `bufferize`: no tensors;
    - `kernels`: no operation of the fp8 dialect.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(fp8-verify-stage{stage=ingest})'
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"stage", "stage", "std::string", "\"ingest\"",
           "ingest, recipe, fusion, batching, bufferize or kernels">
  ];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
