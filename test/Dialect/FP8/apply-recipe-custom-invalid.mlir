// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Custom recipes that ask for more than there is, and recipes that are none.
// RUN: split-file %s %t
// RUN: fp8-opt %t/two.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="#fp8.custom<base = #fp8.delayed_scaling, wgrad = #fp8.delayed_scaling<margin = 1>>"})'
// RUN: fp8-opt %t/function.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="#fp8.custom<base = #fp8.delayed_scaling, scale = @f>"})'
// RUN: fp8-opt %t/function.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="#fp8.custom<base = #fp8.current_scaling, amax = @f>"})'
// RUN: fp8-opt %t/none.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="unit"})'

//--- two.mlir
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @two(%a: tensor<8x8xbf16>, %b: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) -> (tensor<8x8xbf16>, tensor<8x8xbf16>) {
  %0 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%a, %b : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  // expected-error@+1 {{recipes #fp8.delayed_scaling and #fp8.delayed_scaling<margin = 1> both keep a history; a program has one, so use one of them}}
  %1 = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%a, %0 : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  return %0, %1 : tensor<8x8xbf16>, tensor<8x8xbf16>
}

//--- function.mlir
// expected-error@below {{functions for scale or amax in #fp8.custom are not available yet; use a recipe per role}}
module {}

//--- none.mlir
// expected-error@below {{is not a recipe attribute}}
module {}
