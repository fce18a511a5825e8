// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// RUN: fp8-opt %s --fp8-keep-parameters | FileCheck %s --enable-var-scope

// Training casts the new weight with the new scale, evaluation reads the same bytes, and the scale of w2,
// whose new value @main does not compute, would be out of date.
// A result that nothing reads (scale_inv here) is not kept.

// CHECK: module attributes {fp8.parameter_casts = [
// CHECK-SAME: {bytes = 132 : i64, copy_bytes = 256 : i64, entry = "main", kept = true, reason = "", site = "fc"},
// CHECK-SAME: {bytes = 0 : i64, copy_bytes = 0 : i64, entry = "main", kept = false, reason = "'main' changes its scale and does not compute its new value (--recipe=current has no scales that change)", site = "fixed"},
// CHECK-SAME: {bytes = 0 : i64, copy_bytes = 0 : i64, entry = "main", kept = false, reason = "its cast is inside 'scf.for'", site = "loop"},
// CHECK-SAME: {bytes = 0 : i64, copy_bytes = 0 : i64, entry = "main", kept = false, reason = "it is computed from 'arg6'", site = "seeded"},
// CHECK-SAME: {bytes = 0 : i64, copy_bytes = 0 : i64, entry = "evaluate", kept = true, reason = "", site = "fc"},
// CHECK-SAME: {bytes = 0 : i64, copy_bytes = 0 : i64, entry = "evaluate", kept = false, reason = "it is a constant", site = "constant"},
// CHECK-SAME: {bytes = 0 : i64, copy_bytes = 0 : i64, entry = "evaluate", kept = false, reason = "its size is not known", site = "dynamic"},
// CHECK-SAME: {bytes = 128 : i64, copy_bytes = 0 : i64, entry = "evaluate", kept = true, reason = "", site = "fc"}]

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[DATA:[a-z0-9]+]]: tensor<8x16xf8E4M3FN> {fp8.derived, fp8.initial = dense<0x7F> : tensor<8x16xf8E4M3FN>, fp8.program_state = "weight/fc/data", tf.aliasing_output = [[R:[0-9]+]] : i32}
// CHECK-SAME: %[[AMAX:[a-z0-9]+]]: tensor<f32> {fp8.derived, fp8.initial = dense<0x7FC00000> : tensor<f32>, fp8.program_state = "weight/fc/amax"
// CHECK-SAME: fp8.parameters = {arguments = array<i64: 0>, casts = [{arguments = array<i64: 0>, tensors = ["weight/fc/data", "weight/fc/amax"]}], entry = "main_fp8_parameters"}
// CHECK: %[[NEW:.+]] = arith.negf %arg0
// CHECK: %[[STATE:.+]]:2 = fp8.update_amax_history {{.*}} ins(%{{.*}} : tensor<1xf32>)
// CHECK: %[[COPY:.+]] = arith.truncf %[[NEW]]
// CHECK: %[[SCALE:.+]] = tensor.extract_slice %[[STATE]]#0[0] [1] [1]
// CHECK: %[[CAST:.+]]:3 = fp8.quantize record_amax column(0) ins(%[[COPY]] : tensor<8x16xbf16>) scale(%[[SCALE]] : tensor<f32>)
// CHECK: return %[[NEW]], %[[DATA]], {{.*}}, %[[CAST]]#0, %[[CAST]]#2 :

// CHECK-LABEL: func.func @main_fp8_parameters(%arg0: tensor<8x16xf32>, %arg1: tensor<2xf32> {fp8.state = "scale"}, %arg2: tensor<4x2xf32> {fp8.state = "amax_history"}
// CHECK: fp8.quantize record_amax column(0)

// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: %[[READ:[a-z0-9]+]]: tensor<8x16xf8E4M3FN> {fp8.derived, fp8.initial = dense<0x7F> : tensor<8x16xf8E4M3FN>, fp8.program_state = "weight/fc/data"}
// CHECK-SAME: fp8.program_state = "weight/fc#2/data"
// CHECK-SAME: tensors = ["weight/fc/data"]
// CHECK: return %[[READ]]
// CHECK-LABEL: func.func @evaluate_fp8_parameters
// CHECK-NOT: fp8.weight
func.func @main(%w: tensor<8x16xf32> {tf.aliasing_output = 0 : i32} loc("w"), %fixed: tensor<8x16xf32> loc("fixed"),
                %n: index, %a: tensor<f32>, %scale: tensor<2xf32> {fp8.state = "scale", tf.aliasing_output = 3 : i32},
                %history: tensor<4x2xf32> {fp8.state = "amax_history", tf.aliasing_output = 4 : i32},
                %seed: tensor<8x16xf32> {fp8.program_state = "seed", fp8.initial = dense<0.0> : tensor<8x16xf32>})
    -> (tensor<8x16xf32>, tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<2xf32> {fp8.state = "scale"},
        tensor<4x2xf32> {fp8.state = "amax_history"}, tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>) {
  %c = arith.truncf %w : tensor<8x16xf32> to tensor<8x16xbf16>
  %s = tensor.extract_slice %scale[0] [1] [1] : tensor<2xf32> to tensor<f32>
  %d = tensor.empty() : tensor<8x16xf8E4M3FN>
  %f = tensor.empty() : tensor<f32>
  %q:3 = fp8.quantize record_amax column(0) ins(%c : tensor<8x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %f, %f : tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>) {fp8.weight = "fc"}
    -> tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  %s1 = tensor.extract_slice %scale[1] [1] [1] : tensor<2xf32> to tensor<f32>
  %p:2 = fp8.quantize column(1) ins(%fixed : tensor<8x16xf32>) scale(%s1 : tensor<f32>)
    outs(%d, %f : tensor<8x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "fixed"} -> tensor<8x16xf8E4M3FN>, tensor<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%old = %d) -> tensor<8x16xf8E4M3FN> {
    %z:2 = fp8.quantize ins(%fixed : tensor<8x16xf32>) scale(%a : tensor<f32>)
      outs(%old, %f : tensor<8x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "loop"} -> tensor<8x16xf8E4M3FN>, tensor<f32>
    scf.yield %z#0 : tensor<8x16xf8E4M3FN>
  }
  %y:2 = fp8.quantize ins(%seed : tensor<8x16xf32>) scale(%a : tensor<f32>)
    outs(%d, %f : tensor<8x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "seeded"} -> tensor<8x16xf8E4M3FN>, tensor<f32>
  %new = arith.negf %w : tensor<8x16xf32>
  %amaxes = tensor.expand_shape %q#2 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %state:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
    ins(%amaxes : tensor<1xf32>) outs(%scale, %history : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
  return %new, %q#0, %p#0, %state#0, %state#1, %l, %y#0 : tensor<8x16xf32>, tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<2xf32>, tensor<4x2xf32>, tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>
}

func.func @evaluate(%w: tensor<8x16xf32> loc("w"), %v: tensor<?x16xf32> loc("v"), %scale: tensor<2xf32> {fp8.state = "scale"},
                    %history: tensor<4x2xf32> {fp8.state = "amax_history"})
    -> (tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<?x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>) {
  %c = arith.truncf %w : tensor<8x16xf32> to tensor<8x16xbf16>
  %s = tensor.extract_slice %scale[0] [1] [1] : tensor<2xf32> to tensor<f32>
  %d = tensor.empty() : tensor<8x16xf8E4M3FN>
  %f = tensor.empty() : tensor<f32>
  %q:2 = fp8.quantize column(0) ins(%c : tensor<8x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %f : tensor<8x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "fc"} -> tensor<8x16xf8E4M3FN>, tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %k = arith.constant dense<2.0> : tensor<8x16xf32>
  %p:2 = fp8.quantize ins(%k : tensor<8x16xf32>) scale(%one : tensor<f32>)
    outs(%d, %f : tensor<8x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "constant"} -> tensor<8x16xf8E4M3FN>, tensor<f32>
  %c0 = arith.constant 0 : index
  %size = tensor.dim %v, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%size) : tensor<?x16xf8E4M3FN>
  %r:2 = fp8.quantize ins(%v : tensor<?x16xf32>) scale(%one : tensor<f32>)
    outs(%e, %f : tensor<?x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "dynamic"} -> tensor<?x16xf8E4M3FN>, tensor<f32>
  // Another cast of the same weight is another tensor.
  %t:2 = fp8.quantize ins(%w : tensor<8x16xf32>) scale(%one : tensor<f32>)
    outs(%d, %f : tensor<8x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "fc"} -> tensor<8x16xf8E4M3FN>, tensor<f32>
  return %q#0, %p#0, %r#0, %t#0 : tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<?x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>
}
