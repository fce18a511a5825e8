// RUN: fp8-opt %s -split-input-file --mlir-print-local-scope --pass-pipeline='builtin.module(func.func(fp8-fold-transposes))' | FileCheck %s -enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// One transposed copy that two products share, through a chain of two; both read the bytes.
// CHECK-LABEL: func @shared
// CHECK-SAME: %[[X:[^:]+]]: tensor<4x8xf8E4M3FN>, %[[W:[^:]+]]: tensor<16x8xf8E4M3FN>
// CHECK-NOT: linalg
// CHECK: fp8.scaled_matmul fast ins(%[[X]], %[[W]] :
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: fp8.scaled_matmul fast ins(%[[X]], %[[W]] :
// CHECK-SAME: affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @shared(%x: tensor<4x8xf8E4M3FN>, %w: tensor<16x8xf8E4M3FN>, %s: tensor<f32>, %e: tensor<8x16xf8E4M3FN>, %f: tensor<16x8xf8E4M3FN>, %i: tensor<4x16xbf16>)
    -> (tensor<4x16xbf16>, tensor<4x16xbf16>) {
  %t = linalg.transpose ins(%w : tensor<16x8xf8E4M3FN>) outs(%e : tensor<8x16xf8E4M3FN>) permutation = [1, 0]
  %u = linalg.transpose ins(%t : tensor<8x16xf8E4M3FN>) outs(%f : tensor<16x8xf8E4M3FN>) permutation = [1, 0]
  %y = fp8.scaled_matmul fast ins(%x, %t : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>) scales(%s, %s : tensor<f32>, tensor<f32>)
      outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %z = fp8.scaled_matmul fast ins(%x, %u : tensor<4x8xf8E4M3FN>, tensor<16x8xf8E4M3FN>) scales(%s, %s : tensor<f32>, tensor<f32>)
      outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, affine_map<(m, n, k) -> (n, k)>, #mn]} -> tensor<4x16xbf16>
  return %y, %z : tensor<4x16xbf16>, tensor<4x16xbf16>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Blocks are those of the operand's own dimensions: it stays.
// CHECK-LABEL: func @blocks
// CHECK: linalg.transpose
func.func @blocks(%x: tensor<4x8xf8E4M3FN>, %w: tensor<16x8xf8E4M3FN>, %s: tensor<f32>, %r: tensor<1x16xf32>, %e: tensor<8x16xf8E4M3FN>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %t = linalg.transpose ins(%w : tensor<16x8xf8E4M3FN>) outs(%e : tensor<8x16xf8E4M3FN>) permutation = [1, 0]
  %y = fp8.scaled_matmul fast ins(%x, %t : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>) scales(%s, %r : tensor<f32>, tensor<1x16xf32>)
      outs(%i : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn], rhs_block = array<i64: 0, 1>} -> tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}
