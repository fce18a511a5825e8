// Products become launches of kernels; their values are checked in test/python/gpu.
// RUN: fp8-opt %s -split-input-file --convert-fp8-to-gpu --canonicalize --cse | FileCheck %s

// Equal products of different sizes share one kernel.

// CHECK: module attributes {{.*}}gpu.container_module
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @shared
  // CHECK: gpu.launch_func @kernels::@[[$PRODUCT:kernel_product_fprop_fc1]] blocks in (%c2, %c1, %c1) threads in (%c256, %c1, %c1)
  // Read: 100 * 80 and 136 * 80 bytes, and the scale, once; written: 100 * 136 of bf16.
  // One tile of 128 x 128, of two stages of 64 bytes. Clocks: of tensor cores, the L2 cache, sums of parts, the epilogue, and the
  // multiply-adds on all multiprocessors.
  // CHECK-SAME: fp8.kernel_cost = {clocks = array<i64: 2495, 0, 0, 5849, 7>, read = 18884 : i64, written = 27200 : i64}, fp8.kernel_site = "fc1"
  // CHECK-SAME: fp8.matmuls = [{code = "mma.sync.m16n8k32 e4m3
  // CHECK: gpu.launch_func @kernels::@[[$PRODUCT]] blocks in (%c4, %c1, %c1)
  func.func @shared(%a: memref<100x80xf8E4M3FN>, %b: memref<136x80xf8E5M2>, %c: memref<256x80xf8E5M2>, %s: memref<f32>,
                    %d: memref<100x136xbf16>, %e: memref<130x256xbf16>, %f: memref<130x80xf8E4M3FN>) {
    fp8.scaled_matmul site("fc1") role(fprop) fast ins(%a, %b : memref<100x80xf8E4M3FN>, memref<136x80xf8E5M2>)
        scales(%s, %s : memref<f32>, memref<f32>) outs(%d : memref<100x136xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    fp8.scaled_matmul site("fc2") role(fprop) fast ins(%f, %c : memref<130x80xf8E4M3FN>, memref<256x80xf8E5M2>)
        scales(%s, %s : memref<f32>, memref<f32>) outs(%e : memref<130x256xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    return
  }
  // CHECK: gpu.module @kernels
  // CHECK: func.func @[[$PRODUCT]](
  // CHECK-SAME: attributes {fp8.blocks = 2 : i32, fp8.instruction = "mma.sync.m16n8k32 e4m3{{.*}}e5m2", fp8.kernel_kind = "products",
  // CHECK-SAME: fp8.shared_bytes = 49152 : i32, fp8.threads = 256 : i32, gpu.kernel, llvm.bareptr}
  // CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"
  // CHECK-NOT: func.func
}

// -----

module attributes {fp8.target = #fp8.chip<"sm_120a">} {
  // CHECK-LABEL: func.func @block_scale
  // CHECK: gpu.launch_func
  // CHECK: nvvm.mma.block_scale
  func.func @block_scale(%a: memref<16x32xf8E4M3FN>, %s: memref<f32>, %d: memref<16x16xf32>) {
    fp8.scaled_matmul fast ins(%a, %a : memref<16x32xf8E4M3FN>, memref<16x32xf8E4M3FN>)
        scales(%s, %s : memref<f32>, memref<f32>) outs(%d : memref<16x16xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}

// -----

module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @bf16
  // CHECK: nvvm.mma.sync
  // CHECK-SAME: m = 16, n = 8, k = 16
  func.func @bf16(%a: memref<16x32xbf16>, %d: memref<16x16xf32>) {
    fp8.matmul ins(%a, %a : memref<16x32xbf16>, memref<16x32xbf16>) outs(%d : memref<16x16xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}

// -----

// An operand that kernels cannot read as it lies is copied into rows of a multiple of 16 bytes: FP8 by a kernel that transposes
// bytes, other types by generic code.

module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @pack
  // CHECK: %[[BUFFER:.*]] = memref.alloc() : memref<1040xf8E4M3FN>
  // CHECK: %[[VIEW:.*]] = memref.reinterpret_cast %[[BUFFER]] to offset: [0], sizes: [13, 77], strides: [80, 1]
  // CHECK: gpu.launch_func @kernels::@kernel_transpose{{.*}}%[[VIEW]]
  // CHECK: gpu.launch_func @kernels::@kernel_product{{.*}} args(%{{.*}}, %[[BUFFER]] : memref<1040xf8E4M3FN>
  // CHECK-SAME: e4m3; right operand copied first: the contracted dimension is not contiguous"
  func.func @pack(%a: memref<16x96xf8E4M3FN>, %b: memref<77x13xf8E4M3FN>, %s: memref<f32>, %d: memref<16x13xf32>) {
    %k = memref.subview %a[0, 0] [16, 77] [1, 1] : memref<16x96xf8E4M3FN> to memref<16x77xf8E4M3FN, strided<[96, 1]>>
    fp8.scaled_matmul fast ins(%k, %b : memref<16x77xf8E4M3FN, strided<[96, 1]>>, memref<77x13xf8E4M3FN>)
        scales(%s, %s : memref<f32>, memref<f32>) outs(%d : memref<16x13xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
    return
  }
  // CHECK-LABEL: func.func @pack_generic
  // CHECK: linalg.generic
  // CHECK-SAME: outs(%{{.*}} : memref<13x77xbf16, strided<[80, 1]>>)
  // CHECK-SAME: fp8.computes = "pack"
  func.func @pack_generic(%a: memref<16x80xbf16>, %b: memref<80x13xbf16>, %d: memref<16x13xf32>) {
    %k = memref.subview %a[0, 0] [16, 77] [1, 1] : memref<16x80xbf16> to memref<16x77xbf16, strided<[80, 1]>>
    %l = memref.subview %b[0, 0] [77, 13] [1, 1] : memref<80x13xbf16> to memref<77x13xbf16, strided<[13, 1]>>
    fp8.matmul ins(%k, %l : memref<16x77xbf16, strided<[80, 1]>>, memref<77x13xbf16, strided<[13, 1]>>) outs(%d : memref<16x13xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}

// -----

// A 16-bit operand may be [K, N] in memory.

module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @transposed
  // CHECK-NOT: memref.alloc
  // CHECK: gpu.launch_func
  // CHECK-NOT: gpu.launch_func
  // CHECK: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>
  func.func @transposed(%a: memref<16x32xbf16>, %b: memref<32x24xbf16>, %d: memref<16x24xf32>) {
    fp8.matmul ins(%a, %b : memref<16x32xbf16>, memref<32x24xbf16>) outs(%d : memref<16x24xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}
