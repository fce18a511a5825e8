// Where the scale enters the backward pass, and where it is divided out.
// RUN: fp8-opt %s --fp8-scale-loss -split-input-file | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The gradient of ½ Σ y² is y itself: only the gradients' products read the scaled y. The moment and the weight read
// one quotient. The loss, and the result that is not carried, are as before.
// CHECK-LABEL: func.func @momentum(
// CHECK-SAME: %[[W:[^ :]+]]: tensor<8x16xf32> {tf.aliasing_output = 0 : i32}, %[[V:[^ :]+]]: tensor<8x16xf32> {tf.aliasing_output = 1 : i32}
// CHECK-SAME: %[[S:[^ :]+]]: tensor<f32> {fp8.initial = dense<6.553600e+04> : tensor<f32>, fp8.program_state = "loss_scale", tf.aliasing_output = 3 : i32}
// CHECK-SAME: %[[T:[^ :]+]]: tensor<i32> {fp8.initial = dense<0> : tensor<i32>, fp8.program_state = "loss_scale_tracker", tf.aliasing_output = 4 : i32}
func.func @momentum(%w: tensor<8x16xf32> {tf.aliasing_output = 0 : i32}, %v: tensor<8x16xf32> {tf.aliasing_output = 1 : i32},
                    %x: tensor<4x8xf32>, %loss: tensor<f32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<f32>) {
  // CHECK: %[[Y:.+]] = fp8.matmul {{.*}} role(fprop)
  // CHECK: %[[SY:.+]] = linalg.generic {{.+}} ins(%[[Y]], %[[S]] :
  // CHECK: arith.mulf
  // CHECK: %[[SUM:.+]] = linalg.generic {{.+}} iterator_types = ["reduction", "reduction"]} ins(%[[Y]] :
  // CHECK: %[[G:.+]] = fp8.matmul {{.*}} role(wgrad) {{.*}} ins(%{{.+}}, %[[SY]] :
  // CHECK: %[[U:.+]]:2 = fp8.unscale ins(%[[G]] : tensor<8x16xf32>) scale(%[[S]] : tensor<f32>)
  // CHECK: %[[NV:.+]] = arith.addf %[[V]], %[[U]]#0
  // CHECK: %[[NW:.+]] = arith.subf %[[W]], %{{.+}}
  // CHECK: %[[KW:.+]] = linalg.generic {{.+}} ins(%[[W]], %[[NW]], %[[U]]#1 :
  // CHECK: arith.cmpf une
  // CHECK: arith.select
  // CHECK: %[[KV:.+]] = linalg.generic {{.+}} ins(%[[V]], %[[NV]], %[[U]]#1 :
  // CHECK: %[[NEXT:.+]]:2 = fp8.update_loss_scale ins(%[[U]]#1 : tensor<f32>) outs(%[[S]], %[[T]] : tensor<f32>, tensor<i32>)
  // CHECK: return %[[KW]], %[[KV]], %[[SUM]], %[[NEXT]]#0, %[[NEXT]]#1
  %e = tensor.empty() : tensor<4x16xf32>
  %y = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>)
      outs(%e : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%y : tensor<4x16xf32>) outs(%loss : tensor<f32>) {
    ^bb0(%p: f32, %r: f32):
      %q = arith.mulf %p, %p : f32
      %s = arith.addf %r, %q : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %ew = tensor.empty() : tensor<8x16xf32>
  %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %y : tensor<4x8xf32>, tensor<4x16xf32>)
      outs(%ew : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  %rate = arith.constant dense<0.5> : tensor<8x16xf32>
  %nv = arith.addf %v, %g : tensor<8x16xf32>
  %step = arith.mulf %g, %rate : tensor<8x16xf32>
  %nw = arith.subf %w, %step : tensor<8x16xf32>
  return %nw, %nv, %sum : tensor<8x16xf32>, tensor<8x16xf32>, tensor<f32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A factor that is folded into the same body as something else is scaled there; gradients that are results are
// divided, and nothing is carried.
// CHECK-LABEL: func.func @folded(
// CHECK-SAME: %[[S:[^ :]+]]: tensor<f32> {fp8.initial
func.func @folded(%w: tensor<8x16xf32>, %x: tensor<4x8xf32>, %t: tensor<4x16xf32>, %loss: tensor<f32>) -> (tensor<f32>, tensor<8x16xf32>) {
  // CHECK: %[[DY:.+]] = linalg.generic {{.+}} ins(%{{.+}}, %{{.+}}, %[[S]] : tensor<4x16xf32>, tensor<4x16xf32>, tensor<f32>)
  // CHECK: %[[D:.+]] = arith.subf
  // CHECK: %[[F:.+]] = arith.mulf %[[D]], %{{.+}} : f32
  // CHECK: %[[SF:.+]] = arith.mulf %[[F]], %{{.+}} : f32
  // CHECK: linalg.yield %[[SF]]
  // CHECK: %[[G:.+]] = fp8.matmul {{.*}} role(wgrad) {{.*}} ins(%{{.+}}, %[[DY]] :
  // CHECK: %[[U:.+]]:2 = fp8.unscale ins(%[[G]] :
  // CHECK: return %{{.+}}, %[[U]]#0, %{{.+}}, %{{.+}} :
  %e = tensor.empty() : tensor<4x16xf32>
  %y = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>)
      outs(%e : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%y : tensor<4x16xf32>) outs(%loss : tensor<f32>) {
    ^bb0(%p: f32, %r: f32):
      %s = arith.addf %r, %p : f32
      linalg.yield %s : f32
  } -> tensor<f32>
  %c = arith.constant 0.125 : f32
  %dy = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%y, %t : tensor<4x16xf32>, tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
    ^bb0(%p: f32, %q: f32, %r: f32):
      %d = arith.subf %p, %q : f32
      %m = arith.mulf %d, %c : f32
      linalg.yield %m : f32
  } -> tensor<4x16xf32>
  %ew = tensor.empty() : tensor<8x16xf32>
  %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>)
      outs(%ew : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
  return %sum, %g : tensor<f32>, tensor<8x16xf32>
}

