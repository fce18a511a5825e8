// RUN: fp8-opt %s --split-input-file --fp8-globals-to-state | FileCheck %s -enable-var-scope --implicit-check-not=ml_program

// Every read sees the last write before it; a function that only reads gives nothing back.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[X:.*]]: tensor<i64>, %[[SEED:.*]]: tensor<i64> {fp8.initial = dense<7> : tensor<i64>, fp8.program_state = "seed", tf.aliasing_output = 1 : i32})
// CHECK-SAME: -> (tensor<i64>, tensor<i64> {fp8.program_state = "seed"})
// CHECK: %[[NEXT:.*]] = arith.addi %[[SEED]], %[[X]]
// CHECK: %[[LAST:.*]] = arith.muli %[[NEXT]], %[[SEED]]
// CHECK: return %[[NEXT]], %[[LAST]]
ml_program.global private mutable @seed(dense<7> : tensor<i64>) : tensor<i64>
func.func @train(%x: tensor<i64>) -> tensor<i64> {
  %old = ml_program.global_load @seed : tensor<i64>
  %sum = arith.addi %old, %x : tensor<i64>
  ml_program.global_store @seed = %sum : tensor<i64>
  %new = ml_program.global_load @seed : tensor<i64>
  %product = arith.muli %new, %old : tensor<i64>
  ml_program.global_store @seed = %product : tensor<i64>
  return %new : tensor<i64>
}
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: %[[SEED:.*]]: tensor<i64> {fp8.initial = dense<7> : tensor<i64>, fp8.program_state = "seed"}) -> tensor<i64>
// CHECK: return %[[SEED]]
func.func @evaluate() -> tensor<i64> {
  %old = ml_program.global_load @seed : tensor<i64>
  return %old : tensor<i64>
}
// CHECK-LABEL: func.func @other() {
func.func @other() {
  return
}

// -----

// Scalars are tensors of rank 0; through branches and loops.
// CHECK-LABEL: func.func @inside(
// CHECK-SAME: %[[GO:.*]]: i1, %[[N:.*]]: index, %[[COUNT:.*]]: tensor<i32> {fp8.initial = dense<3> : tensor<i32>, fp8.program_state = "count", tf.aliasing_output = 0 : i32})
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} iter_args(%[[NOW:.*]] = %[[COUNT]]) -> (tensor<i32>) {
// CHECK:   %[[IF:.*]] = scf.if %[[GO]] -> (tensor<i32>) {
// CHECK:     %[[OLD:.*]] = tensor.extract %[[NOW]][]
// CHECK:     %[[SUM:.*]] = arith.addi %[[OLD]]
// CHECK:     %[[NEW:.*]] = tensor.from_elements %[[SUM]] : tensor<i32>
// CHECK:     scf.yield %[[NEW]]
// CHECK:   } else {
// CHECK:     scf.yield %[[NOW]]
// CHECK:   scf.yield %[[IF]]
// CHECK: return %[[LOOP]]
ml_program.global private mutable @count(3 : i32) : i32
func.func @inside(%go: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 {
    scf.if %go {
      %old = ml_program.global_load @count : i32
      %sum = arith.addi %old, %one : i32
      ml_program.global_store @count = %sum : i32
    }
  }
  return
}

// -----

// A global that nobody writes is a constant, mutable or not.
// CHECK-LABEL: func.func @constants() -> (tensor<2xf32>, tensor<2xf32>) {
// CHECK-DAG: %[[A:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK-DAG: %[[B:.*]] = arith.constant dense<5.000000e-01>
// CHECK: return %[[A]], %[[B]]
ml_program.global private @table(dense<[1.0, 2.0]> : tensor<2xf32>) : tensor<2xf32>
ml_program.global private mutable @never(dense<0.5> : tensor<2xf32>) : tensor<2xf32>
ml_program.global private mutable @unused : tensor<?xf32>
func.func @constants() -> (tensor<2xf32>, tensor<2xf32>) {
  %a = ml_program.global_load_const @table : tensor<2xf32>
  %b = ml_program.global_load @never : tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}

// -----

// In front of residuals.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: {{.*}}tf.aliasing_output = 1 : i32}) -> (f32, tensor<i64> {fp8.program_state = "seed"}, f32 {fp8.residual}) attributes
// CHECK: return %[[Y:.*]], %{{.*}}, %[[Y]] : f32, tensor<i64>, f32
ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>
func.func @forward(%x: f32, %y: tensor<i64>) -> (f32, f32 {fp8.residual}) attributes {fp8.backward = @backward} {
  ml_program.global_store @seed = %y : tensor<i64>
  return %x, %x : f32, f32
}
func.func @backward(%r: f32 {fp8.residual}) -> f32 {
  return %r : f32
}
