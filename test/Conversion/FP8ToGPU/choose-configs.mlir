// Every product on tensor cores gets the whole of its configuration; what is given stays, and kernels follow it.
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-choose-configs))' | FileCheck %s
// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-choose-configs),convert-fp8-to-gpu)' | FileCheck %s --check-prefix=KERNEL

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: @mma
// KERNEL-LABEL: @mma
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @mma(%a: memref<256x256xf8E4M3FN>, %b: memref<32x256xf8E4M3FN>, %s: memref<f32>, %d: memref<256x32xbf16>,
      %e: memref<256x256xbf16>, %f: memref<256x256xf32>) {
    // CHECK: fp8.scaled_matmul {{.*}}fp8.config = #fp8.product_config<family = mma, tile_m = 128, tile_n = 64, stages = 3, swapped = false>
    fp8.scaled_matmul site("thin") fast ins(%a, %b : memref<256x256xf8E4M3FN>, memref<32x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<256x32xbf16>) {indexing_maps = [#lhs, #rhs, #out]}
    // CHECK: fp8.scaled_matmul {{.*}}fp8.config = #fp8.product_config<family = mma, tile_m = 64, tile_n = 128, stages = 5, swapped = false>
    // KERNEL-DAG: func.func @kernel_product_other_given{{.*}}fp8.shared_bytes = 61440 : i32{{.*}}fp8.threads = 256 : i32
    fp8.scaled_matmul site("given") fast ins(%a, %a : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%e : memref<256x256xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<stages = 5, tile_m = 64>}
    // Fused multiply-adds have nothing to choose.
    // CHECK: fp8.matmul
    // CHECK-NOT: fp8.config
    // CHECK: return
    fp8.matmul ins(%f, %f : memref<256x256xf32>, memref<256x256xf32>) outs(%f : memref<256x256xf32>) {indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k, g) -> (m, k)>
#rhs = affine_map<(m, n, k, g) -> (g, n, k)>
#out = affine_map<(m, n, k, g) -> (m, n)>
// CHECK-LABEL: @grouped
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @grouped(%a: memref<256x128xbf16>, %b: memref<4x64x128xbf16>, %ends: memref<4xi32>, %d: memref<256x64xbf16>) {
    // CHECK: fp8.grouped_matmul {{.*}}fp8.config = #fp8.product_config<family = mma, tile_m = 128, tile_n = 64, stages = 6, swapped = false>
    fp8.grouped_matmul ins(%a, %b, %ends : memref<256x128xbf16>, memref<4x64x128xbf16>, memref<4xi32>)
        outs(%d : memref<256x64xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<stages = 6>}
    return
  }
}
