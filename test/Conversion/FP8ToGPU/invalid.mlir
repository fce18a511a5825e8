// Mistakes in attributes that kernels read.
// RUN: fp8-opt %s -split-input-file --convert-fp8-to-gpu -verify-diagnostics

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @config(%a: memref<128x256xf8E4M3FN>, %s: memref<f32>, %d: memref<128x128xbf16>) {
    // expected-error @below {{has {tile_n = 64 : i64} as fp8.config, which must be a #fp8.product_config<…>}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = {tile_n = 64 : i64}}
    // expected-error @below {{has tile_n = 24, which must be a power of two from 16 to 256, in fp8.config}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<tile_n = 24>}
    // expected-error @below {{has tile_m = 64, which must be 128, in fp8.config}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<tile_m = 64>}
    // expected-error @below {{has stages = 9, which must be from 2 to 4, in fp8.config}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<stages = 9, tile_n = 256>}
    // expected-error @below {{has family = tcgen05, but this chip computes it by wgmma, in fp8.config}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<family = tcgen05>}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @other_family(%a: memref<128x256xf8E4M3FN>, %s: memref<f32>, %d: memref<128x128xbf16>,
      %f: memref<128x256xf32>, %g: memref<128x128xf32>) {
    // Notes are the pass's own; others are nothing to it.
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.operand_notes = [3]}
    // expected-error @below {{has tile_n = 256, which must be a power of two from 64 to 128, in fp8.config}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<tile_n = 256>}
    // expected-error @below {{has tile_m = 32, which must be 64 or 128, in fp8.config}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<tile_m = 32>}
    // expected-error @below {{has a configuration, which kernels without tensor cores do not have, in fp8.config}}
    fp8.matmul ins(%f, %f : memref<128x256xf32>, memref<128x256xf32>) outs(%g : memref<128x128xf32>)
        {indexing_maps = [#lhs, #rhs, #out], fp8.config = #fp8.product_config<stages = 3>}
    return
  }
}
