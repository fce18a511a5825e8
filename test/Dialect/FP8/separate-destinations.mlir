// RUN: fp8-opt %s --fp8-separate-destinations | FileCheck %s -enable-var-scope

// CHECK-LABEL: func @shared
// CHECK-COUNT-1: tensor.empty
// CHECK: linalg.exp
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: linalg.log
// CHECK-NOT: tensor.empty
func.func @shared(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %unused = tensor.empty() : tensor<8xf32>
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.log ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
