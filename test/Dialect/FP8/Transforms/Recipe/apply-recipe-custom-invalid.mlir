// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Custom recipes that ask for more than there is, and recipes that are none.
// RUN: split-file %s %t
// RUN: fp8-opt %t/two.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="#fp8.custom<base = #fp8.delayed_scaling, wgrad = #fp8.delayed_scaling<amax_history_len = 4>>"})'
// RUN: fp8-opt %t/missing.mlir -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="#fp8.custom<base = #fp8.delayed_scaling, scale = @f>"})'
// RUN: fp8-opt %t/scale.mlir -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="#fp8.custom<base = #fp8.delayed_scaling, scale = @f>"})'
// RUN: fp8-opt %t/amax.mlir -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 16>, amax = @f>"})'
// RUN: fp8-opt %t/none.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-apply-recipe{recipe="unit"})'

//--- two.mlir
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @two(%a: tensor<8x8xbf16>, %b: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) -> (tensor<8x8xbf16>, tensor<8x8xbf16>) {
  %0 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%a, %b : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  // expected-error@+1 {{recipes #fp8.delayed_scaling and #fp8.delayed_scaling<amax_history_len = 4> keep 1024 and 4 amaxes of a tensor; a program has one length of the history, so give both the same}}
  %1 = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%a, %0 : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  return %0, %1 : tensor<8x8xbf16>, tensor<8x8xbf16>
}

//--- missing.mlir
// expected-error@below {{the recipe's scale = @f names no function with a body in this module}}
module {}

// -----

// expected-error@below {{the recipe's scale = @f names no function with a body in this module}}
module {
  func.func private @f(f32, f32, f32) -> f32
}

// -----

// expected-error@below {{the recipe's scale = @f names no function with a body in this module}}
module {
  memref.global @f : memref<4xf32>
}

//--- scale.mlir
// expected-error@+1 {{'f' is the recipe's function for scale and must be (amax: f32, fp8_max: f32, old: f32) -> f32}}
func.func @f(%amax: f32, %max: f32) -> f32 {
  return %amax : f32
}

// -----

// expected-error@+1 {{'f' is the recipe's function for scale and must be (amax: f32, fp8_max: f32, old: f32) -> f32}}
func.func @f(%amax: f32, %max: f32, %old: f64) -> f32 {
  return %amax : f32
}

// -----

// expected-error@+1 {{'f' is the recipe's function for scale and must be (amax: f32, fp8_max: f32, old: f32) -> f32}}
func.func @f(%amax: f32, %max: f32, %old: f32) -> (f32, f32) {
  return %amax, %old : f32, f32
}

// -----

// expected-error@+1 {{'f' is named by the recipe and branches between blocks: use structured control flow (scf)}}
func.func @f(%amax: f32, %max: f32, %old: f32) -> f32 {
  cf.br ^end
^end:
  return %amax : f32
}

//--- amax.mlir
// expected-error@+1 {{'f' is the recipe's function for amax and must be (column: tensor<?xf32>) -> f32}}
func.func @f(%column: tensor<15xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  return %zero : f32
}

// -----

// expected-error@+1 {{'f' is the recipe's function for amax and must be (column: tensor<?xf32>) -> f32}}
func.func @f(%column: tensor<?x?xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  return %zero : f32
}

// -----

// expected-error@+1 {{'f' is the recipe's function for amax and must be (column: tensor<?xf32>) -> f32}}
func.func @f(%column: tensor<?xf32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  return %zero : tensor<f32>
}

//--- none.mlir
// expected-error@below {{is not a recipe attribute}}
module {}
