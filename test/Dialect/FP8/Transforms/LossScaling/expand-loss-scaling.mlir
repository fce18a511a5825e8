// The operations of loss scaling as elementwise code and amaxes.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-expand-loss-scaling))' -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @unscale(
// CHECK-SAME: %[[G:[^ :]+]]: tensor<?x3xbf16>, %[[H:[^ :]+]]: tensor<8xf32>, %[[S:[^ :]+]]: tensor<f32>,
// CHECK: %[[I:.+]] = linalg.generic {{.+}} ins(%[[S]] : tensor<f32>)
// CHECK: arith.divf
// CHECK: %[[U0:.+]] = linalg.generic {{.+}} ins(%[[G]], %[[I]] : tensor<?x3xbf16>, tensor<f32>) outs(%{{.+}} : tensor<?x3xbf16>)
// CHECK: %[[B0:.+]] = linalg.generic {{.+}} ins(%[[G]] : tensor<?x3xbf16>) outs(%{{.+}} : tensor<?x3xf32>)
// CHECK: %[[A0:.+]] = fp8.amax ins(%[[B0]] : tensor<?x3xf32>)
// CHECK: %[[U1:.+]] = linalg.generic {{.+}} ins(%[[H]], %[[I]] : tensor<8xf32>, tensor<f32>)
// CHECK: %[[A1:.+]] = fp8.amax ins(%{{.+}} : tensor<8xf32>)
// CHECK: %[[F:.+]] = linalg.generic {{.+}} ins(%[[A0]], %[[A1]] : tensor<f32>, tensor<f32>)
// CHECK: return %[[U0]], %[[U1]], %[[F]]
func.func @unscale(%g: tensor<?x3xbf16>, %h: tensor<8xf32>, %s: tensor<f32>, %i: tensor<?x3xbf16>, %j: tensor<8xf32>, %f: tensor<f32>)
    -> (tensor<?x3xbf16>, tensor<8xf32>, tensor<f32>) {
  %u:3 = fp8.unscale ins(%g, %h : tensor<?x3xbf16>, tensor<8xf32>) scale(%s : tensor<f32>)
      outs(%i, %j, %f : tensor<?x3xbf16>, tensor<8xf32>, tensor<f32>) -> tensor<?x3xbf16>, tensor<8xf32>, tensor<f32>
  return %u#0, %u#1, %u#2 : tensor<?x3xbf16>, tensor<8xf32>, tensor<f32>
}

// -----

// No gradient at all: nothing overflows.
// CHECK-LABEL: func.func @nothing(
// CHECK: %[[ZERO:.+]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK: return %[[ZERO]]
func.func @nothing(%s: tensor<f32>, %f: tensor<f32>) -> tensor<f32> {
  %u = "fp8.unscale"(%s, %f) <{operandSegmentSizes = array<i32: 0, 1, 1>}> : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %u : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @update(
// CHECK-SAME: %[[F:[^ :]+]]: tensor<f32>, %[[S:[^ :]+]]: tensor<f32>, %[[T:[^ :]+]]: tensor<i32>)
// CHECK: %[[NS:.+]] = linalg.generic {{.+}} ins(%[[S]], %[[F]], %[[T]] :
// CHECK: %[[NT:.+]] = linalg.generic {{.+}} ins(%[[T]], %[[F]] :
// CHECK: return %[[NS]], %[[NT]]
func.func @update(%f: tensor<f32>, %s: tensor<f32>, %t: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
  %r:2 = fp8.update_loss_scale ins(%f : tensor<f32>) outs(%s, %t : tensor<f32>, tensor<i32>) -> tensor<f32>, tensor<i32>
  return %r#0, %r#1 : tensor<f32>, tensor<i32>
}
