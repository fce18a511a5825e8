// RUN: fp8-opt %s --fp8-crop-pads | FileCheck %s

// CHECK-LABEL: func.func @shift
// CHECK: %[[KEPT:.+]] = tensor.extract_slice %{{.+}}[0, 1] [6, 7] [1, 1] : tensor<6x8xf32> to tensor<6x7xf32>
// CHECK: tensor.pad %[[KEPT]] low[0, 0] high[0, 1]
// CHECK: tensor<6x7xf32> to tensor<6x8xf32>
func.func @shift(%x: tensor<6x8xf32>, %v: f32) -> tensor<6x8xf32> {
  %y = tensor.pad %x low[0, -1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  } : tensor<6x8xf32> to tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// Widths that cannot be negative stay.

// CHECK-LABEL: func.func @others
// CHECK-NOT: tensor.extract_slice
// CHECK-NOT: cf.assert
// CHECK: tensor.pad %{{.+}} low[1] high[2]
// CHECK: tensor.pad %{{.+}} low[%{{.+}}] high[0]
// CHECK: return
func.func @others(%x: tensor<6xf32>, %n: tensor<?xf32>, %v: f32) -> (tensor<9xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %n, %c0 : tensor<?xf32>
  %y = tensor.pad %x low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<6xf32> to tensor<9xf32>
  %z = tensor.pad %x low[%size] high[0] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<6xf32> to tensor<?xf32>
  return %y, %z : tensor<9xf32>, tensor<?xf32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK: cf.assert %{{.+}}, "size 0 of a padded tensor must be 0 or more"
// CHECK: %[[KEPT:.+]] = tensor.extract_slice %{{.+}}[%{{.+}}] [%[[SIZE:.+]]] [1] : tensor<6xf32> to tensor<?xf32>
// CHECK: tensor.pad %[[KEPT]] low[%{{.+}}] high[%{{.+}}]
func.func @dynamic(%x: tensor<6xf32>, %low: index, %v: f32) -> tensor<?xf32> {
  %y = tensor.pad %x low[%low] high[0] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<6xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}
