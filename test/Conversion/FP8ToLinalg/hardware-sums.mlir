// RUN: fp8-opt %s -split-input-file --convert-fp8-to-linalg | FileCheck %s -enable-var-scope

// Products of operands that are exact in bf16 are dot products of pairs, which the panels hold.

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>, fp8.hardware_sums} {
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

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>, fp8.hardware_sums} {
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

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>, fp8.hardware_sums} {
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

module attributes {fp8.target = #fp8.cpu<vectorBits = 256, vectorRegisters = 16>, fp8.hardware_sums} {
  // CHECK-LABEL: func.func @short
  // CHECK:         call @fp8_cpu_gemm_f32_
  func.func @short(%a: memref<8x16xbf16>, %b: memref<16x32xbf16>, %c: memref<8x32xf32>) {
    fp8.matmul ins(%a, %b : memref<8x16xbf16>, memref<16x32xbf16>) outs(%c : memref<8x32xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}
