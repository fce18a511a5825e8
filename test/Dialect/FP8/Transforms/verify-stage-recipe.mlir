// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The IR that the recipe stage must leave behind: casts before matmuls, the state at the end.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(fp8-verify-stage{stage=recipe})'

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @not_cast(%x: tensor<8x8xbf16>, %s: tensor<f32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = arith.truncf %x : tensor<8x8xbf16> to tensor<8x8xf8E4M3FN>
  // expected-error@+1 {{after recipe: this fp8.scaled_matmul has a recipe, but no operand comes from an fp8.quantize}}
  %0 = fp8.scaled_matmul recipe(#fp8.current_scaling) fast ins(%y, %y : tensor<8x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>)
      scales(%s, %s : tensor<f32>, tensor<f32>) outs(%c : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]}
      -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// expected-error@+1 {{after recipe: argument 0 is the state tensor 'scale'; state must be the last arguments, scale and amax_history}}
func.func @state_first(%s: tensor<2xf32> {fp8.state = "scale"}, %h: tensor<4x2xf32> {fp8.state = "amax_history"}, %x: tensor<f32>) {
  return
}

// -----

// expected-error@+1 {{after recipe: argument 1 is the state tensor 'amax_history'; state must be the last arguments, scale and amax_history}}
func.func @state_exchanged(%x: tensor<f32>, %h: tensor<4x2xf32> {fp8.state = "amax_history"}, %s: tensor<2xf32> {fp8.state = "scale"}) {
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// The user's own FP8 bytes need no cast, however they are made; the state where it belongs.
func.func @good(%x: tensor<8x8xbf16>, %q: tensor<8x8xf8E4M3FN>, %i: tensor<f32>, %c: tensor<8x8xf32>, %s: tensor<2xf32> {fp8.state = "scale"},
                %h: tensor<4x2xf32> {fp8.state = "amax_history"}) -> tensor<8x8xf32> {
  %y = arith.truncf %x : tensor<8x8xbf16> to tensor<8x8xf8E4M3FN>
  %0 = fp8.scaled_matmul fast ins(%q, %y : tensor<8x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>)
      scales(%i, %i : tensor<f32>, tensor<f32>) outs(%c : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]}
      -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
