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

// The initial value of a destination is copied where it is needed afterwards, and made
// again where it is a fill; an argument stays.
// CHECK-LABEL: func @read
// CHECK: %[[FIRST:.*]] = linalg.exp
// CHECK-NEXT: %[[OWN:.*]] = tensor.empty
// CHECK-NEXT: %[[COPY:.*]] = linalg.copy ins(%[[FIRST]] : {{.*}}) outs(%[[OWN]] :
// CHECK-NEXT: linalg.matmul {{.*}} outs(%[[COPY]] :
// CHECK: %[[ZERO:.*]] = linalg.fill
// CHECK-NEXT: %[[OTHER:.*]] = tensor.empty
// CHECK-NEXT: %[[AGAIN:.*]] = linalg.fill {{.*}} outs(%[[OTHER]] :
// CHECK-NEXT: linalg.matmul {{.*}} outs(%[[AGAIN]] :
// CHECK: linalg.matmul {{.*}} outs(%arg0 :
func.func @read(%x: tensor<4x4xf32>, %e: tensor<4x4xf32>, %f: tensor<4x4xf32>) ->
    (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.exp ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = linalg.fill ins(%zero : f32) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%2 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4 :
      tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
