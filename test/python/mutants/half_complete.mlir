// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IR of the dialect as nobody's pass leaves it: operations alone, without what makes their
// operands, with half of a pair or of the state. Each is right or an error; none is a crash.

func.func @matmul_alone(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %y = fp8.matmul site("a") role(dgrad) kinds(grad_output, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

func.func @matmul_without_site(%x: tensor<?x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = fp8.matmul ins(%x, %w : tensor<?x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<?x16xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

func.func @quantize_of_poison() -> (tensor<4xf8E4M3FN>, tensor<f32>) {
  %x = ub.poison : tensor<4xf32>
  %s = ub.poison : tensor<f32>
  %d = tensor.empty() : tensor<4xf8E4M3FN>
  %e = tensor.empty() : tensor<f32>
  %q, %i = fp8.quantize column(7) ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
    outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  return %q, %i : tensor<4xf8E4M3FN>, tensor<f32>
}

// -----

func.func @quantize_records_for_nobody(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf8E4M3FN> {
  %d = tensor.empty() : tensor<4xf8E4M3FN>
  %e = tensor.empty() : tensor<f32>
  %q, %i, %a = fp8.quantize record_amax column(0) ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
    outs(%d, %e, %e : tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %q : tensor<4xf8E4M3FN>
}

// -----

func.func @end_forward_of_nobody(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = fp8.end_forward @nobody given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @end_forward_of_a_function(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = fp8.end_forward @backward given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %y, %y : tensor<4xf32>, tensor<4xf32>
}
func.func @backward(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @end_forward_of_too_little(%x: tensor<4xf32>) -> tensor<4xf32> {
  fp8.end_forward @backward
  return %x : tensor<4xf32>
}
func.func @backward(%a: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %p = ub.poison : tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

func.func @half_a_pair(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @backward} {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @the_other_half(%x: tensor<4xf32> {fp8.residual}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @backward_is_no_symbol(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual = 3 : i32}) attributes {fp8.backward = "backward"} {
  return %x : tensor<4xf32>
}

// -----

func.func @returned_beyond(%x: tensor<4xf32> {fp8.returned = 5 : i32}, %y: tensor<4xf32> {fp8.returned = -1 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @carried_beyond(%x: tensor<4xf32> {tf.aliasing_output = 5 : i32}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @marks_of_other_kinds(%x: tensor<4xf32> {tf.aliasing_output = "no", fp8.result = 2.0 : f32, fp8.returned = @f}) -> (tensor<4xf32> {fp8.state = 1 : i32}) {
  return %x : tensor<4xf32>
}

// -----

func.func @result_beyond(%x: tensor<4xf32> {fp8.result = 9 : i32}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @scale_without_history(%x: tensor<4xf32>, %s: tensor<1xf32> {fp8.state = "scale"}) -> (tensor<4xf32>, tensor<1xf32> {fp8.state = "scale"}) {
  return %x, %s : tensor<4xf32>, tensor<1xf32>
}

// -----

func.func @history_without_scale(%x: tensor<4xf32>, %h: tensor<4x1xf32> {fp8.state = "amax_history"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @state_of_another_name(%x: tensor<4xf32> {fp8.state = "other"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

module attributes {fp8.state_columns = [], fp8.amax_history_len = 4 : i64} {
  func.func @columns_of_nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {fp8.state_columns = [{sites = ["a"]}], fp8.amax_history_len = 4 : i64} {
  func.func @columns_without_format(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {fp8.state_columns = [3 : i32], fp8.amax_history_len = "long"} {
  func.func @columns_of_other_kinds(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

func.func @update_alone(%a: tensor<2xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
  %u:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [5, 0] formats [f8E4M3FN, f8E5M2]
    ins(%a : tensor<2xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  return %u#0, %u#1 : tensor<1xf32>, tensor<4x1xf32>
}

// -----

func.func @updates_of_poison(%s: tensor<1xf32>) -> tensor<1xf32> {
  %a = ub.poison : tensor<1xf32>
  %h = ub.poison : tensor<4x1xf32>
  %u:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
    ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  %v:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
    ins(%a : tensor<1xf32>) outs(%s, %u#1 : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  return %v#0 : tensor<1xf32>
}

// -----

func.func @all_reduce_alone(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r = fp8.all_reduce max on(4) axes [] ins(%a : tensor<2xf32>) outs(%a : tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @scaled_matmul_of_arguments(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E5M2>, %a: tensor<f32>, %b: tensor<f32>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %y = fp8.scaled_matmul ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E5M2>) scales(%a, %b : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xf32>)
    {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

func.func @in_a_loop(%x: tensor<4x8xf32>, %s: tensor<f32>, %n: index) -> tensor<8xf8E4M3FN> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = tensor.empty() : tensor<8xf8E4M3FN>
  %e = tensor.empty() : tensor<f32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %d) -> (tensor<8xf8E4M3FN>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
    %q, %t, %a = fp8.quantize record_amax column(0) ins(%row : tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%old, %e, %e : tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>
    scf.yield %q : tensor<8xf8E4M3FN>
  }
  return %r : tensor<8xf8E4M3FN>
}

// -----

func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func @public_declaration(tensor<4xf32> {fp8.state = "scale"}) -> tensor<4xf32>

// -----

func.func @pads(%x: tensor<4xf32>, %n: index) -> tensor<?xf32> {
  %z = ub.poison : f32
  %y = tensor.pad %x low[%n] high[-9] {
  ^bb0(%i: index):
    tensor.yield %z : f32
  } : tensor<4xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}
