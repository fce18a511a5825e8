// RUN: fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-fold-unit-reductions,canonicalize))' | FileCheck %s -enable-var-scope

#in = affine_map<(b, r, c) -> (b, r, c)>
#out = affine_map<(b, r, c) -> (c)>

// CHECK-LABEL: func.func @sum(
// CHECK: tensor.collapse_shape {{.*}} : tensor<1x1x8xbf16> into tensor<8xbf16>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]
// CHECK: %[[WIDE:.*]] = arith.extf
// CHECK: arith.addf %[[WIDE]], %cst
// CHECK-NOT: linalg.fill
func.func @sum(%x: tensor<1x1x8xbf16>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "reduction", "parallel"]} ins(%x : tensor<1x1x8xbf16>) outs(%1 : tensor<8xf32>) {
  ^bb0(%value: bf16, %sum: f32):
    %3 = arith.extf %value : bf16 to f32
    %4 = arith.addf %sum, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// A result that starts from a tensor is still read.
// CHECK-LABEL: func.func @add_to(
// CHECK-SAME: %[[X:.*]]: tensor<1x8xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]{{.*}} outs(%[[Y]] : tensor<8xf32>)
// CHECK: ^bb0(%[[VALUE:.*]]: f32, %[[SUM:.*]]: f32):
// CHECK: arith.addf %[[SUM]], %[[VALUE]]
func.func @add_to(%x: tensor<1x8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.reduce {arith.addf} ins(%x : tensor<1x8xf32>) outs(%y : tensor<8xf32>) dimensions = [0]
  return %0 : tensor<8xf32>
}

// One of the two dimensions has more elements; a dynamic size may be 1 or not: both stay.
// CHECK-LABEL: func.func @others(
// CHECK: linalg.reduce
// CHECK: linalg.reduce
func.func @others(%x: tensor<1x3x8xf32>, %y: tensor<?x8xf32>, %z: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.reduce {arith.addf} ins(%x : tensor<1x3x8xf32>) outs(%z : tensor<8xf32>) dimensions = [0, 1]
  %1 = linalg.reduce {arith.addf} ins(%y : tensor<?x8xf32>) outs(%0 : tensor<8xf32>) dimensions = [0]
  return %1 : tensor<8xf32>
}