// A function without gradients is left as it is.
// CHECK-LABEL: func.func @evaluate(
// CHECK-NOT: loss_scale
// CHECK: return %{{.+}} : tensor<4x16xf32>
func.func @evaluate(%w: tensor<8x16xf32>, %x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<4x16xf32>
  %y = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>)
      outs(%e : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Gradients that a loop adds up over microbatches are divided after it.
// CHECK-LABEL: func.func @microbatches(
// CHECK: scf.for
// CHECK-NOT: fp8.unscale
// CHECK: scf.yield
// CHECK: fp8.unscale ins(%{{.+}} : tensor<8x16xf32>)
func.func @microbatches(%w: tensor<8x16xf32> {tf.aliasing_output = 0 : i32}, %xs: tensor<3x4x8xf32>, %loss: tensor<f32>) -> (tensor<8x16xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  %ew = tensor.empty() : tensor<8x16xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero, %l = %loss) -> (tensor<8x16xf32>, tensor<f32>) {
    %x = tensor.extract_slice %xs[%i, 0, 0] [1, 4, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<4x8xf32>
    %y = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>)
        outs(%e : tensor<4x16xf32>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xf32>
    %sum = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> ()>], iterator_types = ["reduction", "reduction"]}
        ins(%y : tensor<4x16xf32>) outs(%l : tensor<f32>) {
      ^bb0(%p: f32, %q: f32):
        %sq = arith.mulf %p, %p : f32
        %s = arith.addf %q, %sq : f32
        linalg.yield %s : f32
    } -> tensor<f32>
    %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %y : tensor<4x8xf32>, tensor<4x16xf32>)
        outs(%ew : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
    %a = arith.addf %acc, %g : tensor<8x16xf32>
    scf.yield %a, %sum : tensor<8x16xf32>, tensor<f32>
  }
  %nw = arith.subf %w, %r#0 : tensor<8x16xf32>
  return %nw, %r#1 : tensor<8x16xf32>, tensor<f32>
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// An overflow on any rank, along whichever axis, makes all of them skip the step.
module attributes {fp8.grid = array<i64: 2, 4>} {
  // CHECK-LABEL: func.func @ranks(
  // CHECK: %[[U:.+]]:2 = fp8.unscale
  // CHECK: %[[ANY:.+]] = fp8.all_reduce max on(2x4) axes [0, 1] of("overflow") ins(%[[U]]#1 : tensor<f32>)
  // CHECK: linalg.generic {{.+}} ins(%arg0, %{{.+}}, %[[ANY]] :
  // CHECK: fp8.update_loss_scale ins(%[[ANY]] : tensor<f32>)
  func.func @ranks(%w: tensor<8x16xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4x8xf32>, %dy: tensor<4x16xf32>,
                   %loss: tensor<f32>) -> (tensor<8x16xf32>, tensor<f32>) {
    %e = tensor.empty() : tensor<8x16xf32>
    %g = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) ins(%x, %dy : tensor<4x8xf32>, tensor<4x16xf32>)
        outs(%e : tensor<8x16xf32>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xf32>
    %n = arith.subf %w, %g : tensor<8x16xf32>
    return %n, %loss : tensor<8x16xf32>, tensor<f32>
  }
}
