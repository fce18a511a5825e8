// RUN: fp8-opt %s --split-input-file --fp8-collect-elements | FileCheck %s -enable-var-scope

// CHECK-LABEL: func @slots
// CHECK-SAME: (%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<2xf32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0
// CHECK-DAG: %[[C1:.*]] = arith.constant 1
// CHECK-DAG: %[[E0:.*]] = tensor.extract %[[A]][]
// CHECK-DAG: %[[E1:.*]] = tensor.extract %[[B]][%[[C0]]]
// CHECK-DAG: %[[E2:.*]] = tensor.extract %[[B]][%[[C1]]]
// CHECK: %[[V:.*]] = tensor.from_elements %[[E0]], %[[E1]], %[[E2]] : tensor<3xf32>
// CHECK-NOT: tensor.insert_slice
// CHECK: return %[[V]]
func.func @slots(%a: tensor<f32>, %b: tensor<2xf32>) -> tensor<3xf32> {
  %v = tensor.empty() : tensor<3xf32>
  %0 = tensor.insert_slice %b into %v[1] [2] [1] : tensor<2xf32> into tensor<3xf32>
  %1 = tensor.insert_slice %a into %0[0] [1] [1] : tensor<f32> into tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

// The last insertion into a slot is the one that counts.
// CHECK-LABEL: func @overwritten
// CHECK-SAME: (%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>
// CHECK: %[[E:.*]] = tensor.extract %[[B]][]
// CHECK: tensor.from_elements %[[E]] : tensor<1xf32>
func.func @overwritten(%a: tensor<f32>, %b: tensor<f32>, %v: tensor<1xf32>) -> tensor<1xf32> {
  %0 = tensor.insert_slice %a into %v[0] [1] [1] : tensor<f32> into tensor<1xf32>
  %1 = tensor.insert_slice %b into %0[0] [1] [1] : tensor<f32> into tensor<1xf32>
  return %1 : tensor<1xf32>
}

// -----

// A slot that keeps its old value, an offset known only later, a long slice.
// CHECK-LABEL: func @kept
// CHECK-COUNT-3: tensor.insert_slice
// CHECK-NOT: tensor.from_elements
func.func @kept(%a: tensor<f32>, %long: tensor<16xf32>, %v: tensor<2xf32>, %w: tensor<16xf32>, %i: index)
    -> (tensor<2xf32>, tensor<2xf32>, tensor<16xf32>) {
  %0 = tensor.insert_slice %a into %v[0] [1] [1] : tensor<f32> into tensor<2xf32>
  %1 = tensor.insert_slice %a into %v[%i] [1] [1] : tensor<f32> into tensor<2xf32>
  %2 = tensor.insert_slice %long into %w[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<16xf32>
}

// -----

// Elements are read as scalars, but for those of loops and those whose place is known only later.
// CHECK-LABEL: func @read
// CHECK-SAME: (%[[V:.*]]: tensor<3xf32>
// CHECK: %[[C2:.*]] = arith.constant 2
// CHECK: %[[E:.*]] = tensor.extract %[[V]][%[[C2]]]
// CHECK: %[[T:.*]] = tensor.from_elements %[[E]] : tensor<f32>
// CHECK: %[[ANY:.*]] = tensor.extract_slice
// CHECK: scf.for
// CHECK: tensor.extract_slice
// CHECK: return %[[T]], %[[ANY]]
func.func @read(%v: tensor<3xf32>, %i: index) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = tensor.extract_slice %v[2] [1] [1] : tensor<3xf32> to tensor<f32>
  %1 = tensor.extract_slice %v[%i] [1] [1] : tensor<3xf32> to tensor<f32>
  %2 = scf.for %j = %c0 to %i step %c1 iter_args(%last = %0) -> tensor<f32> {
    %3 = tensor.extract_slice %v[1] [1] [1] : tensor<3xf32> to tensor<f32>
    scf.yield %3 : tensor<f32>
  }
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}
