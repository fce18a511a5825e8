// RUN: fp8-opt %s -split-input-file --mlir-print-local-scope --pass-pipeline='builtin.module(func.func(fp8-fuse-epilogues))' | FileCheck %s -enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// Activation, then the cast with a scale that is known: the product writes FP8. What it was
// before the activation has another reader and is stored on the way.
// CHECK-LABEL: func @activation
// CHECK-NOT: linalg.generic
// CHECK-NOT: fp8.quantize
// CHECK: %[[Y:.+]]:4 = fp8.scaled_matmul site("fc1") fast
// CHECK-SAME: out_scale(%{{.+}} : tensor<f32>) outs(%{{.+}} : tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<4x16xbf16>)
// CHECK-SAME: epilogue_maps = [affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-NEXT: ^bb0(%[[SUM:.+]]: f32):
// CHECK-NEXT: %[[H:.+]] = arith.truncf %[[SUM]] : f32 to bf16
// CHECK-NEXT: %[[G:.+]] = math.tanh %[[H]] : bf16
// CHECK-NEXT: fp8.yield %[[G]], %[[H]] : bf16, bf16
// CHECK: return %[[Y]]#0, %[[Y]]#1, %[[Y]]#3
func.func @activation(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %state: tensor<3xf32>, %i: tensor<4x16xbf16>, %d: tensor<4x16xf8E4M3FN>)
    -> (tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<4x16xbf16>) {
  %y = fp8.scaled_matmul site("fc1") fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x16xbf16>) outs(%i : tensor<4x16xbf16>) {
  ^bb0(%e: bf16, %o: bf16):
    %v = math.tanh %e : bf16
    linalg.yield %v : bf16
  } -> tensor<4x16xbf16>
  %scale = tensor.extract_slice %state[1] [1] [1] : tensor<3xf32> to tensor<f32>
  %q, %qi, %a = fp8.quantize record_amax ins(%g : tensor<4x16xbf16>) scale(%scale : tensor<f32>)
    outs(%d, %s, %s : tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<f32>
  return %q, %qi, %y : tensor<4x16xf8E4M3FN>, tensor<f32>, tensor<4x16xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// A gradient through an activation, its bias gradient and its cast: one operation.
// CHECK-LABEL: func @gradient
// CHECK-NOT: linalg.generic
// CHECK-NOT: fp8.quantize
// CHECK: %[[Y:.+]]:4 = fp8.scaled_matmul split
// CHECK-SAME: epilogue_ins(%{{.+}} : tensor<4x16xbf16>) outs(%{{.+}} : tensor<4x16xf8E5M2>, tensor<f32>, tensor<f32>, tensor<16xf32>)
// CHECK-SAME: epilogue_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>]
// CHECK: %[[M:.+]] = arith.mulf
// CHECK: %[[W:.+]] = arith.extf %[[M]] : bf16 to f32
// CHECK: fp8.yield %[[M]], %[[W]] : bf16, f32
// CHECK: return %[[Y]]#0, %[[Y]]#2, %[[Y]]#3
func.func @gradient(%x: tensor<4x8xf8E5M2>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %h: tensor<4x16xbf16>, %i: tensor<4x16xbf16>, %d: tensor<4x16xf8E5M2>, %b: tensor<16xf32>)
    -> (tensor<4x16xf8E5M2>, tensor<f32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %y = fp8.scaled_matmul split ins(%x, %w : tensor<4x8xf8E5M2>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %g = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %h : tensor<4x16xbf16>, tensor<4x16xbf16>) outs(%i : tensor<4x16xbf16>) {
  ^bb0(%e: bf16, %f: bf16, %o: bf16):
    %v = arith.mulf %e, %f : bf16
    linalg.yield %v : bf16
  } -> tensor<4x16xbf16>
  %q, %qi, %a = fp8.quantize record_amax ins(%g : tensor<4x16xbf16>) scale(%s : tensor<f32>)
    outs(%d, %s, %s : tensor<4x16xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<4x16xf8E5M2>, tensor<f32>, tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%b : tensor<16xf32>) -> tensor<16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%g : tensor<4x16xbf16>) outs(%z : tensor<16xf32>) {
  ^bb0(%in: bf16, %acc: f32):
    %e = arith.extf %in : bf16 to f32
    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  return %q, %a, %sum : tensor<4x16xf8E5M2>, tensor<f32>, tensor<16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

// Outside stay: a transposed result, and the cast of a sum that is accumulated.
// CHECK-LABEL: func @transposed
// CHECK: fp8.scaled_matmul
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @transposed(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %i: tensor<4x16xbf16>, %o: tensor<16x4xbf16>) -> tensor<16x4xbf16> {
  %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %g = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x16xbf16>) outs(%o : tensor<16x4xbf16>) {
  ^bb0(%e: bf16, %out: bf16):
    %v = arith.negf %e : bf16
    linalg.yield %v : bf16
  } -> tensor<16x4xbf16>
  return %g : tensor<16x4xbf16>
}
// CHECK-LABEL: func @accumulated
// CHECK: fp8.scaled_matmul fast accumulate
// CHECK-NOT: epilogue
// CHECK: fp8.quantize
func.func @accumulated(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E4M3FN>, %s: tensor<f32>, %c: tensor<4x16xf32>, %d: tensor<4x16xf8E4M3FN>) -> tensor<4x16xf8E4M3FN> {
  %y = fp8.scaled_matmul fast accumulate ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
    scales(%s, %s : tensor<f32>, tensor<f32>) outs(%c : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %q, %qi = fp8.quantize ins(%y : tensor<4x16xf32>) scale(%s : tensor<f32>)
    outs(%d, %s : tensor<4x16xf8E4M3FN>, tensor<f32>) -> tensor<4x16xf8E4M3FN>, tensor<f32>
  return %q : tensor<4x16xf8E4M3FN>
}
