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

def RaiseContractions : Pass<"fp8-raise-contractions"> {
  let summary = "turn every contraction of floats into an fp8.matmul";
  let description = [{
    Before: contractions are linalg ops of any kind (named, `linalg.contract`,
    `linalg.generic`), known by their maps and body: a sum of products with at
    least one K dimension. The body may cast anywhere; what else it does to an
    operand first becomes an op of its own.
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
  let summary = "fold transposes, broadcasts and exact casts around an fp8.matmul into it";
  let description = [{
    Before: transposes, broadcasts and casts around an `fp8.matmul` are ops of
    their own, named or generic, in chains.
    After: those that change no value are gone. An operand is read through
    transposes, broadcasts, `tensor.cast` and extensions of bf16 or f16 to f32.
    A result is written through transposes and the rounding of an f32 sum to bf16
    or f16, where that is its only use. An operand that the program rounds stays
    rounded; reshapes stay too, as they cost nothing.

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

//===----------------------------------------------------------------------===//
// Stage 2: recipe
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Stage 3: fusion
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Stage 4: batching
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Stage 5: bufferization
//===----------------------------------------------------------------------===//

#endif // FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
