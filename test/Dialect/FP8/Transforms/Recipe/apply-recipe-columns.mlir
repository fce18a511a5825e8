// RUN: fp8-opt %s --split-input-file --pass-pipeline='builtin.module(fp8-apply-recipe{recipe=#fp8.delayed_scaling<amax_history_len=2>})' | FileCheck %s

// A tensor that one function reads as one is one column in all functions: @train casts x once
// for q and k, so the two casts of @evaluate, which comes first, share that column. Columns
// are in the order of the names of sites, not of the program.

// CHECK: fp8.state_columns = [
// CHECK-SAME: {format = f8E4M3FN, sites = ["k", "q"], tensor = "input"}
// CHECK-SAME: {format = f8E4M3FN, sites = ["k"], tensor = "weight"}
// CHECK-SAME: {format = f8E4M3FN, sites = ["q"], tensor = "weight"}
// CHECK-SAME: {format = f8E5M2, sites = ["q"], tensor = "grad_output"}
// CHECK-NOT: format =
// CHECK-SAME: ]

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @evaluate
func.func @evaluate(%x: tensor<4x4xf32>, %x2: tensor<4x4xf32>, %q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %i: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-DAG: fp8.quantize column(0) ins(%arg0
  // CHECK-DAG: fp8.quantize column(0) ins(%arg1
  // CHECK-DAG: fp8.quantize column(2) ins(%arg2
  // CHECK-DAG: fp8.quantize column(1) ins(%arg3
  // CHECK: return
  %0 = fp8.matmul site("q") role(fprop) kinds(input, weight) ins(%x, %q : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %1 = fp8.matmul site("k") role(fprop) kinds(input, weight) ins(%x2, %k : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @train
func.func @train(%x: tensor<4x4xf32>, %q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %g: tensor<4x4xf32>, %i: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-DAG: fp8.quantize record_amax column(0) ins(%arg0
  // CHECK-DAG: fp8.quantize record_amax column(2) ins(%arg1
  // CHECK-DAG: fp8.quantize record_amax column(1) ins(%arg2
  // CHECK-DAG: fp8.quantize record_amax column(3) ins(%arg3
  // CHECK: return
  %0 = fp8.matmul site("q") role(fprop) kinds(input, weight) ins(%x, %q : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %1 = fp8.matmul site("k") role(fprop) kinds(input, weight) ins(%x, %k : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %2 = fp8.matmul site("q") role(wgrad) kinds(input, grad_output) ins(%x, %g : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<4x4xf32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Both gradients of a matmul without a weight read one of its operands each, as their own second
// one: the two operands keep a column each.

// CHECK: fp8.state_columns = [
// CHECK-SAME: {format = f8E4M3FN, sites = ["score"], tensor = "input"}
// CHECK-SAME: {format = f8E4M3FN, sites = ["score"], tensor = "input"}
// CHECK-SAME: {format = f8E5M2, sites = ["score"], tensor = "grad_output"}
// CHECK-NOT: format =
// CHECK-SAME: ]

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %g: tensor<4x4xf32>, %w: tensor<4x4xf32>, %i: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-DAG: fp8.quantize record_amax column(0) ins(%arg0
  // CHECK-DAG: fp8.quantize record_amax column(1) ins(%arg1
  // CHECK-DAG: fp8.quantize record_amax column(2) ins(%arg2
  // CHECK: return
  %0 = fp8.matmul site("score") role(other) kinds(input, input) ins(%q, %k : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x4xf32>
  %1 = fp8.matmul site("score") role(other) kinds(grad_output, input) ins(%g, %k : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  %2 = fp8.matmul site("score") role(other) kinds(grad_output, input) ins(%g, %q : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<4x4xf32>
  %3 = fp8.matmul site("fc") role(dgrad) kinds(input, weight) kept("here for its role") ins(%0, %w : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%i : tensor<4x4xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x4xf32>
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
