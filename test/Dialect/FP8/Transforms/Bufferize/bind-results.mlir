// RUN: fp8-opt %s --split-input-file --fp8-bind-results | FileCheck %s -enable-var-scope

// A carried result goes to its argument, another to one of its own. The value that is
// returned twice is read back from where it was written first.
// CHECK-LABEL: func @step
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true, tf.aliasing_output = 0 : i32}
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = false}
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true, fp8.result = 1 : i32})
// CHECK: %[[NEXT:.*]] = linalg.add
// CHECK-NEXT: %[[R0:.*]] = bufferization.materialize_in_destination %[[NEXT]] in %[[W]]
// CHECK-NEXT: %[[R1:.*]] = bufferization.materialize_in_destination %[[R0]] in %[[OUT]]
// CHECK-NEXT: return %[[R0]], %[[R1]]
func.func @step(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %next = linalg.add ins(%w, %x : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %next, %next : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func @scalars
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<f32> {bufferization.writable = false}
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: tensor<f32> {bufferization.writable = true, fp8.result = 0 : i32}) -> tensor<f32>
// CHECK: %[[E:.*]] = tensor.extract %[[X]][]
// CHECK: %[[SUM:.*]] = arith.addf %[[E]], %[[E]]
// CHECK: %[[T:.*]] = tensor.from_elements %[[SUM]] : tensor<f32>
// CHECK: bufferization.materialize_in_destination %[[T]] in %[[OUT]]
func.func @scalars(%x: f32) -> f32 {
  %sum = arith.addf %x, %x : f32
  return %sum : f32
}

// -----

// Arguments that change places, one that stays, and a view of it.
// CHECK-LABEL: func @swap
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true, tf.aliasing_output = 1 : i32}
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<4xf32> {bufferization.writable = true, tf.aliasing_output = 0 : i32}
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<2x2xf32>
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[C]]
// CHECK-DAG: %[[OLD_A:.*]] = bufferization.alloc_tensor() copy(%[[A]])
// CHECK-DAG: %[[OLD_B:.*]] = bufferization.alloc_tensor() copy(%[[B]])
// CHECK-DAG: %[[OLD_FLAT:.*]] = bufferization.alloc_tensor() copy(%[[FLAT]])
// CHECK: %[[R0:.*]] = bufferization.materialize_in_destination %[[OLD_A]] in %[[B]]
// CHECK: %[[R1:.*]] = bufferization.materialize_in_destination %[[OLD_B]] in %[[A]]
// CHECK: %[[R3:.*]] = bufferization.materialize_in_destination %[[OLD_FLAT]] in
// CHECK: return %[[R0]], %[[R1]], %[[C]], %[[R3]]
func.func @swap(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 0 : i32},
                %c: tensor<2x2xf32> {tf.aliasing_output = 2 : i32})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>) {
  %flat = tensor.collapse_shape %c [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  return %a, %b, %c, %flat : tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>
}

// -----

// A value and a view of it: the view is saved before the value's memory is final.
// CHECK-LABEL: func @views
// CHECK: %[[Y:.*]] = linalg.exp
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[Y]]
// CHECK: %[[SAVED:.*]] = bufferization.alloc_tensor() copy(%[[FLAT]])
// CHECK: bufferization.materialize_in_destination %[[Y]]
// CHECK: bufferization.materialize_in_destination %[[SAVED]]
func.func @views(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<2x2xf32>
  %y = linalg.exp ins(%x : tensor<2x2xf32>) outs(%empty : tensor<2x2xf32>) -> tensor<2x2xf32>
  %flat = tensor.collapse_shape %y [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  return %y, %flat : tensor<2x2xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func @constant_and_argument
// CHECK: %[[C:.*]] = arith.constant
// CHECK: bufferization.materialize_in_destination %[[C]]
// CHECK: bufferization.materialize_in_destination %arg0
func.func @constant_and_argument(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %c, %x : tensor<2xf32>, tensor<2xf32>
}

// -----

// Private functions are not entries.
// CHECK-LABEL: func private @helper(%arg0: tensor<2xf32>) -> tensor<2xf32>
func.func private @helper(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// A result of dynamic shape is returned; a carried one is checked, for its memory is given.
// CHECK-LABEL: func @dynamic
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<?x4xf32> {bufferization.writable = true, tf.aliasing_output = 0 : i32}
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x4xf32> {bufferization.writable = false}) -> (tensor<?x4xf32>, tensor<?x4xf32>)
// CHECK: %[[Y:.*]] = arith.negf %[[X]]
// CHECK: %[[HAVE:.*]] = tensor.dim %[[Y]]
// CHECK: %[[WANT:.*]] = tensor.dim %[[W]]
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[HAVE]], %[[WANT]]
// CHECK: cf.assert %[[SAME]], "result 0 has another size than argument 0 'w', which becomes it"
// CHECK: %[[R0:.*]] = bufferization.materialize_in_destination %[[Y]] in %[[W]]
// CHECK: return %[[R0]], %[[Y]]
func.func @dynamic(%w: tensor<?x4xf32> {tf.aliasing_output = 0 : i32} loc("w"), %x: tensor<?x4xf32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %y = arith.negf %x : tensor<?x4xf32>
  return %y, %y : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// The constant of a branch is copied: the argument of the other branch is overwritten.
// CHECK-LABEL: func.func @yields_constant(
// CHECK: scf.if
// CHECK: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%{{.*}}) : tensor<i32>
// CHECK-NEXT: scf.yield %[[COPY]] : tensor<i32>
// CHECK: else
// CHECK-NEXT: scf.yield %{{.*}} : tensor<i32>
func.func @yields_constant(%p: i1, %n: tensor<i32> {tf.aliasing_output = 0 : i32}) -> tensor<i32> {
  %zero = arith.constant dense<0> : tensor<i32>
  %r = scf.if %p -> tensor<i32> {
    scf.yield %zero : tensor<i32>
  } else {
    scf.yield %n : tensor<i32>
  }
  return %r : tensor<i32>
}

// -----

// An insertion into an argument may be done in its memory, which another result overwrites: it is saved.
// CHECK-LABEL: func.func @changed_argument(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[CHANGED:.*]] = tensor.insert_slice
// CHECK: %[[SAVED:.*]] = bufferization.alloc_tensor() copy(%[[CHANGED]])
// CHECK: bufferization.materialize_in_destination %{{.*}} in %[[W]]
// CHECK: bufferization.materialize_in_destination %[[SAVED]] in
func.func @changed_argument(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4xf32>, %s: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %changed = tensor.insert_slice %s into %w[1] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %x, %changed : tensor<4xf32>, tensor<4xf32>
}

// -----

// It is not where the argument becomes that result.
// CHECK-LABEL: func.func @changed_in_place(
// CHECK-NOT: alloc_tensor
// CHECK: return
func.func @changed_in_place(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %s: tensor<2xf32>) -> tensor<4xf32> {
  %changed = tensor.insert_slice %s into %w[1] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %changed : tensor<4xf32>
}
