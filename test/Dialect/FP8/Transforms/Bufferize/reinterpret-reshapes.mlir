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
