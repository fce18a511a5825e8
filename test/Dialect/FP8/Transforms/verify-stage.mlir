// Each stage's promise: IR that keeps it passes unchanged, IR that breaks it is an error
// at the place.
// RUN: split-file %s %t
// RUN: fp8-opt %t/ingest.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-verify-stage{stage=ingest})'
// RUN: fp8-opt %t/recipe.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-verify-stage{stage=recipe})'
// RUN: fp8-opt %t/fusion.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-verify-stage{stage=fusion})'
// RUN: fp8-opt %t/batching.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-verify-stage{stage=batching})'
// RUN: fp8-opt %t/bufferize.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-verify-stage{stage=bufferize})'
// RUN: fp8-opt %t/kernels.mlir -verify-diagnostics --pass-pipeline='builtin.module(fp8-verify-stage{stage=kernels})'
// RUN: fp8-opt %t/good.mlir --pass-pipeline='builtin.module(fp8-verify-stage{stage=ingest},fp8-verify-stage{stage=recipe},fp8-verify-stage{stage=fusion},fp8-verify-stage{stage=batching},fp8-verify-stage{stage=bufferize},fp8-verify-stage{stage=kernels})'
// RUN: not fp8-opt %t/good.mlir --pass-pipeline='builtin.module(fp8-verify-stage{stage=fused})' 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: error: no stage 'fused'; there are ingest, recipe, fusion, batching, bufferize, kernels and gpu-kernels

//--- good.mlir
func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}

//--- ingest.mlir
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @f(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>, %i: tensor<8x8xi32>) -> (tensor<8x8xbf16>, tensor<8x8xi32>) {
  // expected-error@+1 {{after ingest: this contraction is not an fp8.matmul}}
  %0 = linalg.matmul ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>) outs(%c : tensor<8x8xbf16>) -> tensor<8x8xbf16>
  // expected-error@+1 {{after ingest: this fp8.matmul has no site, role or kinds}}
  %1 = fp8.matmul ins(%0, %a : tensor<8x8xbf16>, tensor<8x8xbf16>) outs(%c : tensor<8x8xbf16>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  // Products of integers are not ours.
  %2 = linalg.matmul ins(%i, %i : tensor<8x8xi32>, tensor<8x8xi32>) outs(%i : tensor<8x8xi32>) -> tensor<8x8xi32>
  return %1, %2 : tensor<8x8xbf16>, tensor<8x8xi32>
}

//--- recipe.mlir
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @f(%a: tensor<8x8xbf16>, %c: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  // expected-error@+1 {{after recipe: this fp8.matmul is not in FP8 and does not say why}}
  %0 = fp8.matmul site("a") role(fprop) kinds(input, weight) ins(%a, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  %1 = fp8.matmul site("b") role(fprop) kinds(input, weight) kept("asked for") ins(%0, %a : tensor<8x8xbf16>, tensor<8x8xbf16>)
      outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  return %1 : tensor<8x8xbf16>
}

//--- fusion.mlir
func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>) -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>) {
  %q0:2 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %s : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  // expected-error@+1 {{after fusion: this tensor is quantized twice in one format with one scale}}
  %q1:2 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
      outs(%d, %s : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
  return %q0#0, %q1#0 : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>
}
// Only one of two branches runs.
func.func @branches(%c: i1, %x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
  %q = scf.if %c -> tensor<4xf8E4M3FN> {
    %q0:2 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %s : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
    scf.yield %q0#0 : tensor<4xf8E4M3FN>
  } else {
    %y = arith.negf %x : tensor<4xf32>
    %q1:2 = fp8.quantize ins(%y : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %s : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
    %q2:2 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %s : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
    %sum = arith.select %c, %q1#0, %q2#0 : tensor<4xf8E4M3FN>
    scf.yield %sum : tensor<4xf8E4M3FN>
  }
  return %q : tensor<4xf8E4M3FN>
}
func.func @named(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{after fusion: this elementwise operation is not a linalg.generic, so nothing fuses with it}}
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @transposed(%x: tensor<4x8xf8E4M3FN>, %w: tensor<16x8xf8E4M3FN>, %s: tensor<f32>, %e: tensor<8x16xf8E4M3FN>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<16x8xf8E4M3FN>) outs(%e : tensor<8x16xf8E4M3FN>) {
  ^bb0(%in: f8E4M3FN, %out: f8E4M3FN):
    linalg.yield %in : f8E4M3FN
  } -> tensor<8x16xf8E4M3FN>
  // expected-error@+1 {{after fusion: this matmul reads a transposed copy of FP8 bytes}}
  %y = fp8.scaled_matmul fast ins(%x, %t : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>) scales(%s, %s : tensor<f32>, tensor<f32>)
      outs(%i : tensor<4x16xbf16>) {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}

//--- batching.mlir
func.func @f(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
  %s0, %h0 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
      ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  // expected-error@+1 {{after batching: the update point has another update of this recipe}}
  %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
      ins(%a : tensor<1xf32>) outs(%s0, %h0 : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  return %s1, %h1 : tensor<1xf32>, tensor<4x1xf32>
}
func.func @g(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
  %0 = fp8.all_reduce max on(4) axes [0] ins(%a : tensor<1xf32>) outs(%a : tensor<1xf32>) -> tensor<1xf32>
  %s0, %h0 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
      ins(%0 : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  // expected-error@+1 {{after batching: the update point has another reduction of amaxes}}
  %1 = fp8.all_reduce max on(4) axes [0] ins(%a : tensor<1xf32>) outs(%0 : tensor<1xf32>) -> tensor<1xf32>
  %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4, margin = 1>) columns [0] formats [f8E4M3FN]
      ins(%1 : tensor<1xf32>) outs(%s0, %h0 : tensor<1xf32>, tensor<4x1xf32>) -> tensor<1xf32>, tensor<4x1xf32>
  return %s1, %h1 : tensor<1xf32>, tensor<4x1xf32>
}

//--- bufferize.mlir
func.func @f(%x: memref<4xf32>) {
  // expected-error@+1 {{after bufferize: this operation is still on tensors}}
  %0 = tensor.empty() : tensor<4xf32>
  return
}

//--- kernels.mlir
func.func @f(%x: memref<4xf32>, %a: memref<f32>) {
  // expected-error@+1 {{after kernels: 'fp8.amax' has not been lowered}}
  fp8.amax ins(%x : memref<4xf32>) outs(%a : memref<f32>)
  return
}
