// RUN: fp8-opt %s --split-input-file --convert-fp8-to-gpu --canonicalize --verify-diagnostics | FileCheck %s --enable-var-scope

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// The operands are tensor maps of [batch, rows, K]; a block per tile of 128 x 128, at most one per multiprocessor.

// CHECK-LABEL: func.func @split
// CHECK-SAME: %[[A:[^:]+]]: memref<4096x256xf8E5M2>, %[[B:[^:]+]]: memref<4096x256xf8E4M3FN>
// CHECK-DAG: %[[BLOCKS:.*]] = arith.constant 132 : index
// CHECK-DAG: %[[LHS:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [1, 4096, 256], strides: [16, 256, 1]
// CHECK-DAG: %[[RHS:.*]] = memref.reinterpret_cast %[[B]] to offset: [0], sizes: [1, 4096, 256], strides: [16, 256, 1]
// CHECK: gpu.launch_func @kernels::@kernel_product_dgrad_fc1 blocks in (%[[BLOCKS]], %{{.*}}, %{{.*}}) {{.*}} args(%[[LHS]] : {{.*}}, %[[RHS]] :
// CHECK-SAME: fp8.kernel_site = "fc1", fp8.matmuls = [{code = "wgmma.mma_async.m64n128k32 e5m2{{.*}}e4m3, split sums"

// CHECK: func.func @kernel_product_dgrad_fc1
// CHECK-SAME: !llvm.ptr {fp8.tensor_map = {box = array<i64: 128, 128, 1>, swizzle = 128 : i32}},
// CHECK-SAME: !llvm.ptr {fp8.tensor_map = {box = array<i64: 128, 128, 1>, swizzle = 128 : i32}},
// CHECK-SAME: fp8.instruction = "wgmma.mma_async.m64n128k32 e5m2{{.*}}e4m3", {{.*}}fp8.shared_bytes = 229488 : i32, fp8.threads = 384 : i32

// One thread loads, two groups of four warps multiply. Each part of 128 begins at zero, is waited for, and is added
// to the sum in registers.
// CHECK: nvvm.setmaxregister increase 232
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: nvvm.wgmma.mma_async {{.*}}, <m = 64, n = 128, k = 32>, D[<f32>, <zero>], A[<e5m2>, <one>, <row>], B[<e4m3>, <one>, <col>]
// CHECK-COUNT-3: D[<f32>, <one>], A[<e5m2>
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: llvm.inline_asm has_side_effects
// CHECK: nvvm.mbarrier.arrive
// CHECK-COUNT-64: arith.addf
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @split(%a: memref<4096x256xf8E5M2>, %b: memref<4096x256xf8E4M3FN>, %sa: memref<f32>, %sb: memref<f32>, %d: memref<4096x4096xbf16>) {
    fp8.scaled_matmul site("fc1") role(dgrad) split ins(%a, %b : memref<4096x256xf8E5M2>, memref<4096x256xf8E4M3FN>)
        scales(%sa, %sb : memref<f32>, memref<f32>) outs(%d : memref<4096x4096xbf16>) {indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}

// -----

#lhs = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs = affine_map<(b, m, n, k) -> (b, k, n)>
#out = affine_map<(b, m, n, k) -> (b, m, n)>

// 16-bit operands may be [K, N]: two boxes of 64 columns fill a tile. Sizes may be dynamic.

// CHECK-LABEL: func.func @transposed
// CHECK: arith.minui %{{.*}}, %c132
// CHECK-NOT: memref.alloc
// CHECK: func.func @kernel_product_
// CHECK-SAME: !llvm.ptr {fp8.tensor_map = {box = array<i64: 64, 128, 1>, swizzle = 128 : i32}},
// CHECK-SAME: !llvm.ptr {fp8.tensor_map = {box = array<i64: 64, 64, 1>, swizzle = 128 : i32}},
// CHECK: <m = 64, n = 128, k = 16>, D[<f32>, <one>], A[<bf16>, <one>, <row>], B[<bf16>, <one>, <row>]
// CHECK-COUNT-3: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}]
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @transposed(%a: memref<?x200x64xbf16>, %b: memref<?x64x128xbf16>, %d: memref<?x200x128xf32>) {
    fp8.matmul ins(%a, %b : memref<?x200x64xbf16>, memref<?x64x128xbf16>) outs(%d : memref<?x200x128xf32>)
        {fp8.config = #fp8.product_config<tile_n = 128>, indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @tile(%a: memref<64x256xf8E5M2>, %b: memref<64x256xf8E4M3FN>, %sa: memref<f32>, %sb: memref<f32>, %d: memref<64x64xbf16>) {
    // expected-error @+1 {{has tile_n = 256, which must be a power of two from 16 to 128, in fp8.config}}
    fp8.scaled_matmul split ins(%a, %b : memref<64x256xf8E5M2>, memref<64x256xf8E4M3FN>)
        scales(%sa, %sb : memref<f32>, memref<f32>) outs(%d : memref<64x64xbf16>)
        {fp8.config = #fp8.product_config<tile_n = 256>, indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @family(%a: memref<64x256xbf16>, %b: memref<64x256xbf16>, %d: memref<64x64xbf16>) {
    // expected-error @+1 {{has swapped = true, which kernels of mma and grouped matmuls do not know, in fp8.config}}
    fp8.matmul ins(%a, %b : memref<64x256xbf16>, memref<64x256xbf16>) outs(%d : memref<64x64xbf16>)
        {fp8.config = #fp8.product_config<swapped = true>, indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}
