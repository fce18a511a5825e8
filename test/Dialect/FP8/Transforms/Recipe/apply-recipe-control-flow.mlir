// Amaxes leave loops and branches as results of theirs: what does not run leaves 0.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-apply-recipe{calibrate recipe=#fp8.delayed_scaling<amax_history_len=4>})' | FileCheck %s --enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The weight is cast before the loop; its amax counts where the product runs.
// CHECK-LABEL: func.func @while
// CHECK: %[[W:.+]]:3 = fp8.quantize record_amax column(4) ins(%arg1
// CHECK: %[[ZERO:.+]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[LOOP:.+]]:3 = scf.while (%[[X:[^ ]+]] = %{{[^ ]+}}, %[[XA:[^ ]+]] = %[[ZERO]], %[[WA:[^ ]+]] = %[[ZERO]])
// CHECK: scf.condition(%{{.+}}) %[[X]], %[[XA]], %[[WA]]
// CHECK: ^bb0(%[[Y:.+]]: tensor<8x8xbf16>, %[[YA:.+]]: tensor<f32>, %[[VA:.+]]: tensor<f32>):
// CHECK: %[[Q:.+]]:3 = fp8.quantize record_amax column(3) ins(%[[Y]]
// CHECK: fp8.scaled_matmul {{.+}} ins(%[[Q]]#0, %[[W]]#0 :
// CHECK: %[[YM:.+]] = arith.maximumf %[[YA]], %[[Q]]#2
// CHECK: %[[VM:.+]] = arith.maximumf %[[VA]], %[[W]]#2
// CHECK: scf.yield %{{.+}}, %[[YM]], %[[VM]]
// CHECK: tensor.expand_shape %[[LOOP]]#1
// CHECK: fp8.update_amax_history {{.+}} columns [3]
// CHECK: tensor.expand_shape %[[LOOP]]#2
// CHECK: fp8.update_amax_history {{.+}} columns [4]
func.func @while(%x: tensor<8x8xbf16>, %w: tensor<8x8xbf16>, %c: tensor<8x8xbf16>, %more: i1) -> tensor<8x8xbf16> {
  %r = scf.while (%y = %x) : (tensor<8x8xbf16>) -> tensor<8x8xbf16> {
    scf.condition(%more) %y : tensor<8x8xbf16>
  } do {
  ^bb0(%y: tensor<8x8xbf16>):
    %0 = fp8.matmul site("while") role(fprop) kinds(input, weight) ins(%y, %w : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
    scf.yield %0 : tensor<8x8xbf16>
  }
  return %r : tensor<8x8xbf16>
}

// A branch without one gets an else that yields 0.
// CHECK-LABEL: func.func @branch
// CHECK: %[[IF:.+]]:2 = scf.if %{{.+}} -> (tensor<f32>, tensor<f32>) {
// CHECK: scf.yield %{{.+}}#2, %{{.+}}#2 : tensor<f32>, tensor<f32>
// CHECK: } else {
// CHECK: %[[ZERO:.+]] = arith.constant dense<0.000000e+00>
// CHECK: scf.yield %[[ZERO]], %[[ZERO]]
func.func @branch(%x: tensor<8x8xbf16>, %w: tensor<8x8xbf16>, %c: tensor<8x8xbf16>, %taken: i1) {
  scf.if %taken {
    %0 = fp8.matmul site("if") role(fprop) kinds(input, weight) ins(%x, %w : tensor<8x8xbf16>, tensor<8x8xbf16>)
        outs(%c : tensor<8x8xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<8x8xbf16>
  }
  return
}

// Iterations side by side write to elements of their own; the steps are counted from 0.
// CHECK-LABEL: func.func @forall
// CHECK: %[[FORALL:.+]]:2 = scf.forall (%[[I:.+]]) = (2) to (9) step (3) shared_outs(%[[Y:[^ ]+]] = %{{[^ ]+}}, %[[A:[^ ]+]] = %{{[^ ]+}}) -> (tensor<9x8xbf16>, tensor<3xf32>)
// CHECK: %[[Q:.+]]:3 = fp8.quantize record_amax column(
// CHECK: %[[POSITION:.+]] = affine.apply
// CHECK: tensor.parallel_insert_slice %[[Q]]#2 into %[[A]][%[[POSITION]]] [1] [1] : tensor<f32> into tensor<3xf32>
// CHECK: linalg.reduce ins(%[[FORALL]]#1 : tensor<3xf32>) outs(%{{.+}} : tensor<f32>) dimensions = [0]
func.func @forall(%x: tensor<9x8xbf16>, %c: tensor<1x1xbf16>) -> tensor<9x8xbf16> {
  %r = scf.forall (%i) = (2) to (9) step (3) shared_outs(%y = %x) -> tensor<9x8xbf16> {
    %s = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<9x8xbf16> to tensor<1x8xbf16>
    %0 = fp8.matmul site("forall") role(other) kinds(input, input) ins(%s, %s : tensor<1x8xbf16>, tensor<1x8xbf16>)
        outs(%c : tensor<1x1xbf16>) {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]} -> tensor<1x1xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %y[%i, 0] [1, 1] [1, 1] : tensor<1x1xbf16> into tensor<9x8xbf16>
    }
  }
  return %r : tensor<9x8xbf16>
}
