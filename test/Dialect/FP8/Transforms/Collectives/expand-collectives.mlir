// Parts of the ranks are contiguous where a communicator sees them.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-expand-collectives))' | FileCheck %s -enable-var-scope

// CHECK-LABEL: func.func @scatter
func.func @scatter(%x: tensor<4x?xf32>, %init: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // CHECK: %[[PARTS:.+]] = tensor.expand_shape %arg0 {{.+}} : tensor<4x?xf32> into tensor<4x2x?xf32>
  // CHECK: %[[FRONT:.+]] = linalg.transpose ins(%[[PARTS]] : tensor<4x2x?xf32>) {{.+}} permutation = [1, 0, 2]
  // CHECK: %[[ROWS:.+]] = tensor.collapse_shape %[[FRONT]] {{.+}} : tensor<2x4x?xf32> into tensor<8x?xf32>
  // CHECK: fp8.reduce_scatter sum dim 0 on(2) axes [0] ins(%[[ROWS]] : tensor<8x?xf32>) outs(%arg1 : tensor<4x?xf32>)
  %r = fp8.reduce_scatter sum dim 1 on(2) axes [0] ins(%x : tensor<4x?xf32>) outs(%init : tensor<4x?xf32>) -> tensor<4x?xf32>
  return %r : tensor<4x?xf32>
}

// CHECK-LABEL: func.func @first
func.func @first(%x: tensor<4x8xf32>, %init: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: fp8.all_gather dim 0
  // CHECK-NEXT: return
  %r = fp8.all_gather dim 0 on(2) axes [0] ins(%x : tensor<4x8xf32>) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
