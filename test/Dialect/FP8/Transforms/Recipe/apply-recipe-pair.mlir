// The state of a joined pair: forward's tensors are updated at the end of forward, gradients
// at the end; what backward computes again is cast with the scale from before the update and
// recorded no more.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-apply-recipe{recipe=#fp8.delayed_scaling<amax_history_len=2>})' | FileCheck -enable-var-scope %s

// CHECK:       module attributes {{.*}}fp8.state_columns = [{{.*}}sites = ["fc"], tensor = "input"}, {{.*}}tensor = "weight"}, {{.*}}f8E5M2, sites = ["fc"], tensor = "grad_output"}]
// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x16xf32>, %[[S:.*]]: tensor<3xf32> {{.*}}, %[[H:.*]]: tensor<2x3xf32>

// CHECK:         %[[A:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT:    %[[SA:.*]] = tensor.extract_slice %[[S]][0]
// CHECK:         %[[QA:.*]]:3 = fp8.quantize record_amax column(0) ins(%[[A]] :{{.*}} scale(%[[SA]] :
// CHECK:         fp8.scaled_matmul site("fc") role(fprop)
// CHECK-NEXT:    %[[SAGAIN:.*]] = tensor.extract_slice %[[S]][0]
// CHECK:         %[[U0:.*]]:2 = fp8.update_amax_history {{.*}} columns [0] {{.*}} outs(%[[S]], %[[H]] :
// CHECK:         %[[U1:.*]]:2 = fp8.update_amax_history {{.*}} columns [1] {{.*}} outs(%[[U0]]#0, %[[U0]]#1 :
// CHECK-NEXT:    %[[E:.*]]:3 = fp8.end_forward @b given(%{{.*}}, %[[U1]]#0, %[[U1]]#1 : tensor<4x16xf32>, tensor<3xf32>, tensor<2x3xf32>) -> tensor<4x16xf32>, tensor<3xf32>, tensor<2x3xf32>
// CHECK:         %[[SG:.*]] = tensor.extract_slice %[[E]]#1[2]
// CHECK:         %[[G:.*]]:3 = fp8.quantize record_amax column(2) ins(%[[E]]#0 :{{.*}} scale(%[[SG]] :
// CHECK:         %[[AGAIN:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK:         fp8.quantize column(0) ins(%[[AGAIN]] :{{.*}} scale(%[[SAGAIN]] :
// CHECK:         fp8.scaled_matmul site("fc") role(wgrad)
// CHECK:         %[[U2:.*]]:2 = fp8.update_amax_history {{.*}} columns [2] {{.*}} outs(%[[E]]#1, %[[E]]#2 :
// CHECK-NEXT:    return %{{.*}}, %{{.*}}, %[[U2]]#0, %[[U2]]#1
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<8x16xf32>) {
  %i = tensor.empty() : tensor<4x16xf32>
  %a = arith.mulf %x, %x : tensor<4x8xf32>
  %y = fp8.matmul site("fc") role(fprop) kinds(input, weight)
      ins(%a, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%i : tensor<4x16xf32>)
      {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %dy = fp8.end_forward @b given(%y : tensor<4x16xf32>) -> tensor<4x16xf32>
  %again = arith.mulf %x, %x : tensor<4x8xf32>
  %j = tensor.empty() : tensor<8x16xf32>
  %dw = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output)
      ins(%again, %dy : tensor<4x8xf32>, tensor<4x16xf32>) outs(%j : tensor<8x16xf32>)
      {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %y, %dw : tensor<4x16xf32>, tensor<8x16xf32>
}
func.func @b(%x: tensor<4x8xf32> {fp8.residual}, %dy: tensor<4x16xf32>) -> tensor<8x16xf32> {
  %p = ub.poison : tensor<8x16xf32>
  return %p : tensor<8x16xf32>
}
