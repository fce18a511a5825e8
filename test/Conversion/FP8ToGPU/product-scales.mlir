// RUN: fp8-opt %s --split-input-file --convert-fp8-to-gpu --canonicalize | FileCheck %s --enable-var-scope

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// A scale for each row: the epilogue loads that of a row once, and multiplies each sum by the product of two.

// CHECK-LABEL: func.func @rows
// CHECK: gpu.launch_func {{.*}}%arg2 : memref<256x1xf32>{{.*}}%arg3 : memref<256x1xf32>
// CHECK-SAME: code = "mma.sync.m16n8k32 e4m3{{.*}}e4m3"
// CHECK: func.func @kernel_product_
// CHECK-NOT: math.fma
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @rows(%a: memref<256x256xf8E4M3FN>, %b: memref<256x256xf8E4M3FN>, %sa: memref<256x1xf32>, %sb: memref<256x1xf32>,
                  %d: memref<256x256xbf16>) {
    fp8.scaled_matmul fast ins(%a, %b : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>)
        scales(%sa, %sb : memref<256x1xf32>, memref<256x1xf32>) outs(%d : memref<256x256xbf16>)
        {indexing_maps = [#lhs, #rhs, #out], lhs_block = array<i64: 1, 0>, rhs_block = array<i64: 1, 0>}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// A scale for each 128 along K: copied with the operands of a step, 4 bytes for each row.

// CHECK-LABEL: func.func @blocks_mma
// CHECK: code = "mma.sync.m16n8k32 e4m3{{.*}}e4m3, scaled sums of blocks of 128"
// CHECK: func.func @kernel_product_
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = ca
// CHECK-COUNT-64: math.fma
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @blocks_mma(%a: memref<256x256xf8E4M3FN>, %b: memref<256x256xf8E4M3FN>, %sa: memref<256x2xf32>, %sb: memref<2x2xf32>,
                        %d: memref<256x256xbf16>) {
    fp8.scaled_matmul split ins(%a, %b : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>)
        scales(%sa, %sb : memref<256x2xf32>, memref<2x2xf32>) outs(%d : memref<256x256xbf16>)
        {indexing_maps = [#lhs, #rhs, #out], lhs_block = array<i64: 1, 128>, rhs_block = array<i64: 128, 128>}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// Two warps load scales into the stages that TMA fills with operands.

// CHECK-LABEL: func.func @blocks_wgmma
// CHECK: code = "wgmma.mma_async.m64n{{[0-9]+}}k32 e4m3{{.*}}e4m3, scaled sums of blocks of 128"
// CHECK: func.func @kernel_product_
// CHECK: nvvm.wgmma.mma_async {{.*}} D[<f32>, <zero>]
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: math.fma
// CHECK-COUNT-2: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @blocks_wgmma(%a: memref<256x256xf8E4M3FN>, %b: memref<256x256xf8E4M3FN>, %sa: memref<256x2xf32>, %sb: memref<2x2xf32>,
                          %d: memref<256x256xbf16>) {
    fp8.scaled_matmul split ins(%a, %b : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>)
        scales(%sa, %sb : memref<256x2xf32>, memref<2x2xf32>) outs(%d : memref<256x256xbf16>)
        {indexing_maps = [#lhs, #rhs, #out], lhs_block = array<i64: 1, 128>, rhs_block = array<i64: 128, 128>}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// The sums of 128 are read from tensor memory one after another.

// CHECK-LABEL: func.func @blocks_tcgen05
// CHECK: code = "tcgen05.mma m128n{{[0-9]+}}k32 e4m3{{.*}}e4m3, scaled sums of blocks of 128"
// CHECK: func.func @kernel_product_
// CHECK-COUNT-2: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
// CHECK: nvvm.tcgen05.mma %
// CHECK: nvvm.tcgen05.ld
// CHECK: math.fma
module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  func.func @blocks_tcgen05(%a: memref<256x256xf8E4M3FN>, %b: memref<256x256xf8E4M3FN>, %sa: memref<256x2xf32>, %sb: memref<2x2xf32>,
                            %d: memref<256x256xbf16>) {
    fp8.scaled_matmul split ins(%a, %b : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>)
        scales(%sa, %sb : memref<256x2xf32>, memref<2x2xf32>) outs(%d : memref<256x256xbf16>)
        {indexing_maps = [#lhs, #rhs, #out], lhs_block = array<i64: 1, 128>, rhs_block = array<i64: 128, 128>}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// Packed scales come with the operands, go to tensor memory, and belong to the instruction.

// CHECK-LABEL: func.func @packed_tcgen05
// CHECK: code = "tcgen05.mma m128n{{[0-9]+}}k32 block_scale e4m3{{.*}}e4m3, scales of 32 elements"
// CHECK: func.func @kernel_product_
// CHECK-COUNT-2: nvvm.cp.async.bulk.shared.cluster.global
// CHECK-COUNT-2: nvvm.tcgen05.cp %{{.*}}, %{{.*}} {multicast = #nvvm.tcgen05_cp_multicast<warpx4>, shape = #nvvm.tcgen05_cp_shape<shape_32x128b>}
// CHECK-COUNT-4: nvvm.tcgen05.mma.block_scale
module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  func.func @packed_tcgen05(%a: memref<256x256xf8E4M3FN>, %b: memref<256x256xf8E4M3FN>, %sa: memref<2048xf8E8M0FNU>,
                            %sb: memref<2048xf8E8M0FNU>, %d: memref<256x256xbf16>) {
    fp8.scaled_matmul fast ins(%a, %b : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>)
        scales(%sa, %sb : memref<2048xf8E8M0FNU>, memref<2048xf8E8M0FNU>) outs(%d : memref<256x256xbf16>)
        {indexing_maps = [#lhs, #rhs, #out], lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 1, 32>}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// Each instruction takes one of the four scales of a word.

// CHECK-LABEL: func.func @packed_mma
// CHECK: code = "mma.sync.m16n8k32 block_scale e4m3{{.*}}e4m3, scales of 32 elements"
// CHECK: func.func @kernel_product_
// CHECK: %[[THIRD:.*]] = arith.constant 2 : i16
// CHECK: nvvm.mma.block_scale {{.*}}scaleA[%{{[^,]*}}, %[[THIRD]], %
module attributes {fp8.target = #fp8.chip<"sm_120a">} {
  func.func @packed_mma(%a: memref<256x256xf8E4M3FN>, %b: memref<256x256xf8E4M3FN>, %sa: memref<2048xf8E8M0FNU>,
                        %sb: memref<2048xf8E8M0FNU>, %d: memref<256x256xbf16>) {
    fp8.scaled_matmul fast ins(%a, %b : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>)
        scales(%sa, %sb : memref<2048xf8E8M0FNU>, memref<2048xf8E8M0FNU>) outs(%d : memref<256x256xbf16>)
        {indexing_maps = [#lhs, #rhs, #out], lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 1, 32>}
    return
  }
}
