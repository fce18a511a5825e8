// Current scaling in three launches; values: test/python/gpu/test_casts.py.
// RUN: fp8-opt %s --convert-fp8-to-gpu --canonicalize --cse | FileCheck %s

module attributes {fp8.target = #fp8.chip<"sm_120a">} {
  // CHECK-LABEL: func.func @current
  // CHECK-NOT: fp8.amax
  // CHECK: gpu.launch_func @kernels::@kernel_clear_amax
  // CHECK: gpu.launch_func @kernels::@kernel_amax
  // CHECK: gpu.launch_func @kernels::@kernel_compute_scale blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
  // CHECK: gpu.launch_func @kernels::@kernel_quantize
  func.func @current(%x: memref<96x256xbf16>, %d: memref<96x256xf8E4M3FN>, %i: memref<f32>) {
    %a = memref.alloc() : memref<f32>
    %s = memref.alloc() : memref<f32>
    fp8.amax ins(%x : memref<96x256xbf16>) outs(%a : memref<f32>)
    fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%a : memref<f32>) outs(%s : memref<f32>)
    fp8.quantize ins(%x : memref<96x256xbf16>) scale(%s : memref<f32>) outs(%d, %i : memref<96x256xf8E4M3FN>, memref<f32>)
    return
  }

  // The kernel that measures stores nothing but the amax.
  // CHECK-LABEL: func.func @kernel_amax
  // CHECK-NOT: llvm.store
  // CHECK: nvvm.redux.sync umax
  // CHECK: llvm.atomicrmw umax
  // CHECK: return

  // The formula is the recipe's.
  // CHECK-LABEL: func.func @kernel_compute_scale
  // CHECK: arith.divf %cst{{.*}}, %{{.+}} : f32
  // CHECK: llvm.store
}
