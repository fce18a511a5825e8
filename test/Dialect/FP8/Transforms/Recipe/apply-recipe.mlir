// Products become FP8; a stateful recipe threads its state through the functions.
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-apply-recipe{recipe=#fp8.delayed_scaling<amax_history_len=4>})' | FileCheck %s --check-prefixes=CHECK,DELAYED
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-apply-recipe{calibrate recipe=#fp8.delayed_scaling<amax_history_len=4,reduce_amax=false>})' | FileCheck %s --check-prefix=CALIBRATE
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-apply-recipe{recipe=#fp8.current_scaling<format=e4m3>})' | FileCheck %s --check-prefixes=CHECK,CURRENT
// RUN: fp8-opt %s --pass-pipeline='builtin.module(fp8-apply-recipe{recipe=#fp8.mx_scaling})' | FileCheck %s --check-prefix=MX
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-apply-recipe{recipe=delayed})' 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: error: --recipe=delayed is not a recipe attribute

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>

// The state is one column per tensor and format, whoever reads it.
// DELAYED: module attributes {fp8.amax_history_len = 4 : i64, fp8.grid = array<i64: 2, 4>, fp8.reduce_amax_axes = array<i64: 1>, fp8.state_columns = [{format = f8E4M3FN, sites = ["fc"], tensor = "input"}, {format = f8E4M3FN, sites = ["fc"], tensor = "weight"}, {format = f8E5M2, sites = ["fc"], tensor = "grad_output"}]}

// CHECK-LABEL: func.func @step
// CALIBRATE-LABEL: func.func @step
// MX-LABEL: func.func @step
// DELAYED-SAME: %[[SCALE:[^:]+]]: tensor<3xf32> {fp8.state = "scale", tf.aliasing_output = 3 : i32}, %[[HISTORY:[^:]+]]: tensor<4x3xf32> {fp8.state = "amax_history", tf.aliasing_output = 4 : i32})
// DELAYED-SAME: -> (tensor<4x16xbf16>, tensor<4x8xbf16>, tensor<8x16xbf16>, tensor<3xf32> {fp8.state = "scale"}, tensor<4x3xf32> {fp8.state = "amax_history"})
module attributes {fp8.grid = array<i64: 2, 4>, fp8.reduce_amax_axes = array<i64: 1>} {
func.func @step(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %g: tensor<2x2x16xbf16>, %y: tensor<4x16xbf16>, %dx: tensor<4x8xbf16>, %dw: tensor<8x16xbf16>)
    -> (tensor<4x16xbf16>, tensor<4x8xbf16>, tensor<8x16xbf16>) {
  %gv = tensor.collapse_shape %g [[0, 1], [2]] : tensor<2x2x16xbf16> into tensor<4x16xbf16>
  // One cast per tensor, of the tensor before views, so that dgrad and wgrad share the gradient's.
  // DELAYED: %[[GS:.+]] = tensor.extract_slice %[[SCALE]][2] [1] [1]
  // DELAYED: %[[G:.+]]:3 = fp8.quantize record_amax column(2) ins(%{{.+}} : tensor<2x2x16xbf16>) scale(%[[GS]]
  // DELAYED: %[[W:.+]]:3 = fp8.quantize record_amax column(1)
  // DELAYED: %[[X:.+]]:3 = fp8.quantize record_amax column(0)
  // DELAYED-NOT: fp8.quantize
  // DELAYED: fp8.scaled_matmul site("fc") role(fprop) recipe({{.+}}) fast ins(%[[X]]#0, %[[W]]#0 :{{.+}}) scales(%[[X]]#1, %[[W]]#1 :
  // DELAYED: %[[GV:.+]] = tensor.collapse_shape %[[G]]#0
  // DELAYED: fp8.scaled_matmul site("fc") role(dgrad) recipe({{.+}}) split ins(%[[GV]], %[[W]]#0 :{{.+}}) scales(%[[G]]#1, %[[W]]#1 :
  // DELAYED: fp8.scaled_matmul site("fc") role(wgrad) recipe({{.+}}) split accumulate ins(%[[X]]#0, %{{.+}} :
  // Each column is updated, from amaxes that all ranks agree on.
  // DELAYED: %[[R0:.+]] = fp8.all_reduce max on(2x4) axes [1] of("amaxes")
  // DELAYED: %[[U0:.+]]:2 = fp8.update_amax_history {{.+}} columns [0] formats [f8E4M3FN] ins(%[[R0]] :{{.+}}) outs(%[[SCALE]], %[[HISTORY]] :
  // DELAYED: %[[U1:.+]]:2 = fp8.update_amax_history {{.+}} columns [1] formats [f8E4M3FN] {{.+}} outs(%[[U0]]#0, %[[U0]]#1 :
  // DELAYED: %[[U2:.+]]:2 = fp8.update_amax_history {{.+}} columns [2] formats [f8E5M2] {{.+}} outs(%[[U1]]#0, %[[U1]]#1 :
  // DELAYED: return %{{.+}}, %{{.+}}, %{{.+}}, %[[U2]]#0, %[[U2]]#1
  // CALIBRATE-NOT: fp8.all_reduce

  // Without state a scale follows from the tensor itself; nothing is recorded.
  // CURRENT: %[[AMAX:.+]] = fp8.amax ins(%{{.+}} : tensor<2x2x16xbf16>)
  // CURRENT: %[[CS:.+]] = fp8.compute_scale {{.+}} format(f8E4M3FN) input_type(bf16) ins(%[[AMAX]]
  // CURRENT: fp8.quantize ins(%{{.+}} : tensor<2x2x16xbf16>) scale(%[[CS]]
  // CURRENT-NOT: fp8.update_amax_history

  // Blocks lie along K, so each product has casts of its own, of the operand as it is.
  // MX: fp8.quantize_blocks recipe(#fp8.mx_scaling) ins(%{{.+}} : tensor<4x8xbf16>) {{.+}} tensor<4x8xf8E4M3FN>, tensor<4x1xf8E8M0FNU>) {blocks = [array<i64: 1, 32>]}
  // MX: fp8.scaled_matmul site("fc") role(fprop) {{.+}} {indexing_maps = {{.+}}, lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 32, 1>}
  // MX: fp8.scaled_matmul site("fc") role(dgrad) {{.+}} {indexing_maps = {{.+}}, lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 1, 32>}
  %0 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
      outs(%y : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  %1 = fp8.matmul site("fc") role(dgrad) kinds(grad_output, weight) ins(%gv, %w : tensor<4x16xbf16>, tensor<8x16xbf16>)
      outs(%dx : tensor<4x8xbf16>) {indexing_maps = [#mk, #nk, #mn]} -> tensor<4x8xbf16>
  %2 = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) accumulate ins(%x, %gv : tensor<4x8xbf16>, tensor<4x16xbf16>)
      outs(%dw : tensor<8x16xbf16>) {indexing_maps = [#km, #kn, #mn]} -> tensor<8x16xbf16>
  return %0, %1, %2 : tensor<4x16xbf16>, tensor<4x8xbf16>, tensor<8x16xbf16>
}

// A function without gradients reads the state and leaves it, unless it calibrates.
// CHECK-LABEL: func.func @evaluate
// DELAYED-SAME: tensor<3xf32> {fp8.state = "scale"}, %{{[^:]+}}: tensor<4x3xf32> {fp8.state = "amax_history"}) -> tensor<4x16xbf16>
// DELAYED: fp8.quantize column(1)
// DELAYED: fp8.quantize column(0)
// DELAYED-NOT: fp8.update_amax_history
// CALIBRATE-LABEL: func.func @evaluate
// CALIBRATE: fp8.quantize record_amax column(1)
// CALIBRATE: fp8.update_amax_history
func.func @evaluate(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %y: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %0 = fp8.matmul site("fc") role(fprop) kinds(input, weight) ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>)
      outs(%y : tensor<4x16xbf16>) {indexing_maps = [#mk, #kn, #mn]} -> tensor<4x16xbf16>
  return %0 : tensor<4x16xbf16>
}
}
