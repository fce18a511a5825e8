// Operations whose kernels depend on equal things share kernels that are built once: not the names of their sites, nor where
// in a vector their scale and amax are, but the alignment of what they read 16 bytes at a time.
// RUN: fp8-opt %s --convert-fp8-to-gpu | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --convert-fp8-to-gpu=check-sharing=true | FileCheck %s -enable-var-scope

// CHECK-LABEL: func.func @f
// CHECK: gpu.launch_func @kernels::@[[ALIGNED:kernel_quantize[a-z0-9_]*]] blocks
// CHECK: gpu.launch_func @kernels::@[[ALIGNED]] blocks
// CHECK: gpu.launch_func @kernels::@[[OTHER:kernel_quantize[a-z0-9_]*]] blocks
// CHECK: gpu.module @kernels
// CHECK: func.func @[[ALIGNED]](
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf32>
// CHECK: func.func @[[OTHER]](
// CHECK: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<8xf32>
// CHECK-NOT: func.func
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @f(%x: memref<3x128x128xf32>, %y: memref<40000xf32>, %s: memref<4xf32>, %q: memref<128x128xf8E4M3FN>, %i: memref<f32>) {
    %x0 = memref.subview %x[0, 0, 0] [1, 128, 128] [1, 1, 1] : memref<3x128x128xf32> to memref<128x128xf32, strided<[128, 1]>>
    %x1 = memref.subview %x[1, 0, 0] [1, 128, 128] [1, 1, 1] : memref<3x128x128xf32> to memref<128x128xf32, strided<[128, 1], offset: 16384>>
    %x2 = memref.reinterpret_cast %y to offset: [1], sizes: [128, 128], strides: [128, 1] : memref<40000xf32> to memref<128x128xf32, strided<[128, 1], offset: 1>>
    %s0 = memref.subview %s[0] [1] [1] : memref<4xf32> to memref<f32, strided<[]>>
    %s1 = memref.subview %s[1] [1] [1] : memref<4xf32> to memref<f32, strided<[], offset: 1>>
    fp8.quantize ins(%x0 : memref<128x128xf32, strided<[128, 1]>>) scale(%s0 : memref<f32, strided<[]>>)
      outs(%q, %i : memref<128x128xf8E4M3FN>, memref<f32>)
    fp8.quantize ins(%x1 : memref<128x128xf32, strided<[128, 1], offset: 16384>>) scale(%s1 : memref<f32, strided<[], offset: 1>>)
      outs(%q, %i : memref<128x128xf8E4M3FN>, memref<f32>)
    fp8.quantize ins(%x2 : memref<128x128xf32, strided<[128, 1], offset: 1>>) scale(%s1 : memref<f32, strided<[], offset: 1>>)
      outs(%q, %i : memref<128x128xf8E4M3FN>, memref<f32>)
    return
  }
}
