// What is wrong with attributes that kernels read.
// RUN: fp8-opt %s -split-input-file --convert-fp8-to-gpu -verify-diagnostics

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @config(%a: memref<128x256xf8E4M3FN>, %s: memref<f32>, %d: memref<128x128xbf16>) {
    // expected-error @below {{has tile_n = "wide" in fp8.config, which takes an integer tile_n and the unit swapped}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = {tile_n = "wide"}}
    // expected-error @below {{has stages = 4 : i64 in fp8.config}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = {stages = 4 : i64}}
    // expected-error @below {{has tile_n = 24, which must be a power of two from 16 to 256}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = {tile_n = 24 : i64}}
    return
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @other_family(%a: memref<128x256xf8E4M3FN>, %s: memref<f32>, %d: memref<128x128xbf16>) {
    // Notes are the pass's own; others are nothing to it.
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.operand_notes = [3]}
    // expected-error @below {{which must be a dictionary, and is for kernels of wgmma and tcgen05}}
    fp8.scaled_matmul fast ins(%a, %a : memref<128x256xf8E4M3FN>, memref<128x256xf8E4M3FN>) scales(%s, %s : memref<f32>, memref<f32>)
        outs(%d : memref<128x128xbf16>) {indexing_maps = [#lhs, #rhs, #out], fp8.config = {tile_n = 64 : i64}}
    return
  }
}
