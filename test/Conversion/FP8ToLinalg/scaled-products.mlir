// Scales per row are operands of the epilogue, scales of blocks operands of the micro-kernel, scales of MX elements of
// the packing. Values: python/test_scaled_products.py.
// RUN: fp8-opt %s --convert-fp8-to-linalg --mlir-print-local-scope | FileCheck %s -enable-var-scope

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A panel is multiplied by its scales, one for 32 indices of K.
// CHECK-LABEL: func.func private @fp8_cpu_scale_panels_16_32(
// CHECK:         scf.for %[[PANEL:.+]] =
// CHECK:         %[[BLOCK:.+]] = arith.divui %[[BEGIN:.+]], %{{.+}} : index
// CHECK:         %[[SCALES:.+]] = vector.load %{{.+}}[%[[PANEL]], %[[BLOCK]], %{{.+}}]
// CHECK:         scf.for %[[K:.+]] = %[[BEGIN]] to
// CHECK:         %[[ELEMENTS:.+]] = vector.load %{{.+}}[%[[PANEL]], %[[K]], %{{.+}}]
// CHECK:         arith.mulf %[[ELEMENTS]], %[[SCALES]]

// A tile runs through several blocks of 128 in turn. The sum of a block is multiplied by one scale, then by the other,
// and added.
// CHECK-LABEL: func.func private @fp8_cpu_gemm_f32_4x16_blocks_128_columns_first(
// CHECK-COUNT-3: scf.for
// CHECK:         %[[LENGTH:.+]] = arith.constant 128 : index
// CHECK-NEXT:    scf.for %[[BEGIN:.+]] = %{{.+}} to %{{.+}} step %[[LENGTH]]
// CHECK:         %[[WHOLE:.+]] = arith.addi %[[BEGIN]]
// CHECK:         arith.minsi %[[WHOLE]]
// CHECK-COUNT-2: scf.for
// CHECK:         scf.if
// CHECK:         %[[ROW:.+]] = vector.broadcast %{{.+}} : f32 to vector<16xf32>
// CHECK:         %[[COLUMNS:.+]] = vector.load %{{.+}} : memref<?x?x16xf32, {{.+}}>, vector<16xf32>
// CHECK:         %[[SCALED:.+]] = arith.mulf %{{.+}}, %[[COLUMNS]] : vector<16xf32>
// CHECK-NEXT:    vector.fma %[[SCALED]], %[[ROW]], %{{.+}} : vector<16xf32>

// The two scales are multiplied before the sum is.
// CHECK-LABEL: func.func @rows
// CHECK:         call @fp8_cpu_gemm_f32_4x16(
// CHECK:         linalg.generic
// CHECK-SAME:      affine_map<(d0, d1) -> (d0, 0)>
// CHECK-SAME:      affine_map<(d0, d1) -> (0, d1)>
// CHECK:         ^bb0(%[[SUM:[^:]+]]: f32, %[[A:[^:]+]]: f32, %[[B:[^:]+]]: f32, %{{.+}}: f32):
// CHECK:           %[[SCALE:.+]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK:           arith.mulf %[[SCALE]], %[[SUM]] : f32
func.func @rows(%a: memref<8x64xf8E4M3FN>, %b: memref<64x32xf8E4M3FN>, %sa: memref<8x1xf32>, %sb: memref<1x32xf32>, %c: memref<8x32xf32>) {
  fp8.scaled_matmul fast ins(%a, %b : memref<8x64xf8E4M3FN>, memref<64x32xf8E4M3FN>) scales(%sa, %sb : memref<8x1xf32>, memref<1x32xf32>)
      outs(%c : memref<8x32xf32>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 0>, rhs_block = array<i64: 0, 1>}
  return
}

// A weight's blocks of 128 x 128 are spread over its rows; the other operand's scales are packed as they are.
// CHECK-LABEL: func.func @blocks
// CHECK-SAME:    %{{.+}}: memref<8x200xf8E4M3FN>, %{{.+}}: memref<200x32xf8E4M3FN>, %[[SA:.+]]: memref<1x2xf32>
// CHECK:         %[[SPREAD:.+]] = memref.alloc() {{.+}} : memref<8x2xf32>
// CHECK-NEXT:    linalg.generic {{.+}} outs(%[[SPREAD]]
// CHECK:           memref.load %[[SA]]
// CHECK:         call @fp8_cpu_gemm_f32_4x16_blocks_128_columns_first(
// CHECK-SAME:      code = "packed f32 products of decoded FP8, scaled sums of blocks of 128 (CPU)"
func.func @blocks(%a: memref<8x200xf8E4M3FN>, %b: memref<200x32xf8E4M3FN>, %sa: memref<1x2xf32>, %sb: memref<2x32xf32>, %c: memref<8x32xf32>) {
  fp8.scaled_matmul split ins(%a, %b : memref<8x200xf8E4M3FN>, memref<200x32xf8E4M3FN>) scales(%sa, %sb : memref<1x2xf32>, memref<2x32xf32>)
      outs(%c : memref<8x32xf32>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 128, 128>, rhs_block = array<i64: 128, 1>}
  return
}

// CHECK-LABEL: func.func @mx
// CHECK:         call @fp8_cpu_pack_f8E4M3FN_rows_16(
// CHECK:         call @fp8_cpu_pack_f8E8M0FNU_rows_16(
// CHECK:         call @fp8_cpu_scale_panels_16_32(
// CHECK:         call @fp8_cpu_scale_panels_4_32(
// CHECK:         call @fp8_cpu_gemm_f32_4x16(
// CHECK-SAME:      code = "packed f32 products of decoded FP8, scales of 32 elements (CPU)"
func.func @mx(%a: memref<8x64xf8E4M3FN>, %b: memref<64x32xf8E4M3FN>, %sa: memref<8x2xf8E8M0FNU>, %sb: memref<2x32xf8E8M0FNU>, %c: memref<8x32xf32>) {
  fp8.scaled_matmul fast ins(%a, %b : memref<8x64xf8E4M3FN>, memref<64x32xf8E4M3FN>) scales(%sa, %sb : memref<8x2xf8E8M0FNU>, memref<2x32xf8E8M0FNU>)
      outs(%c : memref<8x32xf32>) {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 32, 1>}
  return
}
