// RUN: fp8-opt %s --convert-fp8-to-gpu --canonicalize --verify-diagnostics | FileCheck %s --enable-var-scope

#lhs = affine_map<(m, n, k) -> (k, m)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// The left operand is [K, M], which the tensor core reads as it is: no copy.

// CHECK-LABEL: func.func @wgrad
// CHECK-NOT: memref.alloc
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [1, 256, 4096], strides: [16, 4096, 1]
// CHECK: code = "tcgen05.mma m128n256k32 e4m3{{[^"]*}}e5m2, one f32 sum for split ones"
// CHECK: func.func @kernel_product_wgrad_fc1
// CHECK-SAME: !llvm.ptr {fp8.tensor_map = {box = array<i64: 128, 128, 1>, swizzle = 128 : i32}},
// CHECK-SAME: !llvm.ptr {fp8.tensor_map = {box = array<i64: 128, 256, 1>, swizzle = 128 : i32}},
// CHECK-SAME: fp8.threads = 256 : i32

// Sums in f32 (1 << 4), e5m2 on the right (1 << 10), the left transposed (1 << 15), N / 8 (32 << 17), M / 16 (8 << 24).
// CHECK-DAG: %[[IDESC:.*]] = arith.constant 138445840 : i32
// Two tiles of 256 columns in tensor memory.
// CHECK-DAG: %[[COLUMNS:.*]] = arith.constant 512 : i32
// CHECK: nvvm.tcgen05.alloc %{{.*}}, %[[COLUMNS]]
// CHECK: nvvm.tcgen05.relinquish_alloc_permit
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-COUNT-4: nvvm.tcgen05.mma %{{.*}}, %{{.*}}, %{{.*}}, %[[IDESC]], {{.*}}kind = #nvvm.tcgen05_mma_kind<f8f6f4>
// CHECK-COUNT-2: nvvm.tcgen05.commit
// CHECK: nvvm.tcgen05.ld {{.*}} : vector<32xi32>
// CHECK: nvvm.tcgen05.wait
// CHECK: nvvm.tcgen05.dealloc %{{.*}}, %[[COLUMNS]]
module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  func.func @wgrad(%a: memref<256x4096xf8E4M3FN>, %b: memref<4096x256xf8E5M2>, %sa: memref<f32>, %sb: memref<f32>, %d: memref<4096x4096xf32>) {
    fp8.scaled_matmul site("fc1") role(wgrad) split ins(%a, %b : memref<256x4096xf8E4M3FN>, memref<4096x256xf8E5M2>)
        scales(%sa, %sb : memref<f32>, memref<f32>) outs(%d : memref<4096x4096xf32>) {indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}
