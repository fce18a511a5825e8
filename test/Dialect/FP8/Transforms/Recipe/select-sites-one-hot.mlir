// Products that only select rows of an operand stay in high precision, and so do their gradients.
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites)' | FileCheck %s --check-prefixes=CHECK,LINEAR
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{sites=all})' | FileCheck %s --check-prefixes=CHECK,TAKEN --implicit-check-not=kept
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{sites=.})' | FileCheck %s --check-prefixes=CHECK,TAKEN --implicit-check-not=kept
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{keep=.})' | FileCheck %s --check-prefixes=CHECK,KEEP --implicit-check-not=one-hot
// RUN: not fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-select-sites{require=.})' 2>&1 | FileCheck %s --check-prefix=REQUIRE

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#mn = affine_map<(m, n, k) -> (m, n)>

// An embedding as JAX writes jax.nn.one_hot, and its gradient in another function.
// CHECK-LABEL: func.func @embed
// LINEAR: fp8.matmul site("embed") role(fprop) kinds(input, weight) kept("one-hot selection")
// LINEAR: fp8.matmul site("fc") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
// TAKEN: fp8.matmul site("embed") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
// KEEP: fp8.matmul site("embed") role(fprop) kinds(input, weight) kept("matches --keep=.")
// REQUIRE: error: site 'embed' is required to be FP8 (--require=.) but stays in high precision: one-hot selection
func.func @embed(%ids: tensor<4xi32>, %table: tensor<8x8xbf16>, %w: tensor<8x8xbf16>, %c: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %e = tensor.empty() : tensor<4x8xi1>
  %equal = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi32>) outs(%e : tensor<4x8xi1>) {
  ^bb0(%id: i32, %out: i1):
    %column = linalg.index 1 : index
    %number = arith.index_cast %column : index to i32
    %same = arith.cmpi eq, %id, %number : i32
    linalg.yield %same : i1
  } -> tensor<4x8xi1>
  %f = tensor.empty() : tensor<4x8xbf16>
  %onehot = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%equal : tensor<4x8xi1>) outs(%f : tensor<4x8xbf16>) {
  ^bb0(%in: i1, %out: bf16):
    %one = arith.uitofp %in : i1 to bf16
    linalg.yield %one : bf16
  } -> tensor<4x8xbf16>
  %0 = fp8.matmul site("embed") role(fprop) kinds(input, weight) ins(%onehot, %table : tensor<4x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<4x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xbf16>
  %1 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%0, %w : tensor<4x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<4x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x8xbf16>
  return %1 : tensor<4x8xbf16>
}

// CHECK-LABEL: func.func @embed_backward
// LINEAR: fp8.matmul site("embed") role(wgrad) kinds(input, grad_output) kept("one-hot selection")
func.func @embed_backward(%onehot: tensor<4x8xbf16>, %dy: tensor<4x8xbf16>, %c: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %0 = fp8.matmul site("embed") role(wgrad) kinds(input, grad_output) ins(%onehot, %dy : tensor<4x8xbf16>, tensor<4x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x8xbf16>
  return %0 : tensor<8x8xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A dispatch mask is the product of such, of which one is chosen; masks that carry gate weights select and weigh, and
// a first state of zeros selects nothing.
// CHECK-LABEL: func.func @experts
// LINEAR: fp8.matmul site("dispatch") role(fprop) kinds(input, weight) kept("one-hot selection")
// LINEAR: fp8.matmul site("combine") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
// LINEAR: fp8.matmul site("recur") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
// LINEAR: fp8.matmul site("signs") role(fprop) kinds(input, weight) recipe(#fp8.delayed_scaling) ins(
func.func @experts(%a: tensor<8x8xi1>, %b: tensor<8x8xi1>, %gates: tensor<8x8xf32>, %w: tensor<8x8xf32>, %c: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<8x8xf32>
  %ones = arith.constant dense<1.0> : tensor<8x8xf32>
  %fa = arith.uitofp %a : tensor<8x8xi1> to tensor<8x8xf32>
  %fb = arith.select %b, %ones, %zeros : tensor<8x8xi1>, tensor<8x8xf32>
  %mask = arith.mulf %fa, %fb : tensor<8x8xf32>
  %wide = tensor.pad %mask low[0, 0] high[0, 8] {
  ^bb0(%i: index, %j: index):
    %zero = arith.constant 0.0 : f32
    tensor.yield %zero : f32
  } : tensor<8x8xf32> to tensor<8x16xf32>
  %dispatch = tensor.extract_slice %wide[0, 4] [8, 8] [1, 1] : tensor<8x16xf32> to tensor<8x8xf32>
  %combine = arith.mulf %mask, %gates : tensor<8x8xf32>
  %signs = arith.sitofp %a : tensor<8x8xi1> to tensor<8x8xf32>
  %0 = fp8.matmul site("dispatch") role(fprop) kinds(input, weight) ins(%dispatch, %w : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%c : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf32>
  %1 = fp8.matmul site("combine") role(fprop) kinds(input, weight) ins(%combine, %w : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%c : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf32>
  %2 = fp8.matmul site("recur") role(fprop) kinds(input, weight) ins(%zeros, %w : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%c : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf32>
  %3 = fp8.matmul site("signs") role(fprop) kinds(input, weight) ins(%signs, %w : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%c : tensor<8x8xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xf32>
  return %0, %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
