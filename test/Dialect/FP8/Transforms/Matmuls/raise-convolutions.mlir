// RUN: fp8-opt %s -split-input-file --fp8-raise-convolutions | FileCheck %s -enable-var-scope

// A kernel of one element: the image is read in place.
// CHECK-LABEL: func.func @one_by_one
// CHECK-NOT: linalg.conv
// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<2x4x4x3xf32>, tensor<3x5xf32>)
// CHECK-SAME: outs(%{{.*}} : tensor<2x4x4x5xf32>)
func.func @one_by_one(%x: tensor<2x4x4x3xf32>, %w: tensor<1x1x3x5xf32>, %i: tensor<2x4x4x5xf32>) -> tensor<2x4x4x5xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x4x4x3xf32>, tensor<1x1x3x5xf32>)
    outs(%i : tensor<2x4x4x5xf32>) -> tensor<2x4x4x5xf32>
  return %y : tensor<2x4x4x5xf32>
}

// -----

// Patches: windows side by side.
// CHECK-LABEL: func.func @patches
// CHECK-NOT: linalg.conv
// CHECK: tensor.expand_shape
// CHECK: linalg.generic
func.func @patches(%x: tensor<2x8x3xf32>, %w: tensor<4x3x5xf32>, %i: tensor<2x2x5xf32>) -> tensor<2x2x5xf32> {
  %y = linalg.conv_1d_nwc_wcf {strides = dense<4> : tensor<1xi64>}
      ins(%x, %w : tensor<2x8x3xf32>, tensor<4x3x5xf32>) outs(%i : tensor<2x2x5xf32>) -> tensor<2x2x5xf32>
  return %y : tensor<2x2x5xf32>
}

// -----

// Windows that overlap, and depthwise convolutions, stay.
// CHECK-LABEL: func.func @overlap
// CHECK: linalg.conv_1d_nwc_wcf
func.func @overlap(%x: tensor<2x8x3xf32>, %w: tensor<4x3x5xf32>, %i: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %y = linalg.conv_1d_nwc_wcf ins(%x, %w : tensor<2x8x3xf32>, tensor<4x3x5xf32>)
    outs(%i : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// CHECK-LABEL: func.func @depthwise
// CHECK: linalg.depthwise_conv_1d_nwc_wc
func.func @depthwise(%x: tensor<2x8x3xf32>, %w: tensor<1x3xf32>, %i: tensor<2x8x3xf32>) -> tensor<2x8x3xf32> {
  %y = linalg.depthwise_conv_1d_nwc_wc ins(%x, %w : tensor<2x8x3xf32>, tensor<1x3xf32>)
    outs(%i : tensor<2x8x3xf32>) -> tensor<2x8x3xf32>
  return %y : tensor<2x8x3xf32>
}
