// RUN: fp8-opt %s --split-input-file --fp8-split-matmuls | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --split-input-file --pass-pipeline='builtin.module(fp8-gpu-kernels-pipeline)' | FileCheck %s --check-prefix=KERNELS

// The sum of all parts is multiplied by the scales, one for each row, and added to C once. 16 blocks compute
// 16 parts.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[X:.*]]: memref<128x16384xf8E4M3FN>, %[[W:.*]]: memref<16384x64xf8E4M3FN>, %[[SX:.*]]: memref<128x1xf32>, %[[SW:.*]]: memref<1x64xf32>, %[[C:.*]]: memref<128x64xf32>
// CHECK: %[[SUMS:.*]] = memref.alloc() : memref<16x128x64xf32>
// CHECK: %[[XS:.*]] = memref.expand_shape %[[X]] {{\[\[}}0], [1, 2]] {{.*}} into memref<128x16x1024xf8E4M3FN>
// CHECK: %[[WS:.*]] = memref.expand_shape %[[W]] {{\[\[}}0, 1], [2]] {{.*}} into memref<16x1024x64xf8E4M3FN>
// CHECK: %[[ONE:.*]] = memref.get_global @unit_scale : memref<f32>
// CHECK: fp8.scaled_matmul site("fc1") role(wgrad) split ins(%[[XS]], %[[WS]] : {{.*}}) scales(%[[ONE]], %[[ONE]] : {{.*}}) outs(%[[SUMS]] : memref<16x128x64xf32>) {fp8.operand_notes = ["K in 16 parts"], indexing_maps = {{[^}]*}}}
// CHECK-NEXT: %[[FIRST:.*]] = memref.subview %[[SUMS]][0, 0, 0] [1, 128, 64] [1, 1, 1]
// CHECK-NEXT: %[[OTHERS:.*]] = memref.subview %[[SUMS]][1, 0, 0] [15, 128, 64] [1, 1, 1]
// CHECK-NEXT: linalg.reduce { arith.addf } ins(%[[OTHERS]] : {{.*}}) outs(%[[FIRST]] : {{.*}}) dimensions = [0]
// CHECK: linalg.generic {{.*}} ins(%[[FIRST]], %[[SX]], %[[SW]] : {{.*}}) outs(%[[C]] : memref<128x64xf32>)
// CHECK-COUNT-2: arith.mulf
// CHECK-NOT: arith.mulf
// KERNELS: gpu.launch_func @kernels::@kernel_product_wgrad_fc1 blocks {{.*}}code = "wgmma{{.*}}; K in 16 parts
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @rows(%x: memref<128x16384xf8E4M3FN>, %w: memref<16384x64xf8E4M3FN>, %sx: memref<128x1xf32>, %sw: memref<1x64xf32>,
                  %c: memref<128x64xf32>) {
    fp8.scaled_matmul site("fc1") role(wgrad) split accumulate ins(%x, %w : memref<128x16384xf8E4M3FN>, memref<16384x64xf8E4M3FN>)
        scales(%sx, %sw : memref<128x1xf32>, memref<1x64xf32>) outs(%c : memref<128x64xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
         lhs_block = array<i64: 1, 0>, rhs_block = array<i64: 0, 1>}
    return
  }
}

// -----

// Whole: a configuration of the user's, an amax, scales along K, no equal parts of 128, and an operand without strides.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: memref.expand_shape
// CHECK: return
#blocks = affine_map<(d0, d1) -> (d1 floordiv 128, d0, d1 mod 128)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @whole(%l: memref<128x16384xbf16, #blocks>, %x: memref<128x16384xbf16>, %w: memref<64x16384xbf16>, %u: memref<128x4100xbf16>, %v: memref<64x4100xbf16>,
                   %q: memref<128x16384xf8E4M3FN>, %p: memref<64x16384xf8E4M3FN>, %sq: memref<128x128xf32>, %sp: memref<64x128xf32>,
                   %y: memref<128x64xbf16>, %a: memref<f32>) {
    fp8.matmul ins(%x, %w : memref<128x16384xbf16>, memref<64x16384xbf16>) outs(%y : memref<128x64xbf16>)
        {fp8.config = #fp8.product_config<tile_n = 64>,
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    fp8.matmul ins(%l, %w : memref<128x16384xbf16, #blocks>, memref<64x16384xbf16>) outs(%y : memref<128x64xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    fp8.matmul record_amax[0] ins(%x, %w : memref<128x16384xbf16>, memref<64x16384xbf16>) outs(%y, %a : memref<128x64xbf16>, memref<f32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    fp8.matmul ins(%u, %v : memref<128x4100xbf16>, memref<64x4100xbf16>) outs(%y : memref<128x64xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    fp8.scaled_matmul fast ins(%q, %p : memref<128x16384xf8E4M3FN>, memref<64x16384xf8E4M3FN>)
        scales(%sq, %sp : memref<128x128xf32>, memref<64x128xf32>) outs(%y : memref<128x64xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
         lhs_block = array<i64: 1, 128>, rhs_block = array<i64: 1, 128>}
    return
  }
}
