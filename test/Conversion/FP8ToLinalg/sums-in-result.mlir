// RUN: fp8-opt %s -split-input-file --convert-fp8-to-linalg | FileCheck %s -enable-var-scope

// Sums that are stored once are written to the result, where that is f32 without an epilogue and its columns
// are whole panels.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

module attributes {fp8.target = #fp8.cpu<vectorBits = 512, vectorRegisters = 32>} {
  // CHECK-LABEL: func.func @whole(
  // CHECK-SAME:      %[[C:[a-z0-9]+]]: memref<29x64xf32>)
  // CHECK:         %[[SUMS:.+]] = memref.reinterpret_cast %[[C]] to offset: [0], sizes: [1, 29, 64], strides: [1856, 64, 1]
  // CHECK-NOT:     memref.alloc() {{.*}} : memref<{{.*}}x64xf32>
  // CHECK:         %[[ROWS:.+]] = memref.reinterpret_cast %[[SUMS]] to
  // CHECK:         %[[CAST:.+]] = memref.cast %[[ROWS]]
  // CHECK:         call @fp8_cpu_gemm_f32_{{.*}}(%{{.+}}, %{{.+}}, %[[CAST]], %{{.+}}) {{.*}}fp8.overwrites_sums
  // CHECK-NOT:     linalg.generic
  // CHECK:         return
  func.func @whole(%a: memref<29x40xf32>, %b: memref<40x64xf32>, %c: memref<29x64xf32>) {
    fp8.matmul ins(%a, %b : memref<29x40xf32>, memref<40x64xf32>) outs(%c : memref<29x64xf32>)
        {indexing_maps = [#a, #b, #c]}
    return
  }

  // Rows at a distance, as those of one head, and sums that begin with the result's elements.
  // CHECK-LABEL: func.func @resumed(
  // CHECK:         memref.extract_strided_metadata
  // CHECK:         memref.reinterpret_cast %{{[a-z0-9]+}} to offset: [%{{[a-z0-9]+}}], sizes: [1, 29, 768], strides: [22272, 768, 1]
  // CHECK-NOT:     {{linalg.generic|fp8.overwrites_sums}}
  // CHECK:         return
  func.func @resumed(%a: memref<29x400xf32>, %b: memref<400x64xf32>,
                     %c: memref<29x64xf32, strided<[768, 1], offset: ?>>) {
    fp8.matmul resume ins(%a, %b : memref<29x400xf32>, memref<400x64xf32>)
        outs(%c : memref<29x64xf32, strided<[768, 1], offset: ?>>) {indexing_maps = [#a, #b, #c]}
    return
  }

  // The sums of so many indices of K are stored several times.
  // CHECK-LABEL: func.func @deep(
  // CHECK:         linalg.generic
  func.func @deep(%a: memref<29x400xf32>, %b: memref<400x64xf32>, %c: memref<29x64xf32>) {
    fp8.matmul ins(%a, %b : memref<29x400xf32>, memref<400x64xf32>) outs(%c : memref<29x64xf32>)
        {indexing_maps = [#a, #b, #c]}
    return
  }

  // Panels are wider than the result.
  // CHECK-LABEL: func.func @ragged(
  // CHECK:         linalg.generic
  func.func @ragged(%a: memref<29x40xf32>, %b: memref<40x70xf32>, %c: memref<29x70xf32>) {
    fp8.matmul ins(%a, %b : memref<29x40xf32>, memref<40x70xf32>) outs(%c : memref<29x70xf32>)
        {indexing_maps = [#a, #b, #c]}
    return
  }

  // CHECK-LABEL: func.func @rounded(
  // CHECK:         linalg.generic
  // CHECK:           arith.truncf
  func.func @rounded(%a: memref<29x40xf32>, %b: memref<40x64xf32>, %c: memref<29x64xbf16>) {
    fp8.matmul ins(%a, %b : memref<29x40xf32>, memref<40x64xf32>) outs(%c : memref<29x64xbf16>)
        {indexing_maps = [#a, #b, #c]}
    return
  }
}
