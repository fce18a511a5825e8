// Casts of independent tensors of one shape, such as the weights of layers, are one launch.
// RUN: fp8-opt %s --convert-fp8-to-gpu --fp8-batch-launches --canonicalize --cse | FileCheck %s

module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  // CHECK-LABEL: func.func @weights
  // CHECK: gpu.launch_func @kernels::@{{.*}} blocks in (%c4, %c2, %c1) threads in (%c256, %c1, %c1)
  // CHECK-NOT: gpu.launch_func
  // CHECK: return
  func.func @weights(%x: memref<256x256xf32>, %y: memref<256x256xf32>, %d: memref<256x256xf8E4M3FN>, %i: memref<2x2xf32>,
                     %t: memref<256x256xf8E4M3FN>, %j: memref<2x2xf32>) {
    fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : memref<256x256xf32>)
        outs(%d, %i : memref<256x256xf8E4M3FN>, memref<2x2xf32>) {blocks = [array<i64: 128, 128>]}
    fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%y : memref<256x256xf32>)
        outs(%t, %j : memref<256x256xf8E4M3FN>, memref<2x2xf32>) {blocks = [array<i64: 128, 128>]}
    return
  }
}
