// RUN: fp8-opt %s --fp8-reinterpret-reshapes | FileCheck %s

// CHECK-LABEL: func.func @strided
// CHECK-SAME: (%[[X:.+]]: memref<?x4xf32, strided<[8, 2], offset: 3>>, %[[B:.+]]: index, %[[S:.+]]: index)
// CHECK: %[[BASE:.+]], %{{.+}}, %{{.+}}:2, %{{.+}}:2 = memref.extract_strided_metadata %[[X]]
// CHECK: %[[STRIDE:.+]] = affine.apply #{{.*}}()[%[[S]]]
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [3], sizes: [%[[B]], %[[S]], 2, 2], strides: [%[[STRIDE]], 8, 4, 2]
func.func @strided(%x: memref<?x4xf32, strided<[8, 2], offset: 3>>, %b: index, %s: index)
    -> memref<?x?x2x2xf32, strided<[?, 8, 4, 2], offset: 3>> {
  %y = memref.expand_shape %x [[0, 1], [2, 3]] output_shape [%b, %s, 2, 2]
      : memref<?x4xf32, strided<[8, 2], offset: 3>> into memref<?x?x2x2xf32, strided<[?, 8, 4, 2], offset: 3>>
  return %y : memref<?x?x2x2xf32, strided<[?, 8, 4, 2], offset: 3>>
}

// One dynamic size follows from the source's.
// CHECK-LABEL: func.func @one
// CHECK-NEXT: memref.expand_shape
func.func @one(%x: memref<?x4xf32>, %b: index) -> memref<?x2x4xf32> {
  %y = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, 2, 4] : memref<?x4xf32> into memref<?x2x4xf32>
  return %y : memref<?x2x4xf32>
}

// Sizes that are stored for the reshape alone.
// CHECK-LABEL: func.func @stored
// CHECK-SAME: (%[[X:.+]]: memref<?xf32>, %[[B:.+]]: i64, %[[S:.+]]: i64)
// CHECK-NOT: memref.alloc
// CHECK-DAG: %[[B_INDEX:.+]] = arith.index_cast %[[B]] : i64 to index
// CHECK-DAG: %[[S_INDEX:.+]] = arith.index_cast %[[S]] : i64 to index
// CHECK: %[[STRIDE:.+]] = affine.apply #{{.*}}()[%[[S_INDEX]]]
// CHECK: memref.reinterpret_cast %[[X]] to offset: [0], sizes: [%[[B_INDEX]], %[[S_INDEX]], 4], strides: [%[[STRIDE]], 4, 1]
func.func @stored(%x: memref<?xf32>, %b: i64, %s: i64) -> memref<?x?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %four = arith.constant 4 : i64
  %shape = memref.alloc() : memref<3xi64>
  memref.store %b, %shape[%c0] : memref<3xi64>
  memref.store %s, %shape[%c1] : memref<3xi64>
  memref.store %four, %shape[%c2] : memref<3xi64>
  %y = memref.reshape %x(%shape) : (memref<?xf32>, memref<3xi64>) -> memref<?x?x4xf32>
  return %y : memref<?x?x4xf32>
}

// Sizes of an argument, and sizes of which one is stored twice, are read.
// CHECK-LABEL: func.func @read
// CHECK-SAME: (%[[X:.+]]: memref<?xf32>, %[[SHAPE:.+]]: memref<2xi32>, %[[A:.+]]: index, %{{.+}}: index)
// CHECK: %[[OWN:.+]] = memref.alloc
// CHECK: %[[READ:.+]] = memref.load %[[SHAPE]][%{{.+}}] : memref<2xi32>
// CHECK: %[[SIZE:.+]] = arith.index_cast %[[READ]] : i32 to index
// CHECK: memref.reinterpret_cast %[[X]] to offset: [0], sizes: [%[[SIZE]], 2], strides: [2, 1]
// CHECK: %[[AGAIN:.+]] = memref.load %[[OWN]][%{{.+}}] : memref<1xindex>
// CHECK: memref.reinterpret_cast %[[X]] to offset: [0], sizes: [%[[AGAIN]]], strides: [1]
func.func @read(%x: memref<?xf32>, %shape: memref<2xi32>, %a: index, %b: index) -> (memref<?x2xf32>, memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %own = memref.alloc() : memref<1xindex>
  memref.store %a, %own[%c0] : memref<1xindex>
  memref.store %b, %own[%c0] : memref<1xindex>
  %y = memref.reshape %x(%shape) : (memref<?xf32>, memref<2xi32>) -> memref<?x2xf32>
  %z = memref.reshape %x(%own) : (memref<?xf32>, memref<1xindex>) -> memref<?xf32>
  return %y, %z : memref<?x2xf32>, memref<?xf32>
}
