// An update of the amax history is one launch; values: test/python/gpu/test_history.py.
// RUN: fp8-opt %s -split-input-file --convert-fp8-to-gpu --canonicalize --cse | FileCheck %s

module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  // Blocks of 32 columns.
  // CHECK-LABEL: func.func @update
  // CHECK-NOT: fp8.update_amax_history
  // CHECK: gpu.launch_func @kernels::@kernel_update_amax_history blocks in (%c2, %c1, %c1) threads in (%c256, %c1, %c1)
  func.func @update(%a: memref<3xf32>, %s: memref<40xf32>, %h: memref<16x40xf32>) {
    fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 16>) columns [0, 2, 39]
        formats [f8E4M3FN, f8E5M2, f8E4M3FN]
        ins(%a : memref<3xf32>) outs(%s, %h : memref<40xf32>, memref<16x40xf32>)
    return
  }
  // The formats and the amaxes of each column are constants.
  // CHECK: gpu.module @kernels
  // CHECK-DAG: memref.global "private" constant @{{.+}} : memref<64xf32, 1> = dense<{{\[}}4.480000e+02, 1.000000e+00, 5.734400e+04,
  // CHECK-DAG: memref.global "private" constant @{{.+}} : memref<3xi32, 1> = dense<[0, 1, 2]>
  // CHECK: func.func @kernel_update_amax_history
  // CHECK: arith.maxnumf
}

// -----

module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  // A user's function may be any code: the update stays generic.
  // CHECK-LABEL: func.func private @choose
  func.func private @choose(%amax: f32, %max: f32, %old: f32) -> f32 {
    return %old : f32
  }
  // CHECK-LABEL: func.func @custom
  // CHECK: fp8.update_amax_history
  func.func @custom(%a: memref<1xf32>, %s: memref<1xf32>, %h: memref<4x1xf32>) {
    fp8.update_amax_history recipe(#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 4>, scale = @choose>)
        columns [0] formats [f8E4M3FN] ins(%a : memref<1xf32>) outs(%s, %h : memref<1xf32>, memref<4x1xf32>)
    return
  }
}
