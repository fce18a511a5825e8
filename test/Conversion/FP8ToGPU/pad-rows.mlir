// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-pad-rows))' | FileCheck %s

// A row of all of K, in two dimensions, that a loop over rows writes through views.

// CHECK-LABEL: func.func @two_dimensions
// CHECK: %[[ALLOC:.*]] = memref.alloc() {alignment = 64 : i64} : memref<96x256xf8E4M3FN>
// CHECK: %[[ROWS:.*]] = memref.subview %[[ALLOC]][0, 0] [96, 245] [1, 1]
// CHECK: %[[BUFFER:.*]] = memref.expand_shape %[[ROWS]] {{\[\[}}0], [1, 2]] {{.*}} into memref<96x5x49xf8E4M3FN, strided<[256, 49, 1]>>
// CHECK: memref.subview %[[BUFFER]][0, %{{.*}}, 3] [96, 1, 1] [1, 1, 1] : {{.*}} to memref<96xf8E4M3FN, strided<[256], offset: ?>>
// CHECK: fp8.scaled_matmul fast ins(%[[BUFFER]], %[[BUFFER]] :
func.func @two_dimensions(%i: index, %x: memref<96xf8E4M3FN>, %s: memref<f32>, %d: memref<96x96xf32>) {
  %a = memref.alloc() {alignment = 64 : i64} : memref<96x5x49xf8E4M3FN>
  %v = memref.subview %a[0, %i, 3] [96, 1, 1] [1, 1, 1] : memref<96x5x49xf8E4M3FN> to memref<96xf8E4M3FN, strided<[245], offset: ?>>
  memref.copy %x, %v : memref<96xf8E4M3FN> to memref<96xf8E4M3FN, strided<[245], offset: ?>>
  fp8.scaled_matmul fast ins(%a, %a : memref<96x5x49xf8E4M3FN>, memref<96x5x49xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
      outs(%d : memref<96x96xf32>) {indexing_maps = [affine_map<(m, n, j, k) -> (m, j, k)>, affine_map<(m, n, j, k) -> (n, j, k)>,
                                                     affine_map<(m, n, j, k) -> (m, n)>]}
  return
}

// -----

// 16-bit operands too. Rows of 16 bytes, buffers that no product reads and reshaped ones stay as they are.

// CHECK-LABEL: func.func @others
// CHECK: memref.alloc() : memref<8x16xbf16>
// CHECK: memref.alloc() : memref<16x8xbf16>
// CHECK: memref.alloc() : memref<16x9xf8E4M3FN>
// CHECK: memref.alloc() : memref<16x9xbf16>
func.func @others(%x: memref<8x9xbf16>, %y: memref<9x16xf32>, %z: memref<16x8xf32>) {
  %padded = memref.alloc() : memref<8x9xbf16>
  %aligned = memref.alloc() : memref<16x8xbf16>
  %unread = memref.alloc() : memref<16x9xf8E4M3FN>
  %reshaped = memref.alloc() : memref<16x9xbf16>
  memref.copy %x, %padded : memref<8x9xbf16> to memref<8x9xbf16>
  %all = memref.collapse_shape %reshaped [[0, 1]] : memref<16x9xbf16> into memref<144xbf16>
  fp8.matmul ins(%padded, %aligned : memref<8x9xbf16>, memref<16x8xbf16>) outs(%y : memref<9x16xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
  fp8.matmul ins(%reshaped, %padded : memref<16x9xbf16>, memref<8x9xbf16>) outs(%z : memref<16x8xf32>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
  return
}

// -----

// A matrix whose rows have a size that only the call knows.

// CHECK-LABEL: func.func @dynamic_rows
// CHECK-SAME: %[[N:[^:]+]]: index
// CHECK: %[[UNITS:.*]] = arith.ceildivui %[[N]], %c16
// CHECK: %[[PITCH:.*]] = arith.muli %[[UNITS]], %c16
// CHECK: %[[ALLOC:.*]] = memref.alloc(%[[PITCH]]) : memref<96x?xf8E4M3FN>
// CHECK: %[[ROWS:.*]] = memref.subview %[[ALLOC]][0, 0] [96, %[[N]]] [1, 1] : memref<96x?xf8E4M3FN> to memref<96x?xf8E4M3FN, strided<[?, 1]>>
// CHECK: fp8.scaled_matmul fast ins(%[[ROWS]], %[[ROWS]] :
func.func @dynamic_rows(%n: index, %s: memref<f32>, %d: memref<96x96xf32>) {
  %a = memref.alloc(%n) : memref<96x?xf8E4M3FN>
  fp8.scaled_matmul fast ins(%a, %a : memref<96x?xf8E4M3FN>, memref<96x?xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
      outs(%d : memref<96x96xf32>) {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                                     affine_map<(m, n, k) -> (m, n)>]}
  return
}
