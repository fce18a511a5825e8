// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products in two ops: which become one. Values: test/python/ingest/test_forms.py.
// RUN: fp8-opt %s --split-input-file --fp8-join-products | FileCheck %s -enable-var-scope

#mk = affine_map<(m, k) -> (m, k)>
#k = affine_map<(m, k) -> (k)>
#m = affine_map<(m, k) -> (m)>

// A vector that is repeated first, a product by name, extensions in the product's body.
// CHECK-DAG: #[[$MK:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$K:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[$M:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @repeated
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[V:.*]]: tensor<8xf32>
// CHECK-NEXT: linalg.generic {indexing_maps = [#[[$MK]], #[[$K]], #[[$M]]], {{.*}}} ins(%[[X]], %[[V]]
// CHECK-NOT: linalg.mul
func.func @repeated(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %e: tensor<4x8xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
  %b = linalg.broadcast ins(%v : tensor<8xf32>) outs(%e : tensor<4x8xf32>) dimensions = [0]
  %p = linalg.mul ins(%x, %b : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.reduce { arith.addf } ins(%p : tensor<4x8xf32>) outs(%i : tensor<4xf32>) dimensions = [1]
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @extended
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x8xbf16>, tensor<8xbf16>) outs(%{{.*}} : tensor<4xf32>)
// CHECK-COUNT-2: arith.extf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NOT: linalg.generic
func.func @extended(%x: tensor<4x8xbf16>, %v: tensor<8xbf16>, %e: tensor<4x8xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
  %p = linalg.generic {indexing_maps = [#mk, #k, #mk], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<4x8xbf16>, tensor<8xbf16>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: bf16, %b: bf16, %out: f32):
    %u = arith.extf %a : bf16 to f32
    %w = arith.extf %b : bf16 to f32
    %q = arith.mulf %u, %w : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#mk, #m], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<4x8xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %a, %out : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Operations that stay: products rounded to bf16, products that are read twice, sums
// without an M or N dimension, a vector along a dimension of size 1.
// CHECK-LABEL: func @kept
// CHECK: linalg.mul
// CHECK: linalg.reduce
// CHECK: arith.mulf
// CHECK: linalg.reduce
// CHECK: linalg.mul
// CHECK: linalg.reduce
// CHECK: linalg.mul
// CHECK: linalg.reduce
func.func @kept(%h: tensor<4x8xbf16>, %x: tensor<4x8xf32>, %u: tensor<1x8xf32>, %i: tensor<4xbf16>, %j: tensor<4xf32>, %l: tensor<1xf32>)
    -> (tensor<4xbf16>, tensor<4xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<1xf32>) {
  %eh = tensor.empty() : tensor<4x8xbf16>
  %v = tensor.extract_slice %h[0, 0] [1, 8] [1, 1] : tensor<4x8xbf16> to tensor<8xbf16>
  %bh = linalg.broadcast ins(%v : tensor<8xbf16>) outs(%eh : tensor<4x8xbf16>) dimensions = [0]
  %p0 = linalg.mul ins(%h, %bh : tensor<4x8xbf16>, tensor<4x8xbf16>) outs(%eh : tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %y0 = linalg.reduce { arith.addf } ins(%p0 : tensor<4x8xbf16>) outs(%i : tensor<4xbf16>) dimensions = [1]
  %e = tensor.empty() : tensor<4x8xf32>
  %w = tensor.extract_slice %x[0, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
  %b = linalg.broadcast ins(%w : tensor<8xf32>) outs(%e : tensor<4x8xf32>) dimensions = [0]
  %p1 = arith.mulf %x, %b : tensor<4x8xf32>
  %y1 = linalg.reduce { arith.addf } ins(%p1 : tensor<4x8xf32>) outs(%j : tensor<4xf32>) dimensions = [1]
  %p2 = linalg.mul ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y2 = linalg.reduce { arith.addf } ins(%p2 : tensor<4x8xf32>) outs(%j : tensor<4xf32>) dimensions = [1]
  %eu = tensor.empty() : tensor<1x8xf32>
  %bu = linalg.broadcast ins(%w : tensor<8xf32>) outs(%eu : tensor<1x8xf32>) dimensions = [0]
  %p3 = linalg.mul ins(%u, %bu : tensor<1x8xf32>, tensor<1x8xf32>) outs(%eu : tensor<1x8xf32>) -> tensor<1x8xf32>
  %y3 = linalg.reduce { arith.addf } ins(%p3 : tensor<1x8xf32>) outs(%l : tensor<1xf32>) dimensions = [1]
  return %y0, %y1, %p1, %y2, %y3 : tensor<4xbf16>, tensor<4xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<1xf32>
}
