// Kernels count in 32 bits: what is larger is generic code, whose threads count in 64 where they must.
// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-kernels --convert-fp8-to-gpu -verify-diagnostics | FileCheck %s

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @rows
// CHECK: fp8.scaled_matmul
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @rows(%a: memref<4294967296x16xf8E4M3FN>, %b: memref<16x16xf8E4M3FN>, %s: memref<f32>, %d: memref<4294967296x16xbf16>) {
    // expected-remark @below {{'fp8.scaled_matmul' stays generic code on the GPU: a dimension has more than 2147483136 elements}}
    fp8.scaled_matmul fast ins(%a, %b : memref<4294967296x16xf8E4M3FN>, memref<16x16xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<4294967296x16xbf16>) {indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
// Bytes along K.
// CHECK-LABEL: func.func @depth
// CHECK: fp8.matmul
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @depth(%a: memref<16x1500000000xbf16>, %d: memref<16x16xbf16>) {
    // expected-remark @below {{'fp8.matmul' stays generic code on the GPU: a dimension has more than}}
    fp8.matmul ins(%a, %a : memref<16x1500000000xbf16>, memref<16x1500000000xbf16>) outs(%d : memref<16x16xbf16>)
        {indexing_maps = [#lhs, #rhs, #out]}
    return
  }
}

// -----

// CHECK-LABEL: func.func @cast
// CHECK: fp8.quantize
module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  func.func @cast(%x: memref<5000000000xbf16>, %s: memref<f32>, %q: memref<5000000000xf8E4M3FN>, %si: memref<f32>) {
    // expected-remark @below {{'fp8.quantize' stays generic code on the GPU: a dimension has more than}}
    fp8.quantize ins(%x : memref<5000000000xbf16>) scale(%s : memref<f32>) outs(%q, %si : memref<5000000000xf8E4M3FN>, memref<f32>)
    return
  }
}

// -----

// As many elements in two dimensions are no matter.
// CHECK-LABEL: func.func @tensor
// CHECK: gpu.launch_func @kernels::@kernel_quantize
module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  func.func @tensor(%x: memref<1000000x5000xbf16>, %s: memref<f32>, %q: memref<1000000x5000xf8E4M3FN>, %si: memref<f32>) {
    fp8.quantize ins(%x : memref<1000000x5000xbf16>) scale(%s : memref<f32>) outs(%q, %si : memref<1000000x5000xf8E4M3FN>, memref<f32>)
    return
  }
}
