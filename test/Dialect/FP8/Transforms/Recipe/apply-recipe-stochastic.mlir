// Stochastic rounding: casts of gradients read the state of seed and step, in a pair that of backward. Both
// directions of one gradient have one stream; without state the streams are numbers.
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-apply-recipe{stochastic-rounding=true recipe=#fp8.delayed_scaling<amax_history_len=2>})' | FileCheck -enable-var-scope %s
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-apply-recipe{stochastic-rounding=true recipe=#fp8.row_scaling})' | FileCheck -enable-var-scope %s --check-prefix=ROW
// RUN: not fp8-opt %s -split-input-file --pass-pipeline='builtin.module(fp8-apply-recipe{stochastic-rounding=true recipe=#fp8.row_scaling},fp8-apply-recipe{stochastic-rounding=true})' 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: --stochastic-rounding=true: no gradient becomes FP8, so that nothing is rounded stochastically; drop the option, or let dgrad or wgrad become FP8

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x8xf32>, %[[W:[^:]*]]: tensor<8x16xf32>, %[[G:[^:]*]]: tensor<4x16xf32>,
// CHECK-SAME:    %[[R:[^:]*]]: tensor<2xi64> {fp8.initial = dense<0> : tensor<2xi64>, fp8.program_state = "rounding", tf.aliasing_output = 3 : i32}, %{{[^:]*}}: tensor<3xf32> {{[^,]*}}fp8.state = "scale"
// CHECK-DAG:     fp8.quantize record_amax column(0) ins(%[[X]] : tensor<4x8xf32>) scale(%{{[^)]*}}) outs
// CHECK-DAG:     fp8.quantize record_amax column(2) ins(%[[G]] : tensor<4x16xf32>) scale(%{{[^)]*}}) random(%[[R]] : tensor<2xi64>) stream(2) outs
// CHECK:         %[[ONE:.*]] = arith.constant dense<[0, 1]> : tensor<2xi64>
// CHECK:         %[[NEXT:.*]] = arith.addi %[[R]], %[[ONE]]
// CHECK:         return %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT]], %{{.*}}, %{{.*}} :

// ROW-LABEL: func.func @step(
// ROW-SAME:    %[[G:[^:]*]]: tensor<4x16xf32>, %[[R:[^:]*]]: tensor<2xi64>
// ROW-DAG:     fp8.quantize_blocks {{.*}} ins(%[[G]] : tensor<4x16xf32>) random(%[[R]] : tensor<2xi64>) stream(0) outs{{.*}} {blocks = [array<i64: 1, 0>]}
// ROW-DAG:     fp8.quantize_blocks {{.*}} ins(%[[G]] : tensor<4x16xf32>) random(%[[R]] : tensor<2xi64>) stream(0) outs{{.*}} {blocks = [array<i64: 0, 1>]}
// ROW:         return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
func.func @step(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %g: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x8xf32>, tensor<8x16xf32>) {
  %i = tensor.empty() : tensor<4x16xf32>
  %j = tensor.empty() : tensor<4x8xf32>
  %k = tensor.empty() : tensor<8x16xf32>
  %y = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dx = fp8.matmul site("fc") role(dgrad) kinds(grad_output, weight) ins(%g, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%j : tensor<4x8xf32>)
      {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xf32>
  %dw = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %g : tensor<4x8xf32>, tensor<4x16xf32>) outs(%k : tensor<8x16xf32>)
      {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %y, %dx, %dw : tensor<4x16xf32>, tensor<4x8xf32>, tensor<8x16xf32>
}

// -----

// A gradient that forward has already is cast in backward, which has the seed.

// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x8xf32>, %[[G:[^:]*]]: tensor<4x16xf32>, %[[S:[^:]*]]: tensor<2xf32>
// CHECK:         %[[E:.*]]:3 = fp8.end_forward @b
// CHECK:         fp8.quantize record_amax column(1) ins(%[[G]] : {{.*}} random(%[[E]]#0 : tensor<2xi64>) stream(1)
// CHECK:         %[[NEXT:.*]] = arith.addi %[[E]]#0
// CHECK:         return %{{.*}}, %{{.*}}, %[[NEXT]], %{{.*}}, %{{.*}} :
// CHECK:       func.func @b({{.*}}tensor<4x8xf32> {fp8.residual}, %{{[^:]*}}: tensor<2xi64> {fp8.initial = dense<0> : tensor<2xi64>, fp8.program_state = "rounding", tf.aliasing_output = 1 : i32})
// CHECK-SAME:      -> (tensor<8x16xf32>, tensor<2xi64> {fp8.program_state = "rounding"})
// ROW-LABEL: func.func @f(

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<4x8xf32>, %g: tensor<4x16xf32>) -> (tensor<4x8xf32>, tensor<8x16xf32>) {
  fp8.end_forward @b given(%x : tensor<4x8xf32>)
  %j = tensor.empty() : tensor<8x16xf32>
  %dw = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output)
      ins(%x, %g : tensor<4x8xf32>, tensor<4x16xf32>) outs(%j : tensor<8x16xf32>)
      {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %x, %dw : tensor<4x8xf32>, tensor<8x16xf32>
}
func.func @b(%x: tensor<4x8xf32> {fp8.residual}) -> tensor<8x16xf32> {
  %p = ub.poison : tensor<8x16xf32>
  return %p : tensor<8x16xf32>
}
