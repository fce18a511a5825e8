// RUN: fp8-opt --fp8-split-pair --split-input-file -verify-diagnostics %s | FileCheck -enable-var-scope %s

// The source of a cast crosses, so that the cast is repeated: with the scale from before
// the update, and without recording. State is the last arguments and results of both.

// CHECK-LABEL: func.func @shared(
// CHECK-SAME:    %[[X:.*]]: tensor<8xbf16> {fp8.returned = 1 : i32}, %[[S:.*]]: tensor<2xf32> {fp8.state = "scale", tf.aliasing_output = 3 : i32},
// CHECK-SAME:    %[[H:.*]]: tensor<4x2xf32> {fp8.state = "amax_history", tf.aliasing_output = 4 : i32})
// CHECK-SAME:    -> (tensor<8xf8E4M3FN>, tensor<8xbf16> {fp8.residual}, tensor<f32> {fp8.residual}, tensor<2xf32> {fp8.state = "scale"}, tensor<4x2xf32> {fp8.state = "amax_history"})
// CHECK:         %[[ONE:.*]] = tensor.extract_slice %[[S]][0]
// CHECK:         %[[Q:.*]]:3 = fp8.quantize record_amax column(0) ins(%[[X]] : tensor<8xbf16>) scale(%[[ONE]] : tensor<f32>)
// CHECK:         %[[U:.*]]:2 = fp8.update_amax_history
// CHECK:         return %[[Q]]#0, %[[X]], %[[ONE]], %[[U]]#0, %[[U]]#1
// CHECK-LABEL: func.func @shared_backward(
// CHECK-SAME:    %[[X:.*]]: tensor<8xbf16> {fp8.residual}, %[[ONE:.*]]: tensor<f32> {fp8.residual}, %[[DY:.*]]: tensor<8xbf16>,
// CHECK-SAME:    %[[S:.*]]: tensor<2xf32> {fp8.state = "scale", tf.aliasing_output = 2 : i32}, %[[H:.*]]: tensor<4x2xf32> {fp8.state = "amax_history", tf.aliasing_output = 3 : i32})
// CHECK-SAME:    -> (tensor<8xf8E4M3FN>, tensor<8xbf16>, tensor<2xf32> {fp8.state = "scale"}, tensor<4x2xf32> {fp8.state = "amax_history"})
// CHECK-DAG:     %[[E:.*]] = tensor.empty() : tensor<8xf8E4M3FN>
// CHECK-DAG:     %[[I:.*]] = tensor.empty() : tensor<f32>
// CHECK-DAG:     %[[A:.*]] = arith.addf %[[X]], %[[DY]]
// CHECK-DAG:     %[[Q:.*]]:2 = fp8.quantize column(0) ins(%[[X]] : tensor<8xbf16>) scale(%[[ONE]] : tensor<f32>) outs(%[[E]], %[[I]] :
// CHECK:         return %[[Q]]#0, %[[A]], %[[S]], %[[H]]
func.func @shared(%x: tensor<8xbf16>, %s: tensor<2xf32> {fp8.state = "scale"},
                  %h: tensor<4x2xf32> {fp8.state = "amax_history"})
    -> (tensor<8xf8E4M3FN>, tensor<8xf8E4M3FN>, tensor<8xbf16>, tensor<2xf32> {fp8.state = "scale"},
        tensor<4x2xf32> {fp8.state = "amax_history"}) {
  %one = tensor.extract_slice %s[0] [1] [1] : tensor<2xf32> to tensor<f32>
  %e = tensor.empty() : tensor<8xf8E4M3FN>
  %f = tensor.empty() : tensor<f32>
  %q, %i, %a = fp8.quantize record_amax column(0) ins(%x : tensor<8xbf16>) scale(%one : tensor<f32>)
      outs(%e, %f, %f : tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>)
      -> tensor<8xf8E4M3FN>, tensor<f32>, tensor<f32>
  %v = tensor.expand_shape %a [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %u:2 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>) columns [0] formats [f8E4M3FN]
      ins(%v : tensor<1xf32>) outs(%s, %h : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
  %dy, %s1, %h1 = fp8.end_forward @shared_backward
      given(%q, %u#0, %u#1 : tensor<8xf8E4M3FN>, tensor<2xf32>, tensor<4x2xf32>)
      -> tensor<8xbf16>, tensor<2xf32>, tensor<4x2xf32>
  %b = arith.addf %x, %dy : tensor<8xbf16>
  return %q, %q, %b, %s1, %h1
    : tensor<8xf8E4M3FN>, tensor<8xf8E4M3FN>, tensor<8xbf16>, tensor<2xf32>, tensor<4x2xf32>
}
func.func @shared_backward(%dy: tensor<8xbf16>) -> (tensor<8xf8E4M3FN>, tensor<8xbf16>) {
  %p = ub.poison : tensor<8xf8E4M3FN>
  %q = ub.poison : tensor<8xbf16>
  return %p, %q : tensor<8xf8E4M3FN>, tensor<8xbf16>
}

// -----

// One pair of bytes and scale_inv crosses as it is; of three casts together the tensor that
// they cast takes less.

// CHECK-LABEL: func.func @casts(
// CHECK-SAME:    -> (tensor<64xbf16> {fp8.residual}, tensor<64xf8E4M3FN> {fp8.residual}, tensor<f32> {fp8.residual})
// CHECK-COUNT-1: fp8.quantize
// CHECK-NOT:     fp8.quantize
// CHECK-LABEL: func.func @casts_backward(
// CHECK-COUNT-3: fp8.amax
// CHECK-NOT:     fp8.amax
func.func @casts(%x: tensor<64xbf16>, %y: tensor<64xbf16>)
    -> (tensor<64xf8E4M3FN>, tensor<f32>, tensor<64xf8E4M3FN>, tensor<64xf8E5M2>, tensor<64xf8E4M3FN>) {
  %e = tensor.empty() : tensor<64xf8E4M3FN>
  %g = tensor.empty() : tensor<64xf8E5M2>
  %f = tensor.empty() : tensor<f32>
  %ax = fp8.amax ins(%x : tensor<64xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %sx = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%ax : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
  %qx, %ix = fp8.quantize ins(%x : tensor<64xbf16>) scale(%sx : tensor<f32>)
      outs(%e, %f : tensor<64xf8E4M3FN>, tensor<f32>) -> tensor<64xf8E4M3FN>, tensor<f32>
  %a0 = fp8.amax ins(%y : tensor<64xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %s0 = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%a0 : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
  %q0, %i0 = fp8.quantize ins(%y : tensor<64xbf16>) scale(%s0 : tensor<f32>)
      outs(%e, %f : tensor<64xf8E4M3FN>, tensor<f32>) -> tensor<64xf8E4M3FN>, tensor<f32>
  %a1 = fp8.amax ins(%y : tensor<64xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %s1 = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E5M2) ins(%a1 : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
  %q1, %i1 = fp8.quantize ins(%y : tensor<64xbf16>) scale(%s1 : tensor<f32>)
      outs(%g, %f : tensor<64xf8E5M2>, tensor<f32>) -> tensor<64xf8E5M2>, tensor<f32>
  %a2 = fp8.amax ins(%y : tensor<64xbf16>) outs(%f : tensor<f32>) -> tensor<f32>
  %s2 = fp8.compute_scale recipe(#fp8.current_scaling<power_2_scale = true>) format(f8E4M3FN) ins(%a2 : tensor<f32>) outs(%f : tensor<f32>) -> tensor<f32>
  %q2, %i2 = fp8.quantize ins(%y : tensor<64xbf16>) scale(%s2 : tensor<f32>)
      outs(%e, %f : tensor<64xf8E4M3FN>, tensor<f32>) -> tensor<64xf8E4M3FN>, tensor<f32>
  fp8.end_forward @casts_backward
  return %qx, %ix, %q0, %q1, %q2
    : tensor<64xf8E4M3FN>, tensor<f32>, tensor<64xf8E4M3FN>, tensor<64xf8E5M2>, tensor<64xf8E4M3FN>
}
func.func @casts_backward() -> (tensor<64xf8E4M3FN>, tensor<f32>, tensor<64xf8E4M3FN>, tensor<64xf8E5M2>, tensor<64xf8E4M3FN>) {
  %p0 = ub.poison : tensor<64xf8E4M3FN>
  %p1 = ub.poison : tensor<f32>
  %p2 = ub.poison : tensor<64xf8E5M2>
  return %p0, %p1, %p0, %p2, %p0
    : tensor<64xf8E4M3FN>, tensor<f32>, tensor<64xf8E4M3FN>, tensor<64xf8E5M2>, tensor<64xf8E4M3FN>
}

// -----

// An amax that backward updates the state with crosses, though its cast is made again.

// CHECK-LABEL: func.func @amax(
// CHECK-SAME:    -> (tensor<64xbf16> {fp8.residual}, tensor<f32> {fp8.residual}, tensor<f32> {fp8.residual})
// CHECK:         %[[Q:.*]]:3 = fp8.quantize record_amax
// CHECK:         return %{{.*}}, %{{.*}}, %[[Q]]#2
// CHECK-LABEL: func.func @amax_backward(
// CHECK-SAME:    %[[X:.*]]: tensor<64xbf16> {fp8.residual}, %[[S:.*]]: tensor<f32> {fp8.residual}, %[[A:.*]]: tensor<f32> {fp8.residual})
// CHECK:         %[[Q:.*]]:2 = fp8.quantize ins(%[[X]] : tensor<64xbf16>) scale(%[[S]] : tensor<f32>)
// CHECK:         return %[[X]], %[[Q]]#0, %[[A]]
func.func @amax(%x: tensor<64xbf16>, %s: tensor<f32>) -> (tensor<64xbf16>, tensor<64xf8E4M3FN>, tensor<f32>) {
  %e = tensor.empty() : tensor<64xf8E4M3FN>
  %f = tensor.empty() : tensor<f32>
  %q, %i, %a = fp8.quantize record_amax ins(%x : tensor<64xbf16>) scale(%s : tensor<f32>)
      outs(%e, %f, %f : tensor<64xf8E4M3FN>, tensor<f32>, tensor<f32>)
      -> tensor<64xf8E4M3FN>, tensor<f32>, tensor<f32>
  fp8.end_forward @amax_backward
  return %x, %q, %a : tensor<64xbf16>, tensor<64xf8E4M3FN>, tensor<f32>
}
func.func @amax_backward() -> (tensor<64xbf16>, tensor<64xf8E4M3FN>, tensor<f32>) {
  %p0 = ub.poison : tensor<64xbf16>
  %p1 = ub.poison : tensor<64xf8E4M3FN>
  %p2 = ub.poison : tensor<f32>
  return %p0, %p1, %p2 : tensor<64xbf16>, tensor<64xf8E4M3FN>, tensor<f32>
}

// -----

// A size crosses as i64; a constant and an empty tensor do not cross. Loops read what
// crosses too.

// CHECK-LABEL: func.func @sizes(
// CHECK-SAME:    -> (i64 {fp8.residual}, tensor<4xf32> {fp8.residual})
// CHECK:         %[[D:.*]] = tensor.dim
// CHECK:         %[[I:.*]] = arith.index_cast %[[D]] : index to i64
// CHECK:         return %[[I]], %
// CHECK-LABEL: func.func @sizes_backward(
// CHECK-SAME:    %[[N:.*]]: i64 {fp8.residual}, %[[Y:.*]]: tensor<4xf32> {fp8.residual}) -> tensor<4xf32>
// CHECK:         %[[M:.*]] = arith.index_cast %[[N]] : i64 to index
// CHECK:         %[[ONE:.*]] = arith.constant 1 : index
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[M]] step %[[ONE]] iter_args(%[[R:.*]] = %[[Y]])
// CHECK:           arith.addf %[[R]], %[[Y]]
func.func @sizes(%x: tensor<?xbf16>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xbf16>
  %z = arith.addf %y, %y : tensor<4xf32>
  fp8.end_forward @sizes_backward
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> tensor<4xf32> {
    %b = arith.addf %a, %z : tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func @sizes_backward() -> tensor<4xf32> {
  %p = ub.poison : tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

func.func @lost() {
  // expected-error@+1 {{'fp8.end_forward' op must name another function, whose body fp8-join-pair took: 'missing' is none; ask for the pair with --pair}}
  fp8.end_forward @missing
  return
}
