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

#map = affine_map<(d0) -> (d0)>

// The destination of %1 is not read, but %0 is needed afterwards.
// CHECK-LABEL: func @needed
// CHECK: %[[FIRST:.*]] = linalg.exp
// CHECK-NEXT: %[[OWN:.*]] = tensor.empty
// CHECK-NEXT: linalg.log ins(%[[FIRST]] : {{.*}}) outs(%[[OWN]] :
func.func @needed(%x: tensor<4xf32>, %e: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.log ins(%0 : tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Here it is not: the result may take its place.
// CHECK-LABEL: func @not_needed
// CHECK: %[[FIRST:.*]] = linalg.exp
// CHECK-NEXT: linalg.log ins(%[[FIRST]] : {{.*}}) outs(%[[FIRST]] :
func.func @not_needed(%x: tensor<4xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.log ins(%0 : tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// A destination that is read stays what it is.
// CHECK-LABEL: func @read
// CHECK: linalg.generic {{.*}} outs(%arg1 :
func.func @read(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0, %y : tensor<4xf32>, tensor<4xf32>
}
