// RUN: fp8-opt %s --fp8-fold-empty-reshapes | FileCheck %s -enable-var-scope

// The other size is kept: it counts rows without elements.
// CHECK-LABEL: func @other_group
// CHECK-SAME: %[[X:.*]]: tensor<0x?x?xf32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[D:.*]] = tensor.dim %[[X]], %[[C2]]
// CHECK: tensor.empty(%[[C0]], %[[D]]) : tensor<?x?xf32>
func.func @other_group(%x: tensor<0x?x?xf32>) -> tensor<?x?xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<0x?x?xf32> into tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// CHECK-LABEL: func @kept
// CHECK: tensor.collapse_shape
func.func @kept(%x: tensor<4x?x3xf32>) -> tensor<?x3xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x?x3xf32> into tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// CHECK-LABEL: func @static
// CHECK: tensor.collapse_shape
func.func @static(%x: tensor<0x2x3xf32>) -> tensor<0x3xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<0x2x3xf32> into tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}
