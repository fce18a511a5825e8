// How sums are taken on request: fp8-compile --order=program --strict-accumulation.
// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-kernels --convert-fp8-to-gpu --canonicalize --cse -verify-diagnostics | FileCheck %s

module attributes {fp8.target = #fp8.chip<"sm_89">, fp8.program_order} {
  // A cast with sums over its rows stays generic code.
  // CHECK-LABEL: func.func @cast
  // CHECK: fp8.quantize
  func.func @cast(%x: memref<256x64xf32>, %s: memref<f32>, %i: memref<f32>, %d: memref<256x64xf8E5M2>, %b: memref<64xf32>) {
    // expected-remark @below {{'fp8.quantize' stays generic code on the GPU: its sums are in the order of the program}}
    fp8.quantize ins(%x : memref<256x64xf32>) scale(%s : memref<f32>)
        outs(%d, %i, %b : memref<256x64xf8E5M2>, memref<f32>, memref<64xf32>)
        {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>]} producer {
      ^bb0(%v: f32):
        fp8.yield %v, %v : f32, f32
    }
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
// tcgen05 sums as exactly without parts; the instructions of sm_89 can add parts.
module attributes {fp8.target = #fp8.chip<"sm_100a">, fp8.strict_accumulation} {
  // CHECK-LABEL: func.func @products
  // CHECK: gpu.launch_func @kernels::@{{.*}}code = "mma.sync{{[^"]*}}, split sums"{{.*}} role = "dgrad"
  // CHECK: gpu.launch_func @kernels::@{{.*}}code = "tcgen05.mma{{.*}} role = "fprop"
  func.func @products(%a: memref<256x256xf8E4M3FN>, %b: memref<256x256xf8E4M3FN>, %s: memref<f32>, %x: memref<256x256xf32>, %y: memref<256x256xf32>) {
    fp8.scaled_matmul site("fc1") role(dgrad) split ins(%a, %b : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>)
        scales(%s, %s : memref<f32>, memref<f32>) outs(%x : memref<256x256xf32>) {indexing_maps = [#lhs, #rhs, #out]}
    fp8.scaled_matmul site("fc1") role(fprop) fast ins(%a, %b : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>)
        scales(%s, %s : memref<f32>, memref<f32>) outs(%y : memref<256x256xf32>) {indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}
