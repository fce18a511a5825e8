// Casts with a scale per block become launches of kernels of tiles; values: test/python/gpu/test_quantize_blocks.py.
// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-kernels --convert-fp8-to-gpu --canonicalize --cse -verify-diagnostics | FileCheck %s -enable-var-scope

// Both directions in one kernel, which reads the tensor once: 16 loads for each of two groups of rows are one loop over them.
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  // CHECK-LABEL: func.func @both
  // CHECK: gpu.launch_func @kernels::@kernel_quantize_blocks blocks in (%c6, %c1, %c1) threads in (%c256, %c1, %c1)
  // CHECK-NOT: gpu.launch_func
  // CHECK: func.func @kernel_quantize_blocks
  // CHECK-COUNT-4: llvm.load {{.*}} -> vector<8xbf16>
  // CHECK-NOT: llvm.load
  // CHECK: nvvm.shfl.sync bfly
  // CHECK: nvvm.barrier
  // CHECK: arith.divf
  // CHECK: nvvm.barrier
  // CHECK: nvvm.convert.f32x2.to.f8x2
  func.func @both(%x: memref<384x256xbf16>, %d: memref<384x256xf8E4M3FN>, %i: memref<384x2xf32>, %t: memref<256x384xf8E4M3FN>,
                  %j: memref<256x3xf32>) {
    fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : memref<384x256xbf16>)
        outs(%d, %i, %t, %j : memref<384x256xf8E4M3FN>, memref<384x2xf32>, memref<256x384xf8E4M3FN>, memref<256x3xf32>)
        {blocks = [array<i64: 1, 128>, array<i64: 128, 1>], transpositions = [array<i64: 0, 1>, array<i64: 1, 0>]}
    return
  }
}

// -----

// A scale per row alone: a warp for each row of 300 elements, 8 rows per block.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @rows
  // CHECK: gpu.launch_func @kernels::@kernel_quantize_by_rows blocks in (%c25, %c1, %c1)
  // CHECK-NOT: gpu.launch_func
  // CHECK: func.func @kernel_quantize_by_rows
  // CHECK-NOT: nvvm.barrier
  // CHECK: return
  func.func @rows(%x: memref<200x300xbf16>, %d: memref<200x300xf8E4M3FN>, %i: memref<200x1xf32>) {
    fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%x : memref<200x300xbf16>)
        outs(%d, %i : memref<200x300xf8E4M3FN>, memref<200x1xf32>) {blocks = [array<i64: 1, 0>]}
    return
  }
}

// -----

// A scale per column of 200 elements: its amax is computed before, by integer maxima, from zero.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @columns
  // CHECK: %[[AMAXES:.*]] = memref.alloc() : memref<300xf32>
  // CHECK: gpu.launch_func @kernels::@kernel_clear_amax {{.*}} args(%[[AMAXES]]
  // CHECK: gpu.launch_func @kernels::@kernel_amax_blocks {{.*}} %[[AMAXES]] : memref<300xf32>)
  // CHECK: gpu.launch_func @kernels::@kernel_quantize_blocks {{.*}} %[[AMAXES]] : memref<300xf32>
  // CHECK: func.func @kernel_amax_blocks
  // CHECK: llvm.atomicrmw umax
  // CHECK-NOT: nvvm.convert
  // CHECK: func.func @kernel_quantize_blocks
  // CHECK-NOT: llvm.atomicrmw
  func.func @columns(%x: memref<200x300xbf16>, %d: memref<200x300xf8E4M3FN>, %i: memref<1x300xf32>) {
    fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%x : memref<200x300xbf16>)
        outs(%d, %i : memref<200x300xf8E4M3FN>, memref<1x300xf32>) {blocks = [array<i64: 0, 1>]}
    return
  }
}

// -----

// Blocks that are no parts of a tile are left to generic code, which says so.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @others(%x: memref<200x300xbf16>, %d: memref<200x300xf8E4M3FN>, %i: memref<200x3xf32>) {
    // expected-remark @below {{'fp8.quantize_blocks' stays generic code on the GPU: its blocks are no parts of tiles of 128 x 128, or the layout of its data has no strides}}
    fp8.quantize_blocks recipe(#fp8.block_scaling<block = 100>) ins(%x : memref<200x300xbf16>)
        outs(%d, %i : memref<200x300xf8E4M3FN>, memref<200x3xf32>) {blocks = [array<i64: 1, 100>]}
    return
  }
  // CHECK-LABEL: func.func @dynamic
  // CHECK: fp8.quantize_blocks
  func.func @dynamic(%x: memref<300x?xbf16>, %d: memref<300x?xf8E4M3FN>, %i: memref<300x?xf32>) {
    // expected-remark @below {{'fp8.quantize_blocks' stays generic code on the GPU: the size of its last dimension is dynamic}}
    fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : memref<300x?xbf16>)
        outs(%d, %i : memref<300x?xf8E4M3FN>, memref<300x?xf32>) {blocks = [array<i64: 1, 128>]}
    return
  }

  // Any number of rows; where a block has all of them, amaxes are computed before.
  // CHECK-LABEL: func.func @dynamic_rows
  // CHECK: %[[ROWS:.+]] = memref.dim
  // CHECK: %[[BLOCKS:.+]] = arith.ceildivui %[[ROWS]], %c128
  // CHECK: %[[TILES_M:.+]] = arith.maxui %[[BLOCKS]], %c1
  // CHECK: %[[TILES:.+]] = arith.muli %[[TILES_M]], %c3
  // CHECK: gpu.launch_func @kernels::@kernel_quantize_blocks blocks in (%[[TILES]], %c1, %c1)
  // CHECK: gpu.launch_func @kernels::@kernel_amax_blocks blocks in (%[[TILES]], %c1, %c1) {{.+}} : memref<300xf32>, %{{.+}} : i32)
  // CHECK: gpu.launch_func @kernels::@kernel_quantize_blocks_2 blocks in (%[[TILES]], %c1, %c1)
  func.func @dynamic_rows(%x: memref<?x300xbf16>, %d: memref<?x300xf8E4M3FN>, %i: memref<?x3xf32>, %e: memref<?x300xf8E4M3FN>,
      %j: memref<1x300xf32>) {
    fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : memref<?x300xbf16>)
        outs(%d, %i : memref<?x300xf8E4M3FN>, memref<?x3xf32>) {blocks = [array<i64: 1, 128>]}
    fp8.quantize_blocks recipe(#fp8.row_scaling) ins(%x : memref<?x300xbf16>)
        outs(%e, %j : memref<?x300xf8E4M3FN>, memref<1x300xf32>) {blocks = [array<i64: 0, 1>]}
    return
  }
}
