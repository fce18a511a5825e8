// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An operation that only looks like a matmul of floats stays, and the report says why.
// RUN: fp8-compile %s -o %t --emit=fusion --report=json:%t.json
// RUN: FileCheck %s --input-file=%t.json --check-prefix=JSON
// RUN: fp8-compile %s -o %t --emit=fusion --report=text | FileCheck %s --check-prefix=TEXT

// JSON: "others": [
// JSON: "op": "linalg.matmul",
// JSON-NEXT: "reason": "multiplies integers"
// JSON: "op": "linalg.batch_matmul",
// JSON-NEXT: "reason": "multiplies complex numbers"
// JSON: "reason": "combines elements with arith.maximumf, which is no sum"
// JSON: "reason": "its body depends on the indices"
// JSON: "op": "linalg.conv_1d_nwc_wcf",
// JSON-NEXT: "reason": "convolution"
// JSON: "op": "linalg.pooling_nwc_max",
// JSON-NEXT: "reason": "pooling: nothing is multiplied"
// JSON: "reason": "its products are rounded to bf16 before they are added"
// JSON: "op": "linalg.quantized_matmul",
// JSON-NEXT: "reason": "multiplies integers"
// JSON: "op": "linalg.generic",
// JSON-NEXT: "reason": "multiplies more than two tensors"
// JSON-NOT: "op":
// JSON: "sites": []

// TEXT: 0 contractions: 0 in FP8, 0 in high precision
// TEXT: not a matmul of floats {{ *}}why {{ *}}where
// TEXT-NEXT: linalg.matmul {{ *}}multiplies integers {{ *}}step/count ({{.*}}look-alikes.mlir:[[#]]:[[#]])

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @main(%i: tensor<4x4xi32>, %c: tensor<2x4x4xcomplex<f32>>, %x: tensor<4x4xf32>, %s: tensor<2x8x3xf32>,
                %f: tensor<3x3x5xf32>, %h: tensor<4x4xbf16>, %v: tensor<4xbf16>, %g: tensor<4xf32>)
    -> (tensor<4x4xi32>, tensor<2x4x4xcomplex<f32>>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x6x5xf32>, tensor<2x6x3xf32>,
        tensor<4xbf16>, tensor<4x4xi32>, tensor<4x4xf32>) {
  %0 = linalg.matmul ins(%i, %i : tensor<4x4xi32>, tensor<4x4xi32>) outs(%i : tensor<4x4xi32>) -> tensor<4x4xi32> loc("step/count"("look-alikes.mlir":1:2))
  %1 = linalg.batch_matmul ins(%c, %c : tensor<2x4x4xcomplex<f32>>, tensor<2x4x4xcomplex<f32>>) outs(%c : tensor<2x4x4xcomplex<f32>>) -> tensor<2x4x4xcomplex<f32>>
  %2 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.addf %a, %b : f32
    %m = arith.maximumf %acc, %p : f32
    linalg.yield %m : f32
  } -> tensor<4x4xf32>
  %3 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %k = linalg.index 2 : index
    %ki = arith.index_cast %k : index to i32
    %kf = arith.sitofp %ki : i32 to f32
    %w = arith.mulf %b, %kf : f32
    %p = arith.mulf %a, %w : f32
    %m = arith.addf %acc, %p : f32
    linalg.yield %m : f32
  } -> tensor<4x4xf32>
  %e4 = tensor.empty() : tensor<2x6x5xf32>
  %4 = linalg.conv_1d_nwc_wcf ins(%s, %f : tensor<2x8x3xf32>, tensor<3x3x5xf32>) outs(%e4 : tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  %e5 = tensor.empty() : tensor<2x6x3xf32>
  %window = tensor.empty() : tensor<3xf32>
  %5 = linalg.pooling_nwc_max ins(%s, %window : tensor<2x8x3xf32>, tensor<3xf32>) outs(%e5 : tensor<2x6x3xf32>) -> tensor<2x6x3xf32>
  %eh = tensor.empty() : tensor<4x4xbf16>
  %bh = linalg.broadcast ins(%v : tensor<4xbf16>) outs(%eh : tensor<4x4xbf16>) dimensions = [0]
  %ph = linalg.mul ins(%h, %bh : tensor<4x4xbf16>, tensor<4x4xbf16>) outs(%eh : tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %6 = linalg.reduce { arith.addf } ins(%ph : tensor<4x4xbf16>) outs(%v : tensor<4xbf16>) dimensions = [1]
  %z = arith.constant 0 : i32
  %8 = linalg.quantized_matmul ins(%i, %i, %z, %z : tensor<4x4xi32>, tensor<4x4xi32>, i32, i32) outs(%i : tensor<4x4xi32>) -> tensor<4x4xi32>
  %9 = linalg.generic {indexing_maps = [#mk, #kn, affine_map<(m, n, k) -> (k)>, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x, %g : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %w: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %w : f32
    %m = arith.addf %acc, %q : f32
    linalg.yield %m : f32
  } -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4, %5, %6, %8, %9 : tensor<4x4xi32>, tensor<2x4x4xcomplex<f32>>, tensor<4x4xf32>, tensor<4x4xf32>,
    tensor<2x6x5xf32>, tensor<2x6x3xf32>, tensor<4xbf16>, tensor<4x4xi32>, tensor<4x4xf32>
}
