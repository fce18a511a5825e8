// RUN: fp8-opt %s -split-input-file --convert-fp8-to-linalg | FileCheck %s -enable-var-scope

// Products of operands that are exact in bf16 are dot products of pairs, which the panels hold.

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>, fp8.hardware_sums = "avx512bf16"} {
  // CHECK-LABEL: func.func private @fp8_cpu_gemm_bf16_8x32
  // CHECK:         scf.for
  // CHECK:         %[[A:.+]] = vector.bitcast %{{.+}} : vector<16xf32> to vector<32xbf16>
  // CHECK:         %[[B:.+]] = vector.bitcast %{{.+}} : vector<16xf32> to vector<32xbf16>
  // CHECK:         x86vector.avx512.dot %{{.+}}, %[[A]], %[[B]] : vector<32xbf16> -> vector<16xf32>
  // CHECK-NOT:     vector.fma
  // CHECK-LABEL: func.func @pairs
  // CHECK:         memref<1x1x8x8xf32>
  // CHECK:         call @fp8_cpu_pack_bf16_pairs_rows_32
  // CHECK:         call @fp8_cpu_pack_f8E4M3FN_pairs_k_8
  func.func @pairs(%a: memref<8x16xf8E4M3FN>, %b: memref<16x32xbf16>, %c: memref<8x32xf32>) {
    fp8.matmul ins(%a, %b : memref<8x16xf8E4M3FN>, memref<16x32xbf16>) outs(%c : memref<8x32xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}

// -----

// MX scales multiply both elements of a pair.

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>, fp8.hardware_sums = "avx512bf16"} {
  // CHECK-LABEL: func.func private @fp8_cpu_scale_panels_pairs_8_32
  // CHECK:         %[[LOW:.+]] = arith.shli
  // CHECK:         %[[HIGH:.+]] = arith.andi
  // CHECK-COUNT-2: arith.mulf
  // CHECK-LABEL: func.func @mx
  // CHECK:         call @fp8_cpu_scale_panels_pairs_32_32
  // CHECK:         call @fp8_cpu_gemm_bf16_8x32
  func.func @mx(%a: memref<8x64xf8E4M3FN>, %b: memref<64x32xf8E4M3FN>, %sa: memref<8x2xf8E8M0FNU>, %sb: memref<2x32xf8E8M0FNU>, %c: memref<8x32xf32>) {
    fp8.scaled_matmul fast ins(%a, %b : memref<8x64xf8E4M3FN>, memref<64x32xf8E4M3FN>) scales(%sa, %sb : memref<8x2xf8E8M0FNU>, memref<2x32xf8E8M0FNU>)
        outs(%c : memref<8x32xf32>) {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                                     lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 32, 1>}
    return
  }
}

// -----

// An odd number of elements along K leaves no pairs.

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>, fp8.hardware_sums = "avx512bf16"} {
  // CHECK-LABEL: func.func @odd
  // CHECK:         call @fp8_cpu_gemm_f32_8x32
  func.func @odd(%a: memref<8x15xbf16>, %b: memref<15x32xbf16>, %c: memref<8x32xf32>) {
    fp8.matmul ins(%a, %b : memref<8x15xbf16>, memref<15x32xbf16>) outs(%c : memref<8x32xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}

// -----

// Shorter vectors have no such instruction.

module attributes {fp8.target = #fp8.cpu<vectorBits = 256, vectorRegisters = 16>, fp8.hardware_sums = "avx512bf16"} {
  // CHECK-LABEL: func.func @short
  // CHECK:         call @fp8_cpu_gemm_f32_
  func.func @short(%a: memref<8x16xbf16>, %b: memref<16x32xbf16>, %c: memref<8x32xf32>) {
    fp8.matmul ins(%a, %b : memref<8x16xbf16>, memref<16x32xbf16>) outs(%c : memref<8x32xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}

// -----

// AMX: the rows of the first operand lie along K, which is filled up to a multiple of 32; parts of 128 of a split sum
// begin with zero, in memory of their own.

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>, fp8.hardware_sums = "amx-bf16"} {
  // CHECK-LABEL: func.func private @fp8_cpu_gemm_amx_32x32_split
  // CHECK:         %[[MEMORY:.+]] = memref.alloca() {alignment = 64 : i64} : memref<32x32xf32>
  // CHECK:         amx.tile_zero : !amx.tile<16x16xf32>
  // CHECK:         amx.tile_mulf %{{.+}}, %{{.+}}, %{{.+}} : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  // CHECK-LABEL: func.func private @fp8_cpu_pack_f8E4M3FN_tiles_k_32
  // CHECK:         vector.maskedload
  // CHECK-LABEL: func.func private @fp8_cpu_pack_f8E5M2_filled_pairs_rows_32
  // CHECK-LABEL: func.func @tiles
  // CHECK:         memref<1x2x160x32xf32>
  func.func @tiles(%a: memref<40x300xf8E4M3FN>, %b: memref<300x64xf8E5M2>, %one: memref<f32>, %c: memref<40x64xf32>) {
    fp8.scaled_matmul split ins(%a, %b : memref<40x300xf8E4M3FN>, memref<300x64xf8E5M2>) scales(%one, %one : memref<f32>, memref<f32>)
        outs(%c : memref<40x64xf32>) {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}

// -----

// A tile of few rows would mostly multiply zeros.

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>, fp8.hardware_sums = "amx-bf16"} {
  // CHECK-LABEL: func.func @thin
  // CHECK:         call @fp8_cpu_gemm_bf16_4x32
  func.func @thin(%a: memref<4x64xbf16>, %b: memref<64x32xbf16>, %c: memref<4x32xf32>) {
    fp8.matmul ins(%a, %b : memref<4x64xbf16>, memref<64x32xbf16>) outs(%c : memref<4x32xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}
