// The stock mlir-opt makes kernels for every chip from operations of the dialect, and PTX of them.
// UNSUPPORTED: sanitizers
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-gpu-kernels-pipeline{chip=sm_89})' %s > %t.sm_89
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-gpu-kernels-pipeline{chip=sm_90a})' %s > %t.sm_90a
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-gpu-kernels-pipeline{chip=sm_100a})' %s > %t.sm_100a
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-gpu-kernels-pipeline{chip=sm_120a})' %s > %t.sm_120a
// RUN: FileCheck %s --check-prefixes=KERNELS,MMA < %t.sm_89
// RUN: FileCheck %s --check-prefixes=KERNELS,WGMMA < %t.sm_90a
// RUN: FileCheck %s --check-prefixes=KERNELS,TCGEN05 < %t.sm_100a
// RUN: FileCheck %s --check-prefixes=KERNELS,SCALED < %t.sm_120a
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-gpu-code-pipeline)' %t.sm_89 | FileCheck %s --check-prefixes=CODE,PTX89
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-gpu-code-pipeline)' %t.sm_90a | FileCheck %s --check-prefixes=CODE,PTX90
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-gpu-code-pipeline)' %t.sm_100a | FileCheck %s --check-prefixes=CODE,PTX100
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin --pass-pipeline='builtin.module(fp8-gpu-code-pipeline)' %t.sm_120a | FileCheck %s --check-prefixes=CODE,PTX120

// The cast, then the product.
// KERNELS-LABEL: func.func @main
// KERNELS: gpu.launch_func @kernels::@kernel_quantize
// KERNELS: gpu.launch_func @kernels::@kernel_product_fprop_fc1
// MMA: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"
// WGMMA: nvvm.wgmma.mma_async {{.*}} k = 32>, D[<f32>, {{.*}}A[<e4m3>, {{.*}}B[<e5m2>,
// TCGEN05: nvvm.tcgen05.mma {{.*}}f8f6f4
// SCALED: nvvm.mma.block_scale

// The text is an attribute of the data of the library.
// CODE-DAG: llvm.func @fp8_device_code
// CODE-DAG: llvm.func @fp8_call_main
// PTX89-DAG: .target sm_89{{.*}}mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32
// PTX90-DAG: .target sm_90a{{.*}}wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k32.f32.e4m3.e5m2
// PTX100-DAG: .target sm_100a{{.*}}tcgen05.mma.cta_group::1.kind::f8f6f4
// PTX120-DAG: .target sm_120a{{.*}}mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: memref<128x256xbf16>, %b: memref<192x256xf8E5M2>, %scale: memref<f32>, %sb: memref<f32>, %d: memref<128x192xbf16>) {
  %a = memref.alloc() : memref<128x256xf8E4M3FN>
  %sa = memref.alloc() : memref<f32>
  fp8.quantize ins(%x : memref<128x256xbf16>) scale(%scale : memref<f32>) outs(%a, %sa : memref<128x256xf8E4M3FN>, memref<f32>)
  fp8.scaled_matmul site("fc1") role(fprop) fast ins(%a, %b : memref<128x256xf8E4M3FN>, memref<192x256xf8E5M2>)
      scales(%sa, %sb : memref<f32>, memref<f32>) outs(%d : memref<128x192xbf16>) {indexing_maps = [#lhs, #rhs, #out]}
  return
}
