// The shape of every result is the shape of its destination, known before the operation runs.
// RUN: fp8-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: %{{[^,]+}}, %{{[^,]+}}, %[[C:.+]]: tensor<?x32xf32>
func.func @matmul(%a: tensor<?x16xf32>, %b: tensor<16x32xf32>, %c: tensor<?x32xf32>) -> index {
  // CHECK-NOT: fp8.matmul
  // CHECK: %[[DIM:.+]] = tensor.dim %[[C]], %{{.+}}
  // CHECK: return %[[DIM]]
  %zero = arith.constant 0 : index
  %0 = fp8.matmul ins(%a, %b : tensor<?x16xf32>, tensor<16x32xf32>) outs(%c : tensor<?x32xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
      -> tensor<?x32xf32>
  %dim = tensor.dim %0, %zero : tensor<?x32xf32>
  return %dim : index
}

// CHECK-LABEL: func.func @quantize
// CHECK-SAME: %[[Q:[^ ]+]]: tensor<?x16xf8E4M3FN>, %[[T:[^ ]+]]: tensor<16x?xf8E4M3FN>
func.func @quantize(%x: tensor<?x16xf32>, %s: tensor<f32>, %q: tensor<?x16xf8E4M3FN>, %t: tensor<16x?xf8E4M3FN>) -> index {
  // CHECK-NOT: fp8.quantize
  // CHECK: tensor.dim %[[T]]
  %one = arith.constant 1 : index
  %0:3 = fp8.quantize ins(%x : tensor<?x16xf32>) scale(%s : tensor<f32>)
      outs(%q, %t, %s : tensor<?x16xf8E4M3FN>, tensor<16x?xf8E4M3FN>, tensor<f32>)
      {transposition = array<i64: 1, 0>} -> tensor<?x16xf8E4M3FN>, tensor<16x?xf8E4M3FN>, tensor<f32>
  %dim = tensor.dim %0#1, %one : tensor<16x?xf8E4M3FN>
  return %dim : index
}
